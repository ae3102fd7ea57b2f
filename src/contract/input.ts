// SPDX-License-Identifier: Apache-2.0
import type { SessionActivation } from "./activation.ts";

/** The user's text of an input, its parts joined. */
export function promptOf(input: SessionActivation["input"]): string {
  if (typeof input === "string") return input;
  return input
    .filter((message) => message.role === "user")
    .map((message) => textOf(message.content))
    .join("");
}

/** The text of a leading system or developer message; null when there is none. */
export function leadingInstructions(input: SessionActivation["input"]): string | null {
  const first = typeof input === "string" ? undefined : input[0];
  return first === undefined || first.role === "user" ? null : textOf(first.content);
}

function textOf(content: string | { text: string }[]): string {
  return typeof content === "string" ? content : content.map((part) => part.text).join("");
}
