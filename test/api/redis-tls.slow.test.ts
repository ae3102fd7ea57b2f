// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { freePort, startTestRedis } from "../support/redis.ts";
import { startRollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";
import { asked, callApi } from "./rig.ts";

/** What a user of ours needs (docs/operations.md says it). */
const ACL = "on >acl-pw% ~{rollcall}* &{rollcall}* +@all -@dangerous -@admin +info +client|setname +client|list".split(" ");

it("Redis over TLS with an ACL user: the API serves, an end is recorded, and a wrong password or an unknown authority is said without the secret", async () => {
  const root = tempDir();
  const at = (name: string): string => join(root, name);
  const openssl = (...args: string[]): void => void execFileSync("openssl", args, { cwd: root, stdio: "pipe" });
  openssl(
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-keyout",
    "ca.key",
    "-out",
    "ca.pem",
    "-days",
    "2",
    "-subj",
    "/CN=test",
  );
  openssl(
    "req",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-keyout",
    "redis.key",
    "-out",
    "redis.csr",
    "-subj",
    "/CN=localhost",
    "-addext",
    "subjectAltName=DNS:localhost",
  );
  openssl(
    "x509",
    "-req",
    "-in",
    "redis.csr",
    "-CA",
    "ca.pem",
    "-CAkey",
    "ca.key",
    "-CAcreateserial",
    "-out",
    "redis.pem",
    "-days",
    "2",
    "-copy_extensions",
    "copy",
  );
  const port = await freePort();
  const tls = [
    "--tls-port",
    String(port),
    "--tls-cert-file",
    at("redis.pem"),
    "--tls-key-file",
    at("redis.key"),
    "--tls-ca-cert-file",
    at("ca.pem"),
    "--tls-auth-clients",
    "no",
  ];
  const redis = await startTestRedis({ tcp: { password: "default-pw" }, args: [...tls, "--user", "rollcall", ...ACL] });
  onTestFinished(() => redis.stop());

  const env = {
    NODE_EXTRA_CA_CERTS: at("ca.pem"),
    REDIS_URL: `rediss://rollcall:${encodeURIComponent("acl-pw%")}@localhost:${port}/0`,
    ROLLCALL_SECRET_KEY: randomBytes(32).toString("base64"),
    ROLLCALL_ARTIFACTS_DIR: at("store"),
    ROLLCALL_API_KEY: "the-key",
    ROLLCALL_API_PORT: "0",
    XDG_STATE_HOME: at("state"),
  };
  const serve = startRollcall([], { env, entry: "workers/api.js" });
  onTestFinished(() => void serve.child.kill("SIGKILL"));
  const origin = await vi.waitFor(
    () => {
      const found = /listening on (\S+)/.exec(serve.stdout())?.[1];
      expect(found, serve.stderr()).toBeDefined();
      return found!;
    },
    { timeout: 60_000 },
  );
  const key = "the-key";
  expect((await callApi(origin, "/readyz", {})).body).toMatchObject({ ready: true, redis: "ok" });
  expect((await callApi(origin, "/v1/activations", { key, body: asked("a") })).status).toBe(202);
  expect((await callApi(origin, "/v1/activations/a", { key, method: "DELETE" })).body).toMatchObject({ outcome: "done" });
  expect((await callApi(origin, "/v1/activations/a/result?wait=60", { key })).body).toMatchObject({ status: "cancelled" });
  serve.child.kill("SIGTERM");
  const ended = await serve.ended;
  expect([ended.code, ended.stderr.includes("NOPERM")]).toEqual([0, false]);

  for (const wrong of [{ REDIS_URL: env.REDIS_URL.replace("acl-pw", "other-pw") }, { NODE_EXTRA_CA_CERTS: "" }]) {
    const refused = await startRollcall([], { env: { ...env, ...wrong }, entry: "workers/api.js" }).ended;
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(`rediss://localhost:${port}`);
    for (const secret of ["acl-pw", "other-pw", "the-key", readFileSync(at("redis.key"), "utf8").slice(30, 60)])
      expect(refused.stderr + ended.stderr).not.toContain(secret);
  }
});
