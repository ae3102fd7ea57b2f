// SPDX-License-Identifier: Apache-2.0
import type { CodexProfile, TurnFailureMeaning, TurnFailureText } from "./profile.ts";

/** What a model server answered where Codex passes its body on; "" for what is not there. */
export interface RefusalBody {
  code: string;
  message: string;
  param: string;
}

/** Longest body that is looked into; a model server's refusal has some hundred characters. */
const MAX_BODY = 64 * 1024;

/** What Codex's text of a failed turn means in this version; null = it is none that is known. Pure. */
export function meaningOf(text: string, { turnFailures }: Pick<CodexProfile, "turnFailures">): TurnFailureMeaning | null {
  const body = refusalBody(text);
  return turnFailures.find((known) => fits(known, text, body))?.means ?? null;
}

function fits(known: TurnFailureText, text: string, body: RefusalBody | null): boolean {
  if ("text" in known) return known.text.test(text);
  if (body === null) return false;
  if ("code" in known) return known.code.test(body.code);
  return "message" in known ? known.message.test(body.message) : known.param.test(body.param);
}

/** The body of a refused request where the text is one (a 400, both versions); null = it is none. Pure. */
export function refusalBody(text: string): RefusalBody | null {
  if (!text.startsWith("{") || text.length > MAX_BODY) return null;
  try {
    const value = JSON.parse(text) as { error?: unknown };
    const error = (value.error !== null && typeof value.error === "object" ? value.error : value) as Record<string, unknown>;
    const part = (name: string): string => (typeof error[name] === "string" ? error[name] : "");
    return { code: part("code"), message: part("message"), param: part("param") };
  } catch {
    return null;
  }
}
