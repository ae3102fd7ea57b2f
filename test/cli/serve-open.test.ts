// SPDX-License-Identifier: Apache-2.0
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { hashApiKey } from "../../src/api/api-keys.ts";
import { requireChosenKey } from "../../src/cli/api-keys-of.ts";
import { loadSettings } from "../../src/config/load.ts";
import { startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

it("serve refuses to listen where other hosts reach it without a chosen key, leaves nothing, and listens with one [C7]", async () => {
  const root = tempDir();
  mkdirSync(join(root, "run"), { mode: 0o700 });
  const env = { XDG_STATE_HOME: join(root, "state"), XDG_RUNTIME_DIR: join(root, "run"), TMPDIR: root };
  const args = ["serve", "--out", join(root, "out"), "--host", "0.0.0.0", "--port", "0"];
  const open = startRollcall(args, { env });
  onTestFinished(() => void open.child.kill("SIGTERM"));
  const { code, stderr, stdout } = await open.ended;
  expect([code, stdout]).toEqual([2, ""]);
  for (const word of ["0.0.0.0", "--api-keys-file", "ROLLCALL_API_KEY", "127.0.0.1"]) expect(stderr).toContain(word);
  expect([existsSync(join(root, "out")), existsSync(join(root, "state"))]).toEqual([false, false]);

  const file = join(root, "keys");
  writeFileSync(file, `me read ${hashApiKey("k")}\n`);
  const serve = startRollcall([...args, "--api-keys-file", file], { env });
  onTestFinished(() => void serve.child.kill("SIGKILL"));
  await vi.waitFor(() => expect(serve.stdout(), serve.stderr()).toMatch(/listening on http:\/\/0\.0\.0\.0:\d+/), { timeout: 60_000 });
  const origin = serve.stdout().replace(/[\s\S]*0\.0\.0\.0:(\d+)[\s\S]*/, "http://127.0.0.1:$1");
  for (const path of ["/dashboard", "/dashboard/api/queues", "/v1/workers"])
    expect([path, (await fetch(origin + path)).status]).toEqual([path, 401]);
  expect((await fetch(`${origin}/dashboard/api/queues`, { headers: { authorization: "Bearer k" } })).status).toBe(200);
  serve.child.kill("SIGTERM");
  expect((await serve.ended).code).toBe(0);
}, 120_000);

it.each([
  ["127.0.0.1", {}, true],
  ["localhost", {}, true],
  ["0.0.0.0", {}, false],
  ["::", { ROLLCALL_API_KEY: "" }, false],
  ["10.1.2.3", { ROLLCALL_API_KEY: "k" }, true],
  ["10.1.2.3", { ROLLCALL_API_KEYS_FILE: "/etc/keys" }, true],
] as const)("on %s with %j it may start: %s [C7]", async (host, variables, may) => {
  const env = { ROLLCALL_API_HOST: host, ROLLCALL_STATE_DIR: "/nonexistent", ...variables };
  const settings = await loadSettings({ env, file: null });
  const check = (): void => requireChosenKey(settings, env);
  if (may) expect(check).not.toThrow();
  else expect(check).toThrow(expect.objectContaining({ code: "api_keys_missing" }));
});
