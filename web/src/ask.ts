// SPDX-License-Identifier: Apache-2.0
import type { Problem } from "../../src/api/problem.ts";
import type { RunRowReply } from "../../src/api/row-lines.ts";

/** The server did not do what it was asked for; the message says why, for people. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, { code, detail, title }: Pick<Problem, "code" | "detail" | "title">) {
    super(detail ?? title);
    this.name = "Refused";
    this.status = status;
    this.code = code;
  }
}

interface Options {
  method?: "GET" | "POST" | "DELETE";
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/**
 * Asks this server, with the cookie of whoever signed in; who has not is sent to do so. Rejects with Refused, or with a TypeError when
 * the server cannot be reached.
 */
export async function ask(path: string, { headers, ...options }: Options = {}): Promise<Response> {
  const response = await fetch(path, { ...options, headers: { accept: "application/json", ...headers } });
  if (response.ok) return response;
  if (response.status === 401) {
    location.assign(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
    return new Promise(() => undefined); // the page goes away
  }
  throw new Refused(response.status, await problemIn(response));
}

export async function askJson<T>(path: string, options?: Options): Promise<T> {
  return (await (await ask(path, options)).json()) as T;
}

/** Calls `each` for every row as it comes. */
export async function askRows(path: string, each: (row: RunRowReply) => void, signal: AbortSignal): Promise<void> {
  const { body } = await ask(path, { signal, headers: { accept: "application/x-ndjson" } });
  if (body === null) return;
  let rest = "";
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line !== "") each(JSON.parse(line) as RunRowReply);
  }
}

/** Of an id in a path. */
export function segment(id: string): string {
  return encodeURIComponent(id);
}

async function problemIn(response: Response): Promise<Pick<Problem, "code" | "detail" | "title">> {
  try {
    const problem = (await response.json()) as Partial<Problem>;
    if (typeof problem.code === "string" && typeof problem.title === "string") return problem as Problem;
  } catch {
    // not of this server
  }
  return { code: "server_answer", title: `the server answered with HTTP ${response.status}` };
}
