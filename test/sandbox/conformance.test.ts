// SPDX-License-Identifier: Apache-2.0
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { closeSync, cpSync, mkdtempSync, openSync, rmSync, writeFileSync, mkdirSync, chmodSync, chownSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBubblewrap } from "../../src/sandbox/bubblewrap-binary.ts";
import { findCgroups } from "../../src/sandbox/find-cgroups.ts";
import { WORKER_SECRET } from "./conformance/isolation.ts";
import type { Setting } from "./conformance/setting.ts";
import { applies, CHECKS, type Verdict } from "./conformance/worker.ts";

// Each check runs in a worker process of its own user: as root, which gives each activation a uid, and as an ordinary
// user, which cannot. Node 20 does not run TypeScript, and that user may not be able to read this project: so the
// checks are compiled into a directory that everybody can read.
const ROOT = process.getuid?.() === 0;
const USER = 1001;
const vendor = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl";
const vendored = join(process.cwd(), vendor, "codex-resources/bwrap");
/** Whether this user may make control groups; another one is taken to may not. */
const CGROUPS = (await findCgroups()) !== null;
const onPath = await findBubblewrap({ path: process.env["PATH"] ?? "" });

let base: string;

beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), "rollcall-conformance-"));
  chmodSync(base, 0o755);
  const compiler = ["node_modules/typescript/bin/tsc", "--outDir", join(base, "js"), "--rootDir", ".", "--noEmit", "false"];
  const options = [
    "--target",
    "es2023",
    "--module",
    "nodenext",
    "--skipLibCheck",
    "--rewriteRelativeImportExtensions",
    "--types",
    "node",
    "--ignoreConfig",
  ];
  execFileSync(process.execPath, [...compiler, ...options, "test/sandbox/conformance/worker.ts"], { stdio: "inherit" });
  writeFileSync(join(base, "js/package.json"), '{"type":"module"}');
});

afterAll(() => rmSync(base, { recursive: true, force: true }));

describe("a root worker", () => {
  if (!ROOT) process.stderr.write("NOT TESTED: a root worker's sandboxes (uid for each activation); run these tests as root\n");
  conformance("bubblewrap", vendored, ROOT ? 0 : null);
  if (onPath !== null) conformance("bubblewrap", onPath, ROOT ? 0 : null);
  conformance("host", vendored, ROOT ? 0 : null);
});

describe("an unprivileged worker", () => {
  const uid = ROOT ? USER : (process.getuid?.() ?? USER);
  conformance("bubblewrap", vendored, uid);
  if (onPath !== null) conformance("bubblewrap", onPath, uid);
  conformance("host", vendored, uid);
});

/** `uid` null = cannot be run here. */
function conformance(provider: Setting["provider"], bwrapPath: string, uid: number | null): void {
  const title = provider === "host" ? "host" : `bubblewrap (${bwrapPath === vendored ? "of the Codex package" : bwrapPath})`;
  describe.skipIf(uid === null)(title, () => {
    const verdicts = new Map<string, string | null>();
    beforeAll(async () => {
      for (const { title, error } of await runWorker(provider, bwrapPath, uid ?? 0)) verdicts.set(title, error);
    }, 300_000);
    for (const check of CHECKS.filter((check) => applies(check, provider, uid === 0))) {
      if (check.needsCgroups === true && !(CGROUPS && uid === process.getuid?.())) {
        it.skip(`${check.title} (SKIPPED: uid ${uid} may make no control groups here)`);
        continue;
      }
      it(check.title, () => {
        expect(verdicts.has(check.title), "the worker ended before this check").toBe(true);
        expect(verdicts.get(check.title)).toBeNull();
      });
    }
  });
}

async function runWorker(provider: Setting["provider"], bwrapPath: string, uid: number): Promise<Verdict[]> {
  const home = mkdtempSync(join(base, "worker-"));
  if (ROOT) chownSync(home, uid, uid);
  chmodSync(home, 0o755);
  const setting: Setting = {
    provider,
    bwrapPath,
    codexDir: join(process.cwd(), vendor),
    stateDir: join(home, "state"),
    runtimeRoot: join(home, "shared"),
    projectDir: process.cwd(),
  };
  for (const directory of [setting.stateDir]) {
    mkdirSync(directory, { mode: 0o700 });
    if (ROOT) chownSync(directory, uid, uid);
  }
  if (spawnSync("/usr/bin/test", ["-x", join(setting.codexDir, "bin/codex")], { uid, gid: uid }).status !== 0) {
    process.stderr.write(`uid ${uid} cannot reach ${setting.codexDir}: the tests use a copy of it\n`);
    setting.codexDir = join(base, "codex");
    cpSync(join(process.cwd(), vendor), setting.codexDir, { recursive: true });
    if (bwrapPath === vendored) setting.bwrapPath = join(setting.codexDir, "codex-resources/bwrap");
  }
  const leak = openSync("/", "r");
  const stdio = Array.from({ length: 61 }, (_, fd) => (fd === 1 ? "pipe" : fd === 2 ? "inherit" : fd === 60 ? leak : "ignore"));
  const worker = spawn(process.execPath, [join(base, "js/test/sandbox/conformance/worker.js"), JSON.stringify(setting)], {
    ...(ROOT ? { uid, gid: uid } : {}),
    cwd: "/",
    env: { PATH: "/usr/bin:/bin", WORKER_SECRET },
    stdio,
  });
  closeSync(leak);
  const verdicts: Verdict[] = [];
  for await (const line of createInterface({ input: worker.stdout as NonNullable<typeof worker.stdout> }))
    verdicts.push(JSON.parse(line) as Verdict);
  return verdicts;
}
