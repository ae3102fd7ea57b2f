// SPDX-License-Identifier: Apache-2.0
import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadOrCreateStateKey } from "../../src/redis/state-key.ts";

let stateDir: string;
beforeEach(async () => (stateDir = await mkdtemp(join(tmpdir(), "rc-key-"))));
afterEach(() => rm(stateDir, { recursive: true }));

test("callers at once get one key of 32 bytes, in a file for this user only", async () => {
  const keys = await Promise.all(Array.from({ length: 8 }, () => loadOrCreateStateKey(stateDir)));
  expect(new Set(keys.map((key) => key.toString("hex"))).size).toBe(1);
  expect(keys[0]).toHaveLength(32);
  expect(await readdir(stateDir)).toEqual(["secret.key"]);
  expect((await stat(join(stateDir, "secret.key"))).mode & 0o777).toBe(0o600);
  expect(await loadOrCreateStateKey(stateDir)).toEqual(keys[0]);
});

test("a damaged key is refused, not replaced", async () => {
  await writeFile(join(stateDir, "secret.key"), "c2hvcnQ=\n");
  await expect(loadOrCreateStateKey(stateDir)).rejects.toMatchObject({ code: "state_key_invalid" });
});
