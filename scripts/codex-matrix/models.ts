// SPDX-License-Identifier: Apache-2.0
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import type { Kind } from "./scenario.ts";

const run = promisify(execFile);

const catalogueSchema = z.looseObject({
  models: z.array(
    z.looseObject({
      slug: z.string(),
      priority: z.number(),
      visibility: z.string(),
      tool_mode: z.string().nullish(),
      multi_agent_version: z.string().nullish(),
    }),
  ),
});
export type Catalogue = z.infer<typeof catalogueSchema>["models"];

export interface MatrixModel {
  name: string;
  kind: Kind;
}

/** The models that this Codex knows, from itself. Throws when it does not run or answers something else. */
export async function catalogueOf(codexBin: string): Promise<Catalogue> {
  const home = await mkdtemp(join(tmpdir(), "codex-models-"));
  try {
    const { stdout } = await run(codexBin, ["debug", "models", "--bundled"], {
      env: { HOME: home, CODEX_HOME: home },
      timeout: 30_000,
      maxBuffer: 64 * 1024 * 1024,
    });
    return catalogueSchema.parse(JSON.parse(stdout)).models;
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** As Codex looks a name up (0.144.4 and 0.171.0): the longest known prefix, after at most one `org/`. Pure. */
export function kindOf(catalogue: Catalogue, name: string): Kind {
  const bare = /^[^/]+\/([^/]+)$/.exec(name)?.[1] ?? name;
  const known = catalogue.filter(({ slug }) => bare.startsWith(slug)).sort((one, other) => other.slug.length - one.slug.length)[0];
  if (known === undefined) return "unknown";
  return known.tool_mode == null ? "plain" : "code";
}

/** One of each kind: a name that no Codex knows, and the first that this one shows of the others, of code mode one with agents. Pure. */
export function defaultModels(catalogue: Catalogue): MatrixModel[] {
  const shown = catalogue.filter(({ visibility }) => visibility === "list").sort((one, other) => one.priority - other.priority);
  const plain = shown.find(({ tool_mode }) => tool_mode == null);
  const code = shown.find(({ tool_mode, multi_agent_version }) => tool_mode != null && multi_agent_version === "v2");
  return [
    { name: "my-vllm-model", kind: "unknown" },
    ...(plain === undefined ? [] : [{ name: plain.slug, kind: "plain" as const }]),
    ...(code === undefined ? [] : [{ name: code.slug, kind: "code" as const }]),
  ];
}
