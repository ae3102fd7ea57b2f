// SPDX-License-Identifier: Apache-2.0
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findBubblewrap } from "../../src/sandbox/bubblewrap-binary.ts";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap.ts";

const vendored = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/codex-resources/bwrap";
let base: string;

beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), "rollcall-bwrap-"));
  writeFileSync(join(base, "bwrap"), "#!/bin/sh\necho bubblewrap 0.4.1\necho '    --args FD'\n");
  chmodSync(join(base, "bwrap"), 0o755);
});

afterAll(() => rmSync(base, { recursive: true, force: true }));

it("a bwrap on the PATH that is too old is passed over for the vendored one", async () => {
  expect(await findBubblewrap({ path: `${base}:/no/such/directory:relative`, vendored })).toBe(vendored);
  expect(await findBubblewrap({ path: base })).toBeNull();
});

it("probe() says what is missing instead of failing: no bwrap, a bwrap that is too old", async () => {
  const stateDir = join(base, "state");
  const none = await createBubblewrapProvider({ stateDir, bwrapPath: null }).probe();
  expect(none).toMatchObject({ ok: false, summary: expect.stringContaining("install the package bubblewrap") });
  const old = await createBubblewrapProvider({ stateDir, bwrapPath: join(base, "bwrap") }).probe();
  expect(old).toMatchObject({ ok: false, summary: expect.stringContaining("lacks --json-status-fd") });
});
