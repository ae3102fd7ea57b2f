// SPDX-License-Identifier: Apache-2.0
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { hostAndPort, portsFurther } from "../../src/config/address.ts";
import { hoursValue, secondsValue } from "../../src/cli/options.ts";
import { admissionPolicy, leaves, loadSettings } from "../../src/config/load.ts";
import { settingsSchema } from "../../src/config/settings.ts";
import { settingsPage } from "../../src/config/table.ts";
import { activationSchema } from "../../src/contract/activation.ts";
import { tempDir } from "../support/temp-dir.ts";

const HOME = { HOME: "/home/someone" };

function tomlFile(text: string): string {
  const path = join(tempDir(), "rollcall.toml");
  writeFileSync(path, text);
  return path;
}

describe("loadSettings", () => {
  it("needs nothing: every setting has a default", async () => {
    const settings = await loadSettings({ env: HOME, file: null });
    expect(settings).toMatchObject({
      state_dir: "/home/someone/.local/state/rollcall",
      concurrency: 4,
      sandbox: { provider: "bubblewrap" },
      codex: { timeout_seconds: 600 },
      secret_key: undefined,
    });
    expect(settings.redis_url).toBeUndefined();
  });

  it("lets a flag win over a variable, and a variable over the file", async () => {
    const file = tomlFile('log_level = "warn"\n[model]\nname = "from-file"\nbase_url = "http://file/v1"\n');
    const env = { ...HOME, ROLLCALL_MODEL_BASE_URL: "http://variable/v1", ROLLCALL_LOG_LEVEL: "debug" };
    const settings = await loadSettings({ env, file, overrides: { log_level: "error", model: { name: undefined } } });
    expect(settings).toMatchObject({ log_level: "error", model: { name: "from-file", base_url: "http://variable/v1" } });
  });

  it("takes the state directory from ROLLCALL_STATE_DIR, else from XDG_STATE_HOME", async () => {
    const xdg = { ...HOME, XDG_STATE_HOME: "/xdg" };
    expect((await loadSettings({ env: xdg, file: null })).state_dir).toBe("/xdg/rollcall");
    expect((await loadSettings({ env: { ...xdg, ROLLCALL_STATE_DIR: "/own" }, file: null })).state_dir).toBe("/own");
  });

  it("takes the place of artifacts from either of its two names, and refuses both at once", async () => {
    expect((await loadSettings({ env: { ...HOME, ROLLCALL_ARTIFACTS_DIR: "/a" }, file: null })).artifacts).toBe("/a");
    expect((await loadSettings({ env: { ...HOME, ROLLCALL_ARTIFACTS: "s3://bucket/p" }, file: null })).artifacts).toBe("s3://bucket/p");
    const both = { ...HOME, ROLLCALL_ARTIFACTS: "s3://bucket/p", ROLLCALL_ARTIFACTS_DIR: "/a" };
    await expect(loadSettings({ env: both, file: null })).rejects.toThrow(/artifacts_dir: artifacts is set too/);
  });

  it("refuses credentials in the address of a bucket or its server, and does not repeat them", async () => {
    const env = { ...HOME, ROLLCALL_ARTIFACTS: "s3://key:s3cret@bucket/p", AWS_ENDPOINT_URL_S3: "http://key:s3cret@host" };
    const message = await loadSettings({ env, file: null }).catch((error: Error) => error.message);
    expect(message).toContain("artifacts: expected s3://BUCKET/PREFIX without credentials");
    expect(message).toContain("s3.endpoint: credentials do not belong here");
    expect(message).not.toContain("s3cret");
  });

  it("counts an empty variable as not set", async () => {
    expect((await loadSettings({ env: { ...HOME, REDIS_URL: "", XDG_STATE_HOME: "" }, file: null })).redis_url).toBeUndefined();
  });

  it("refuses unknown names, suggesting the nearest one of the same table", async () => {
    const file = tomlFile("concurency = 3\n[codex]\ntimeout_second = 5\nzzzzzzzzz = 1\n");
    await expect(loadSettings({ env: HOME, file })).rejects.toMatchObject({
      code: "settings_invalid",
      exitCode: 2,
      message: expect.stringMatching(
        /concurency: there is no such setting; did you mean concurrency\?[^]*codex\.timeout_second: .*did you mean timeout_seconds\?|codex\.timeout_second: .*did you mean timeout_seconds\?[^]*concurency: .*did you mean concurrency\?/,
      ) as string,
    });
  });

  it("lists every bad value at once, also limits that contradict each other", async () => {
    const file = tomlFile(
      'concurrency = 0\nredis_url = "http://x"\n[codex]\ntimeout_seconds = 10\nmcp_tool_timeout_seconds = 11\n[queue]\nlock_renew_ms = 50000\n',
    );
    const message = await loadSettings({ env: HOME, file }).catch((error: Error) => error.message);
    expect(message).toContain("concurrency: ");
    expect(message).toContain("redis_url: expected a redis:// or rediss:// URL");
    const limits = await loadSettings({
      env: HOME,
      file: tomlFile("[codex]\ntimeout_seconds = 10\nmcp_tool_timeout_seconds = 11\n[queue]\nlock_renew_ms = 50000\n"),
    }).catch((error: Error) => error.message);
    expect(limits).toContain("codex.mcp_tool_timeout_seconds: 11 is more than codex.timeout_seconds (10)");
    expect(limits).toContain("queue.lock_renew_ms: expected at most half");
  });

  it("refuses configured grants that no session could use", async () => {
    const file = tomlFile(
      '[[tool_grants]]\nname = "a.b"\ntype = "mcp"\nrequired = true\n[tool_grants.connection]\ntransport = "streamable_http"\nurl = "http://x/mcp"\n',
    );
    await expect(loadSettings({ env: HOME, file })).rejects.toThrow(/tool_grants\[0\]\.name: .*a name that Codex cannot use/);
  });

  it("refuses further Codex settings that are Rollcall's own, and a limit above 90 % of the window", async () => {
    const codex =
      '[codex]\nmodel_context_window = 1000\nmodel_auto_compact_token_limit = 901\n[codex.extra_config]\napproval_policy = "x"\n';
    const message = await loadSettings({ env: HOME, file: tomlFile(codex) }).catch((error: Error) => error.message);
    expect(message).toContain("codex.extra_config.approval_policy: Codex's approval_policy is set by Rollcall");
    expect(message).toContain("codex.model_auto_compact_token_limit: 901 is over 90 % of the context window (1000); accepted: at most 900");
    const fine = codex.replace("901", "900").replace("approval_policy", "model_verbosity");
    expect(await loadSettings({ env: HOME, file: tomlFile(fine) })).toMatchObject({ codex: { extra_config: { model_verbosity: "x" } } });
  });

  it("gives every row direct tools and no agents unless it is told otherwise, and refuses an effort that delegates", async () => {
    expect(await loadSettings({ env: HOME, file: null })).toMatchObject({ codex: { subagents: "off", tools: "direct" } });
    const codex = { subagents: "on", tools: "catalogue", reasoning_effort: "max" };
    const lines = Object.entries(codex).map(([name, value]) => `${name} = "${value}"\n`);
    expect(await loadSettings({ env: HOME, file: tomlFile(`[codex]\n${lines.join("")}`) })).toMatchObject({ codex });
    const ultra = tomlFile('[codex]\nreasoning_effort = "ultra"\n');
    await expect(loadSettings({ env: HOME, file: ultra })).rejects.toThrow('"ultra" is no effort of its own');
  });

  it("names the line of a file that is not TOML, and quotes nothing of it", async () => {
    const file = tomlFile('concurrency = 1\n[x]\nAuthorization = "Bearer s3cret-token\n');
    const message = await loadSettings({ env: HOME, file }).catch((error: Error) => error.message);
    expect(message).toMatch(/is not TOML, line [34]/);
    expect(message).not.toContain("s3cret");
  });

  it("names a file that is not there", async () => {
    await expect(loadSettings({ env: HOME, file: "/nowhere/rollcall.toml" })).rejects.toThrow("there is no such file");
  });
});

it.each([
  ["127.0.0.1:9464", { host: "127.0.0.1", port: 9464 }, "127.0.0.1:9466"],
  ["[::1]:80", { host: "::1", port: 80 }, "[::1]:82"],
  ["localhost:0", { host: "localhost", port: 0 }, "localhost:0"],
])("takes %s apart, and gives each next process the next port", (address, parts, third) => {
  expect(hostAndPort(address)).toEqual(parts);
  expect(portsFurther(address, 2)).toBe(third);
});

it("always allows the configured provider and the configured model key", async () => {
  const settings = await loadSettings({
    env: HOME,
    file: null,
    overrides: { sandbox: { provider: "host" }, model: { api_key_env: "MY_KEY" } },
  });
  expect(admissionPolicy(settings)).toEqual({
    allow_providers: ["host", "bubblewrap"],
    allow_key_env: ["MY_KEY"],
    key_origins: { MY_KEY: ["https://api.openai.com"] },
  });
});

it("a key goes to the configured model server, and where key_origins lets it; naming a variable there allows it [fault C1]", async () => {
  const settings = await loadSettings({
    env: HOME,
    file: null,
    overrides: {
      model: { base_url: "http://llm:8000/r/{capture_key}/v1" },
      allow_key_env: ["OTHER_KEY"],
      key_origins: { OPENAI_API_KEY: ["https://b.example"], THIRD_KEY: ["https://c.example"] },
    },
  });
  const { allow_key_env, key_origins } = admissionPolicy(settings);
  expect(allow_key_env).toEqual(["OPENAI_API_KEY", "OTHER_KEY", "THIRD_KEY"]);
  expect(key_origins).toEqual({
    OPENAI_API_KEY: ["http://llm:8000", "https://b.example"],
    OTHER_KEY: ["http://llm:8000"],
    THIRD_KEY: ["https://c.example"],
  });
  const wrong = loadSettings({ env: HOME, file: null, overrides: { key_origins: { OPENAI_API_KEY: ["https://b.example/v1"] } } });
  await expect(wrong).rejects.toThrow("expected an origin");
});

it("keeps docs/settings.md in step with the schema", async () => {
  await expect(settingsPage()).toMatchFileSnapshot("../../docs/settings.md");
});

describe("a time that becomes a timer", () => {
  const TIMER_MS = 2 ** 31 - 1; // Node fires a longer one at once
  const MS = { ms: 1, seconds: 1_000 };
  /** A setting, or a field of an activation: what it is called and whether it takes a value. */
  const times = [
    ...[...leaves(settingsSchema.shape, [])].map(({ path, schema }) => ({ name: path.join("."), schema })),
    ...[...leaves(activationSchema.shape, [])].map(({ path, schema }) => ({ name: `activation.${path.join(".")}`, schema })),
    ...Object.entries(activationSchema.shape.codex.unwrap().shape).map(([name, schema]) => ({ name: `activation.codex.${name}`, schema })),
  ];
  const ofUnit = (...units: string[]) => times.filter(({ name }) => units.includes(/_(ms|seconds|hours|days)$/.exec(name)?.[1] ?? ""));

  it("is at most what a timer can wait, in every setting and every field of an activation [fault B4]", () => {
    const found = ofUnit("ms", "seconds");
    expect(found.length).toBeGreaterThan(25);
    for (const { name, schema } of found) {
      const unit = name.endsWith("_ms") ? MS.ms : MS.seconds;
      expect({ name, taken: schema.safeParse(Math.floor(TIMER_MS / unit) + 1).success }).toEqual({ name, taken: false });
      expect({ name, taken: schema.safeParse(Number.POSITIVE_INFINITY).success }).toEqual({ name, taken: false });
    }
    for (const { name, schema } of ofUnit("hours", "days"))
      expect({ name, taken: schema.safeParse(1e6).success }).toEqual({ name, taken: false });
  });

  it("is so in options of commands, too [fault B4]", () => {
    for (const text of ["2147484", "99999999999"]) expect(() => secondsValue(text)).toThrow(/at most 2147483/);
    expect(secondsValue("2147483")).toBe(2_147_483);
    expect(() => hoursValue("87601")).toThrow(/at most 87600/);
  });
});
