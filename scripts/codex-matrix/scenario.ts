// SPDX-License-Identifier: Apache-2.0
import { mcp, say, shell, step, type Item, type Script } from "../../examples/stand-ins/script.ts";
import type { GapCode } from "../../src/contract/observation.ts";

/** How Codex offers tools to a model: one that it does not know, one that it knows and that is given a list of tools, one of code mode. */
export const KINDS = ["unknown", "plain", "code"] as const;
export type Kind = (typeof KINDS)[number];

/** The same for every version, or another for some; `else` is of all others, also of a Codex that has no profile yet. */
export type ByVersion<T> = T | { else: T; [version: string]: T };

/** Names of tool servers that a session may be granted; servers.ts starts them. Those that are not good say in their names what is wrong. */
export type ServerName = "office" | "archive" | "slow" | (string & {});

export interface Grant {
  name: string;
  /** Which of the servers it leads to; default the one of that name. */
  server?: ServerName;
  required?: boolean;
}

/**
 * One scripted session and what is right for it. What it does not say itself follows from the servers' own counts: tokens by kind, model
 * calls, threads, response ids, tool calls.
 */
export interface Scenario {
  name: string;
  kinds: readonly Kind[];
  script: Script;
  /** Default: office and archive, both required. */
  grants?: readonly Grant[];
  /** Default ["finish"], where office is granted. */
  required_tools?: readonly string[];
  /** Of the activation's `codex`; timeout_seconds is 60 unless it is here. */
  codex?: Record<string, unknown>;
  /** One of the model server's lives, see servers.ts; default "works". */
  model_server?: ModelServerLife;
  max_attempts?: number;
  /**
   * `<cause of an attempt that was repeated> > <status> [cause] [class] [final]`, as verdictText writes it: "completed",
   * "failed mcp_server_auth grant final", "rate_limited > completed".
   */
  ends: ByVersion<string>;
  /** Whether the version tells the tokens of the root's last answer; default "told". */
  last_answer?: ByVersion<"told" | "untold">;
  /** Tool servers that the failure names. */
  names?: readonly string[];
  /** Gaps that must be there, beside those that every session of a version has; no others may. */
  gaps?: ByVersion<readonly GapCode[]>;
  /** May be there as well. */
  may?: readonly GapCode[];
  /** Where the records must say something else than the tool server: by tool, `<completed> ok, <others> not`. */
  calls?: Record<string, string>;
  /** It waits for most of its time: begun first, so that the others run beside it. */
  slow?: true;
}

/** How a model server lives; one of its own has its limiter to itself, which holds back sessions where a server is too busy. */
export type ModelServerLife = "works" | "gone at the first call" | "gone after one answer" | "away for 10 s" | "its own";

export const ALL: readonly Kind[] = KINDS;
/** What has nothing to do with the model's tools is tried with one. */
export const ONE: readonly Kind[] = ["unknown"];
export const KNOWN: readonly Kind[] = ["plain", "code"];
export const CODE: readonly Kind[] = ["code"];

/** 0.144.4 tells an answer's tokens when its calls have ended. */
export const TOLD_WITH_OUTPUTS: ByVersion<"told" | "untold"> = { else: "told", "0.144.4": "untold" };

/** What may be missing of a session that ends while something runs. */
export const OPEN: readonly GapCode[] = [
  "tool_outcome_unavailable",
  "model_call_outcome_unknown",
  "partial_model_usage_unavailable",
  "tool_start_unavailable",
];

export const finish = (server = "office"): Item => mcp(server, "finish", { reason: "done", paths: ["{{workdir}}/report.md"] });
export const report = (): Item => shell("echo report > report.md");

/** Steps of one item each. */
export const steps = (...items: Item[]): Script => ({ steps: items.map((item) => step(item)) });

/** A session that does its work: a file, the hand-in, a word. */
export const work = (): Script => steps(report(), finish(), say("Done."));

/** The value for this version. */
export function forVersion<T>(value: ByVersion<T>, version: string): T {
  if (value === null || typeof value !== "object" || !("else" in value)) return value;
  return value[version] ?? value.else;
}
