// SPDX-License-Identifier: Apache-2.0
import type { ResponseItem } from "../contract/response.ts";

export interface Call {
  id: string;
  name: string;
  /** JSON text, as the model wrote it. */
  arguments: string;
  /** null = none was seen. */
  output: string | null;
}

/** What the model said at once, as far as the items tell: thoughts, a message, calls and what they gave. */
export interface Turn {
  reasoning: string;
  text: string;
  calls: Call[];
}

/**
 * The items of a session as turns. Codex does not say which items came in one answer of the model: a thought or a message after
 * something that was said or called begins a turn, and so does a call after an answered one. Outputs go to their calls. Pure.
 */
export function turnsOf(items: readonly ResponseItem[]): Turn[] {
  const turns: Turn[] = [];
  const begin = (): Turn => {
    const turn: Turn = { reasoning: "", text: "", calls: [] };
    turns.push(turn);
    return turn;
  };
  const said = (turn: Turn): boolean => turn.text !== "" || turn.calls.length > 0;
  for (const item of items) {
    const turn = turns.at(-1);
    switch (item.type) {
      case "reasoning": {
        const into = turn === undefined || said(turn) ? begin() : turn;
        into.reasoning = joined(into.reasoning, item.summary);
        break;
      }
      case "message": {
        const into = turn === undefined || said(turn) ? begin() : turn;
        into.text = joined(into.text, item.content);
        break;
      }
      case "function_call": {
        const isNext = turn === undefined || turn.calls.some(({ id, output }) => output !== null || id === item.call_id);
        (isNext ? begin() : turn).calls.push({ id: item.call_id, name: item.name, arguments: item.arguments, output: null });
        break;
      }
      case "function_call_output": {
        const call = turns.flatMap(({ calls }) => calls).findLast(({ id, output }) => id === item.call_id && output === null);
        if (call !== undefined) call.output = item.output;
        break;
      }
      default:
        item satisfies never;
    }
  }
  return turns.filter((turn) => said(turn) || turn.reasoning !== "");
}

function joined(before: string, parts: readonly { text: string }[]): string {
  return [...(before === "" ? [] : [before]), ...parts.map(({ text }) => text)].join("\n\n");
}
