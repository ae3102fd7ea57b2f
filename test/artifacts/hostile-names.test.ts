// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { collect } from "../../src/artifacts/collect.ts";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import type { ArtifactStore } from "../../src/artifacts/types.ts";
import { createClient } from "../../src/client/index.ts";
import { emptySecretSet } from "../../src/redact/index.ts";
import { collectFiles } from "../../src/rollout/collect-files.ts";
import { layOut } from "../../src/rollout/lay-out.ts";
import { startApiRig } from "../api/rig.ts";
import { resultOf } from "../support/result-documents.ts";
import { tempDir } from "../support/temp-dir.ts";

/** More for a longer search. */
const numRuns = Number(process.env["HOSTILE_NAMES_RUNS"] ?? 15);

const OURS = ["finish_params.json", "Finish_Params.JSON", "finish_params~2.json", "outputs", "outputs~2", "quarantine", "withheld"];
const TWINS = ["a", "A", "~2", "~3", "\u00e9", "e\u0301", "\u00c9", "ß", "SS", "ſ", "İ"];
const ODD = [
  "attempt.json",
  "result.json",
  ".lock",
  ".new",
  ".repeat_0.new",
  ".hidden",
  "..a",
  "a..",
  "...",
  "-rf",
  " ",
  "a ",
  "CON",
  "a:b",
  "a\\b",
  "new\nline",
  "tab\t",
  "\u0001",
  "\u001b[2J",
  "\u007f",
  "\u202e",
  "\u2028",
  "a%2fb",
  "%2e%2e",
  "%",
  "?q",
  "#f",
  "*",
  "[a]",
  "{a,b}",
  "'(x)'",
  "x".repeat(255),
  "é".repeat(127),
  "😀".repeat(63),
];

const name = fc
  .oneof(
    { weight: 3, arbitrary: fc.constantFrom(...TWINS) },
    { weight: 2, arbitrary: fc.constantFrom(...OURS) },
    { weight: 2, arbitrary: fc.constantFrom(...ODD) },
    { weight: 1, arbitrary: fc.string({ unit: "binary", minLength: 1, maxLength: 60 }) },
  )
  .filter(
    (text) =>
      !/[/\0\ufffd]/.test(text) && text !== "." && text !== ".." && Buffer.from(text).toString() === text && Buffer.byteLength(text) <= 255,
  );
const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join("/"));
/** Names of files, and how many of the first ones are handed in. */
const tree = fc.tuple(fc.uniqueArray(path, { minLength: 1, maxLength: 10 }), fc.nat(3));

/** What of it a file system takes: a file in the place of a directory is left out. */
function plant(root: string, paths: readonly string[]): Map<string, string> {
  const planted = new Map<string, string>();
  for (const [index, relative] of paths.entries()) {
    try {
      mkdirSync(dirname(join(root, relative)), { recursive: true });
      writeFileSync(join(root, relative), `content ${index}`, { flag: "wx" });
      planted.set(relative, `content ${index}`);
    } catch {
      // no such tree can be
    }
  }
  return planted;
}

function filesIn(root: string): { paths: string[]; contents: string[] } {
  const paths = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((one) => statSync(join(root, one)).isFile());
  return { paths, contents: paths.map((one) => readFileSync(join(root, one), "utf8")).sort() };
}

const folded = (text: string): string => text.normalize("NFC").toUpperCase().toLowerCase().normalize("NFC");

it("whatever a model's files are called, they are collected, served, brought here and laid out, and nothing is lost or goes elsewhere [fault B1]", async () => {
  const root = tempDir();
  const rig = await startApiRig();
  const client = createClient({ url: rig.api.origin, key: rig.key });
  let run = 0;

  async function lives(paths: readonly string[], handIns: number): Promise<void> {
    const here = join(root, String(++run));
    const workdir = join(here, "workdir");
    mkdirSync(workdir, { recursive: true });
    const planted = plant(workdir, paths);
    const id = `act-${run}`;
    const { artifacts, gaps } = await collect({
      store: rig.store,
      activation_id: id,
      attempt: 0,
      workdir: { inside: "/workspace", outside: workdir },
      outputs: { paths: ["**"], max_file_mb: 1, max_total_mb: 10 },
      // A glob leaves hidden names alone.
      handedIn: [...planted.keys()].filter((one, at) => at < handIns || /(^|\/)\./.test(one)).map((one) => `/workspace/${one}`),
      secrets: emptySecretSet,
      signal: new AbortController().signal,
    });
    expect(gaps).toEqual([]);
    expect(new Map(artifacts.map(({ source }) => [source!.slice("/workspace/".length), true])).size).toBe(planted.size);
    const result = resultOf(id, { artifacts });

    const said: string[] = [];
    const brought = await openDirectoryStore(join(here, "brought"));
    await collectFiles({ client, store: brought, collect: "all", say: (line) => said.push(line) }, result);
    expect(said).toEqual([]);
    for (const { path: place, source } of artifacts)
      expect(readFileSync(join(here, "brought", id, "attempt-0", place), "utf8")).toBe(planted.get(source!.slice("/workspace/".length)));

    const stores: Pick<ArtifactStore, "directory" | "open" | "size">[] = [brought, { ...brought, directory: null }];
    for (const [index, store] of stores.entries()) {
      expect(await layOut(here, result, { task: "t", repeat: index }, store)).toEqual([]);
      const laid = filesIn(join(here, `task_t/repeat_${index}`));
      expect(laid.contents).toEqual([...planted.values(), "null\n"].sort());
      const names = new Set(laid.paths.map(folded));
      expect(names.size).toBe(laid.paths.length); // on a file system that folds case, too
      for (const one of names) for (const other of names) expect(other.startsWith(`${one}/`)).toBe(false);
    }
    expect(readdirSync(here).sort()).toEqual(["brought", "task_t", "workdir"]);
    expect(readdirSync(join(here, "task_t")).sort()).toEqual(["repeat_0", "repeat_1"]);
    expect(readdirSync(root).sort()).toEqual(Array.from({ length: run }, (_, index) => String(index + 1)).sort());
  }

  await fc.assert(
    fc.asyncProperty(tree, ([paths, handIns]) => lives(paths, handIns)),
    { numRuns },
  );
});
