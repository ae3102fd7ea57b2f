// SPDX-License-Identifier: Apache-2.0
import { ATIF_VERSION, atifTrajectory } from "./atif.ts";
import { chatLine } from "./openai-chat.ts";
import { responsesLine } from "./responses.ts";
import type { Trajectory } from "./trajectory.ts";

export const EXPORT_FORMATS = ["responses", "atif", "openai-chat"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

interface FormatWriter {
  /** What the files say they are, and by which account of the format they are right. */
  version: string;
  /** One file of lines, or a file for each rollout. */
  files: "lines" | "each";
  readonly write: (trajectory: Trajectory) => object;
}

export const FORMAT_WRITERS: Readonly<Record<ExportFormat, FormatWriter>> = {
  responses: { version: "OpenAI Responses API items", files: "lines", write: responsesLine },
  atif: { version: ATIF_VERSION, files: "each", write: atifTrajectory },
  "openai-chat": { version: "OpenAI chat completions messages", files: "lines", write: chatLine },
};
