// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { nearest } from "../../config/nearest.ts";
import { messageOf, RollcallError } from "../../errors.ts";
import { DEFAULT_PROMPT } from "./default-prompt.ts";

/** What a template may name. */
const PLACEHOLDERS = ["reference_files_str", "sector", "occupation", "prompt"] as const;
export type PromptValues = Record<(typeof PLACEHOLDERS)[number], string>;

export interface PromptTemplate {
  text: string;
  sha256: string;
}

const MAX_TEMPLATE_BYTES = 256 * 1024;
/** `{name}`, and `{{name}}` for the text "{name}" itself; any other brace is text. */
const PLACEHOLDER = /\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}/g;

/** Checks a template. Pure; throws RollcallError "template_invalid", naming every placeholder that does not exist. */
export function promptTemplate(text: string, name: string): PromptTemplate {
  const used = [...text.matchAll(PLACEHOLDER)].flatMap(([, , placeholder]) => (placeholder === undefined ? [] : [placeholder]));
  const unknown = [...new Set(used)].filter((placeholder) => !PLACEHOLDERS.some((known) => known === placeholder));
  const accepted = `${PLACEHOLDERS.map((known) => `{${known}}`).join(", ")}; {{name}} writes {name} itself`;
  if (unknown.length > 0) {
    const named = unknown.map((placeholder) => {
      const meant = nearest(placeholder, PLACEHOLDERS);
      return `{${placeholder.slice(0, 80)}}${meant === null ? "" : ` (did you mean {${meant}}?)`}`;
    });
    throw new RollcallError("template_invalid", `${name} has unknown placeholders: ${named.join(", ")}; there are ${accepted}`);
  }
  if (!used.includes("prompt")) throw new RollcallError("template_invalid", `${name} has no {prompt}, so every task would be the same`);
  return { text, sha256: createHash("sha256").update(text).digest("hex") };
}

/** Ours, which names no harness. */
export function defaultPromptTemplate(): PromptTemplate {
  return promptTemplate(DEFAULT_PROMPT, "the built-in template");
}

/** A template from a file of this machine: UTF-8 text. Throws RollcallError "template_unreadable", "template_invalid". */
export async function readPromptTemplate(path: string): Promise<PromptTemplate> {
  let bytes: Buffer;
  try {
    const { size } = await stat(path);
    if (size > MAX_TEMPLATE_BYTES) throw new Error(`it has ${size} bytes, at most ${MAX_TEMPLATE_BYTES} are read`);
    bytes = await readFile(path);
    return promptTemplate(new TextDecoder("utf-8", { fatal: true }).decode(bytes), path);
  } catch (error) {
    if (error instanceof RollcallError) throw error;
    throw new RollcallError("template_unreadable", `cannot read the prompt template ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** The prompt: every placeholder replaced in one pass, so that braces in a value stay what they are. Pure. */
export function fillTemplate({ text }: PromptTemplate, values: PromptValues): string {
  return text.replace(PLACEHOLDER, (_, literal: string | undefined, name: string | undefined) =>
    literal === undefined ? values[name as keyof PromptValues] : `{${literal}}`,
  );
}
