// SPDX-License-Identifier: Apache-2.0
import type { ResponseItem } from "../contract/response.ts";
import type { AboutRollout, Trajectory } from "./trajectory.ts";

/** A user's message as an input item of the Responses API. */
interface UserItem {
  type: "message";
  role: "user";
  content: [{ type: "input_text"; text: string }];
}

/** A line of responses.jsonl. `input` followed by `output` is a valid input of the Responses API. */
export interface ResponsesLine {
  input: UserItem[];
  output: ResponseItem[];
  rollcall: AboutRollout;
}

/** Pure. */
export function responsesLine({ prompt, items, about }: Trajectory): ResponsesLine {
  const input: UserItem[] = prompt === null ? [] : [{ type: "message", role: "user", content: [{ type: "input_text", text: prompt }] }];
  return { input, output: items, rollcall: about };
}
