// SPDX-License-Identifier: Apache-2.0
import { MAX_INPUT_CHARACTERS, type SessionActivation } from "../activation.ts";
import { leadingInstructions, promptOf } from "../input.ts";
import { configTextRefusals, hasLoneSurrogate, refusal, type Refusal } from "./refusal.ts";

/** What is wrong with the prompt and the instructions. */
export function inputRefusals({ input, instructions }: Partial<SessionActivation>): Refusal[] {
  const found: Refusal[] = [];
  if (input !== undefined) {
    if (typeof input !== "string") {
      const roles = input.map((message) => message.role).join(", ");
      if (!/^((system|developer), )?user$/.test(roles)) {
        found.push(
          refusal("input_shape", "input", `the roles are [${roles.slice(0, 80)}]`, "a string, [user], [system, user] or [developer, user]"),
        );
      }
    }
    const prompt = promptOf(input);
    if (prompt.trim() === "")
      found.push(refusal("input_empty", "input", "the user's text is empty", "at least one character that is not blank"));
    const characters = countCharacters(prompt);
    if (characters > MAX_INPUT_CHARACTERS) {
      found.push(
        refusal(
          "input_too_long",
          "input",
          `the user's text has ${characters} characters, Codex takes ${MAX_INPUT_CHARACTERS}`,
          `at most ${MAX_INPUT_CHARACTERS} characters; hand longer material in as a file (sandbox.files)`,
        ),
      );
    }
    if (hasLoneSurrogate(prompt))
      found.push(refusal("control_character", "input", "it holds half of a surrogate pair", "well-formed Unicode text"));
    const leading = leadingInstructions(input);
    if (leading !== null) found.push(...configTextRefusals("input[0].content", leading));
  }
  if (instructions !== undefined) found.push(...configTextRefusals("instructions", instructions));
  return found;
}

/** Characters as Codex counts them: code points, not UTF-16 units (seen in 0.144.4). */
function countCharacters(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += text.codePointAt(at)! > 0xffff ? 2 : 1) count++;
  return count;
}
