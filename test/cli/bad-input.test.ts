// SPDX-License-Identifier: Apache-2.0
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { failureOf } from "../../src/cli/fail.ts";
import { nodeTooOld } from "../../src/cli/startable.ts";
import { openFilesLimit, tooFewDescriptors } from "../../src/host/descriptors.ts";
import { openOutputDir } from "../../src/rollout/output-dir.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

let root: string;
let tasks: string;
let out: string;
beforeEach(() => {
  root = tempDir();
  tasks = join(root, "tasks.jsonl");
  out = join(root, "out");
});

const GRANT = { name: "office", type: "mcp", required: true };

function writeTasks(rows: readonly unknown[]): void {
  writeFileSync(tasks, rows.map((row) => `${typeof row === "string" ? row : JSON.stringify(row)}\n`).join(""));
}

it("rows that are recorded as refused are counted as such by progress, status and the queue [fault D8]", async () => {
  writeTasks([{ id: "a", input: "" }, "no json"]);
  mkdirSync(join(root, "run"), { mode: 0o700 });
  const env = { XDG_STATE_HOME: join(root, "state"), XDG_RUNTIME_DIR: join(root, "run") };
  const run = await rollcall(["run", tasks, "--out", out, "--skip-invalid", "--json"], { env });
  expect(run, run.stderr).toMatchObject({ code: 4, stdout: expect.stringContaining('"refused":2') });
  const status = await rollcall(["status", "--out", out], { env });
  expect(status, status.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining("2 ended (2 refused), 0 running") });
  const again = await rollcall(["run", tasks, "--out", out, "--skip-invalid", "--json"], { env });
  expect(again, again.stderr).toMatchObject({ code: 4, stdout: expect.stringContaining('"refused":2') });
  const collected = await rollcall(["collect", "--out", out], { env });
  expect(collected).toMatchObject({ code: 0, stderr: expect.stringContaining("collected 2 results") });
});

it("no word of a task file steers the terminal, refused or not: ids, field names, values [fault C8]", async () => {
  const steering = "\u001b[2J\u009b31m\u061c\u202e\u2028";
  writeTasks([
    { id: `a${steering}`, input: "" },
    { id: "b", input: "x", [`field${steering}`]: 1, metadata: { [`key${steering}`]: 7 } },
    { id: "c", input: "x", sandbox: { env: { [`V${steering}`]: "1" } } },
  ]);
  for (const flags of [[], ["--skip-invalid"]]) {
    const { code, stderr, stdout } = await rollcall(["run", tasks, "--out", out, ...flags]);
    expect(code).not.toBe(0);
    expect(stderr).toContain("a\\u001b[2J\\u009b31m\\u061c\\u202e\\u2028");
    expect(`${stderr}${stdout}`).not.toMatch(/[\u001b\u009b\u061c\u202e\u2028]/);
  }
});

describe("rollcall run refuses, with exit code 2 and nothing run,", () => {
  it.each<[string, unknown[], RegExp]>([
    ["an empty file", [], /has no tasks; nothing was run/],
    [
      "a file that is not JSONL",
      ["id,input", "1,x"],
      /2 of 2 rows[^]*line 1: it is not JSON; accepted: one JSON object per line[^]*line 2:/,
    ],
    [
      "one bad row among 200",
      Array.from({ length: 200 }, (_, index) => ({ id: `t${index}`, input: index === 100 ? "" : "x" })),
      /1 of 200 rows[^]*line 101 \(id "t100"\): input: the user's text is empty[^]*Nothing was run\.[^]*--skip-invalid/,
    ],
    [
      "a transport that there is none of [fault D9]",
      [{ id: "a", input: "x", tool_grants: [{ ...GRANT, connection: { transport: "http", url: "http://x/" } }] }],
      /tool_grants\[0\]\.connection\.transport: there is no such kind; accepted: "streamable_http" or "stdio"\n/,
    ],
    [
      "a pretty-printed row, in one sentence [fault D9]",
      [JSON.stringify({ id: "a", input: "x", tool_grants: [], metadata: { a: 1, b: 2 } }, null, 2)],
      /^rollcall: [^\n]*tasks\.jsonl is JSON over several lines; a task file has one task on each line\. `jq -c [^\n]*` makes one\nNothing was run\./,
    ],
    [
      "duplicate ids",
      [
        { id: "a", input: "x" },
        { id: "a", input: "y" },
      ],
      /line 2 \(id "a"\): id: the id "a" is already that of line 1/,
    ],
    [
      "a grant URL that is not http",
      [{ id: "a", input: "x", tool_grants: [{ ...GRANT, connection: { transport: "streamable_http", url: "ftp://x/" } }] }],
      /line 1 \(id "a"\): tool_grants\[0\]\.connection\.url: expected an absolute http or https URL/,
    ],
    [
      "a header that HTTP forbids",
      [
        {
          id: "a",
          input: "x",
          tool_grants: [
            { ...GRANT, connection: { transport: "streamable_http", url: "http://x/", headers: { "a b": "s3cret", c: "s3cret\n" } } },
          ],
        },
      ],
      /"a b" is not an HTTP header name[^]*headers\.c: the value holds a character/,
    ],
    [
      "a prompt of 10 MB",
      [{ id: "a", input: "x".repeat(10_000_000) }],
      /input: the user's text has 10000000 characters, Codex takes 1048576/,
    ],
    [
      "a missing file to place",
      [{ id: "a", input: "x", files: [{ from: "gone.docx" }] }],
      /files\[0\]\.from: there is no file .*gone\.docx/,
    ],
    [
      "a misspelt field",
      [{ id: "a", input: "x", tool_grant: [] }],
      /there is no field "tool_grant" in the short form; did you mean tool_grants\?/,
    ],
  ])("%s", async (_what, rows, expected) => {
    writeTasks(rows);
    const { code, stdout, stderr } = await rollcall(["run", tasks, "--out", out]);
    expect(stderr).toMatch(expected);
    expect({ code, stdout, made: existsSync(out) }).toEqual({ code: 2, stdout: "", made: false });
    expect(stderr).not.toContain("s3cret");
    expect(stderr).not.toContain("    at "); // no stack
  });

  it("a task file that is not there", async () => {
    const { code, stderr } = await rollcall(["run", tasks, "--out", out]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: `rollcall: cannot read the task file ${tasks}: there is no such file\n` });
  });

  it("an output directory that is not writable", async () => {
    const asRoot = process.getuid?.() === 0;
    const closed = join(root, "closed");
    mkdirSync(closed, { mode: asRoot ? 0o755 : 0o555 });
    chmodSync(root, 0o755);
    writeTasks([{ id: "a", input: "x" }]);
    const { code, stderr } = await rollcall(["run", tasks, "--out", join(closed, "out")], asRoot ? { uid: 65_534 } : {});
    expect(stderr).toMatch(/cannot use .*closed\/out as the output directory: permission denied \(not writable\); choose another --out/);
    expect(code).toBe(2);
  });

  it("an output directory that is a file", async () => {
    writeTasks([{ id: "a", input: "x" }]);
    const { code, stderr } = await rollcall(["run", tasks, "--out", tasks]);
    expect(stderr).toContain("is a file, not a directory");
    expect(code).toBe(2);
  });

  it("an output directory of another task file, naming both", async () => {
    writeTasks([{ id: "a", input: "x" }]);
    mkdirSync(out);
    const tasksThere = { path: "/elsewhere/old.jsonl", sha256: "0".repeat(64) };
    writeFileSync(
      join(out, "manifest.json"),
      JSON.stringify({ schema: "rollcall.manifest/1", run_id: "r", created_at: "", tasks: tasksThere, settings: {}, versions: {} }),
    );
    const { code, stderr } = await rollcall(["run", tasks, "--out", out]);
    expect(stderr).toMatch(/belongs to another task file \(\/elsewhere\/old\.jsonl/);
    expect(stderr).toContain(tasks);
    expect({ code, files: readdirSync(out) }).toEqual({ code: 2, files: ["manifest.json"] });
  });

  it("an output directory that another process works in, naming it", async () => {
    writeTasks([{ id: "a", input: "x" }]);
    const held = await openOutputDir(out);
    const { code, stderr } = await rollcall(["run", tasks, "--out", out]);
    await held.close();
    expect(stderr).toContain(`is in use by process ${process.pid} `);
    expect(code).toBe(2);
  });

  it("settings that do not exist, suggesting what is meant", async () => {
    writeTasks([{ id: "a", input: "x" }]);
    writeFileSync(join(root, "rollcall.toml"), "concurrencyy = 2\n");
    const { code, stderr } = await rollcall(["run", tasks, "--out", out, "--config", join(root, "rollcall.toml")]);
    expect(stderr).toContain("concurrencyy: there is no such setting; did you mean concurrency?");
    expect(code).toBe(2);
  });

  it.each([
    [["--concurency", "2"], /unknown option '--concurency'[^]*Did you mean --concurrency\?/],
    [["--concurrency", "0"], /expected a whole number of at least 1, got "0"/],
    [["--timeout-seconds", "NaN"], /expected seconds above 0, at most 2147483, got "NaN"/],
    [["--retry", "infrastructure"], /expected infra, failed, none/],
    [["--sandbox", "hosts"], /expected bubblewrap, host; did you mean host\?/],
    [["--mcp-tool-timeout-seconds", "700"], /codex\.mcp_tool_timeout_seconds: 700 is more than codex\.timeout_seconds \(600\)/],
  ])("%j", async (flags, expected) => {
    writeTasks([{ id: "a", input: "x" }]);
    const { code, stderr } = await rollcall(["run", tasks, "--out", out, ...flags]);
    expect(stderr).toMatch(expected);
    expect(code).toBe(2);
  });

  it("a command without --out", async () => {
    const { code, stderr } = await rollcall(["run", tasks]);
    expect(stderr).toContain("required option '--out <dir>' not specified");
    expect(code).toBe(2);
  });
});

it("a detached run that refuses its input says so before the terminal is given back", async () => {
  writeTasks([]);
  const { code, stderr } = await rollcall(["run", tasks, "--out", out, "--detach"]);
  expect(stderr).toMatch(/ended at once with exit code 2; see .*rollcall\.log/);
  expect(code).toBe(2);
});

describe("rollcall", () => {
  it.each(["", "run", "worker", "doctor", "schema", "collect"])("%s --help says how it is used and exits with 0", async (command) => {
    const { code, stdout } = await rollcall([...command.split(" ").filter(Boolean), "--help"]);
    expect(stdout).toContain(`Usage: rollcall${command === "" ? "" : ` ${command}`}`);
    expect(code).toBe(0);
  });

  it("suggests the command that is meant", async () => {
    const { code, stderr } = await rollcall(["rum"]);
    expect(stderr).toMatch(/unknown command 'rum'[^]*Did you mean run\?/);
    expect(code).toBe(2);
  });

  it("collect refuses a directory without a run", async () => {
    const { code, stderr } = await rollcall(["collect", "--out", join(root, "none")]);
    expect(stderr).toContain("holds no run");
    expect({ code, made: existsSync(join(root, "none")) }).toEqual({ code: 2, made: false });
  });
});

describe("rollcall doctor", () => {
  it("says ok, warn or fail about each part, and fails without a Redis server on PATH", async () => {
    const { code, stdout } = await rollcall(["doctor"], { env: { PATH: "/nonexistent" } });
    for (const part of ["codex", "sandbox", "redis", "key", "model", "disk"])
      expect(stdout).toMatch(new RegExp(`^(ok|warn|fail) +${part} `, "m"));
    expect(stdout).toMatch(/^fail +redis +no redis-server or valkey-server on PATH\. Install one: /m);
    expect(code).toBe(1);
  });

  it("fails when Codex is missing, naming the setting", async () => {
    const { code, stdout } = await rollcall(["doctor"], { env: { CODEX_BIN: "/nowhere/codex" } });
    expect(stdout).toMatch(/^fail +codex +The Codex executable \/nowhere\/codex does not exist/m);
    expect(code).toBe(1);
  });

  it("never shows the password of a Redis that does not answer", async () => {
    const { code, stdout, stderr } = await rollcall(["doctor"], { env: { REDIS_URL: "redis://:s3cret@127.0.0.1:1" } });
    expect(stdout).toMatch(/^fail +redis +no answer from the Redis at redis:\/\/127\.0\.0\.1:1/m);
    expect(stdout).toMatch(/^fail +key +ROLLCALL_SECRET_KEY is not set/m);
    expect(stdout + stderr).not.toContain("s3cret");
    expect(code).toBe(1);
  });
});

describe("a wrong environment is said in one sentence with its remedy:", () => {
  it("a Node that is too old, before anything else [fault D9]", async () => {
    const older = encodeURIComponent('Object.defineProperty(process.versions, "node", { value: "18.20.4" })');
    const { code, stderr } = await rollcall(["doctor"], { env: { NODE_OPTIONS: `--import data:text/javascript,${older}` } });
    expect(stderr).toBe(
      "rollcall: Node 18.20.4 is too old: Rollcall needs 20.19 or newer (https://nodejs.org, or your system's package manager)\n",
    );
    expect(code).toBe(2);
    const { engines } = JSON.parse(readFileSync("package.json", "utf8")) as { engines: { node: string } };
    expect(engines.node).toBe(">=20.19");
    expect([nodeTooOld("20.19.0"), nodeTooOld("22.1.0"), nodeTooOld("20.18.3") === null]).toEqual([null, null, false]);
  });

  it.skipIf(process.getuid?.() !== 0)("a HOME of somebody else [fault D9]", async () => {
    const home = join(root, "home");
    mkdirSync(home, { mode: 0o700 });
    const shared = join(root, "shared");
    mkdirSync(shared);
    chmodSync(shared, 0o777);
    chmodSync(root, 0o755);
    writeTasks([{ id: "a", input: "x" }]);
    const env = { HOME: join(home, "user"), TMPDIR: shared };
    const { code, stderr } = await rollcall(["run", tasks, "--out", join(shared, "out"), "--model", "m"], { env, uid: 65_534 });
    expect(stderr).toMatch(/^rollcall: cannot use .*home\/user.*: permission denied.*; set state_dir \(ROLLCALL_STATE_DIR\)/m);
    expect(stderr).not.toMatch(/internal error|realpath/);
    expect(code).toBe(2);
  });

  it.each([
    [64, ""],
    [100, ""],
    [300, ", or use --concurrency 2"],
  ])("%i file descriptors, with the number that is needed [fault D10]", (limit, fewer) => {
    writeTasks([{ id: "a", input: "x" }]);
    const command = [process.execPath, "dist/src/cli/main.js", "run", tasks, "--out", out, "--model", "m", "--concurrency", "8"];
    const run = spawnSync("sh", ["-c", `ulimit -n ${limit}; exec "$@"`, "sh", ...command], { encoding: "utf8" });
    expect(run.stderr).toBe(
      `rollcall: this process may open ${limit} files at once, and 8 sessions at once need 416: raise that first ` +
        "(`ulimit -n 416`; systemd: LimitNOFILE=416; Docker: --ulimit nofile=416)" +
        `${fewer}\n`,
    );
    expect({ code: run.status, made: existsSync(out) }).toEqual({ code: 2, made: false });
  });

  it("what the system refuses, wherever it comes up [fault D9]", () => {
    const thrown = (code: string): Error => Object.assign(new Error(`${code}: x`), { code, syscall: "open", path: "/some/place" });
    expect(failureOf(thrown("EACCES"))).toMatchObject({
      text: expect.stringMatching(/^rollcall: \/some\/place: permission denied: /),
      exitCode: 75,
    });
    expect(failureOf(thrown("ENOSPC")).text).toContain("/some/place: the disk is full: make room");
    expect(failureOf(thrown("EMFILE")).text).toContain("ulimit -n");
    expect(failureOf(thrown("EISDIR"))).toMatchObject({ text: expect.stringContaining("internal error"), exitCode: 70 });
    expect(tooFewDescriptors(280, 4)).toContain(", or use --concurrency 1");
    expect(tooFewDescriptors(336, 4)).toBeNull();
    expect(openFilesLimit("Max open files            1024                 4096                 files\n")).toBe(1_024);
    expect(openFilesLimit("Max open files            unlimited            unlimited            files\n")).toBeNull();
  });
});
