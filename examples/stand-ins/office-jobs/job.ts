// SPDX-License-Identifier: Apache-2.0
import { mcp, shell, step, type Step } from "../script.ts";

/** The name under which every job is granted the office tools. */
export const OFFICE_SERVER = "office";

/** One office task: what a colleague would ask for, what lies on the desk, and how the stand-in model goes about it. */
export interface OfficeJob {
  id: string;
  department: string;
  request: string;
  files: { path: string; content: string }[];
  /** Names of the files to hand in, in the workdir; the stand-in's steps must write them. */
  deliverables: string[];
  steps: Step[];
  /** Why the job does not end well; absent = it does. */
  trouble?: "refused_grant" | "server_down";
}

/** One reply with one command. */
export const run = (command: string): Step => step(shell(command));

export const search = (query: string): Step => step(mcp(OFFICE_SERVER, "web_search", { query }));

export const readPage = (url: string): Step => step(mcp(OFFICE_SERVER, "fetch_web_page", { url }));

export const finish = (reason: string, ...names: string[]): Step =>
  step(mcp(OFFICE_SERVER, "finish", { reason, paths: names.map((name) => `{{workdir}}/${name}`) }));

/** Lines of a text file. */
export const lines = (...texts: string[]): string => `${texts.join("\n")}\n`;
