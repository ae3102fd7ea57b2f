// SPDX-License-Identifier: Apache-2.0
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { CODEX_INTEGRITY } from "../../src/codex/integrity.ts";
import { PROFILED_VERSIONS } from "../../src/codex/profile.ts";
import { codexPlatform } from "../../src/codex/package-trees.ts";
import { codexRegistry } from "../support/codex-registry.ts";
import { placeFakeCodex } from "../support/fake-codex-binary.ts";
import { rollcall, type CommandEnd } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";
import lock from "../../package-lock.json" with { type: "json" };

let state: string;
beforeEach(() => {
  state = tempDir();
});

const install = (version: string, env: Record<string, string>): Promise<CommandEnd> =>
  rollcall(["codex", "install", version], { env: { ROLLCALL_STATE_DIR: state, ...env } });
const inState = (): string[] => (existsSync(join(state, "codex")) ? readdirSync(join(state, "codex")) : []);
const treeOf = (version: string): string => {
  const { name, triple } = codexPlatform()!;
  return join(state, "codex", version, "node_modules", name, "vendor", triple);
};

async function codexLines(settings = ""): Promise<{ state: string; text: string }[]> {
  const config = join(state, "rollcall.toml");
  writeFileSync(config, settings);
  const { stdout } = await rollcall(["doctor", "--json", "--config", config], { env: { ROLLCALL_STATE_DIR: state } });
  return (JSON.parse(stdout) as { state: string; what: string; text: string }[]).filter(({ what }) => what === "codex");
}

describe("rollcall codex install", () => {
  it("fetches a version, records npm's digest of one that it does not know, and leaves it alone the second time", async () => {
    const { env, integrities, fetched } = await codexRegistry({ version: "9.9.9" });
    const first = await install("9.9.9", env);
    expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining("fetching Codex 9.9.9") });
    expect(first.stdout).toContain(`Codex 9.9.9 is installed: ${treeOf("9.9.9")}/bin/codex`);
    expect(first.stdout).toContain(`what npm's registry gave was recorded: ${integrities["9.9.9"]}`);
    expect(first.stdout).toContain('it has no profile here and is read as 0.171.0; workers take it with unknown_version = "try"');
    expect(inState()).toEqual(["9.9.9"]);
    const record: unknown = JSON.parse(readFileSync(join(state, "codex", "9.9.9", "installed.json"), "utf8"));
    expect(record).toMatchObject({ version: "9.9.9", integrity: integrities["9.9.9"], pinned: false });

    const second = await install("9.9.9", env);
    expect(second).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining("Codex 9.9.9 was there already") });
    expect(fetched()).toBe(1);

    // Workers look where it was put.
    expect((await codexLines()).at(-1)).toMatchObject({
      state: "warn",
      text: expect.stringContaining("9.9.9 cannot be run: Codex 9.9.9 has no profile"),
    });
    expect((await codexLines('[codex]\nunknown_version = "try"\n')).at(-1)).toMatchObject({
      state: "warn",
      text: expect.stringMatching(/^9\.9\.9 .*for sessions that name this version; it has no profile and is read as 0\.171\.0/),
    });
  });

  it("knows the digests that are locked, of every platform that npm serves a profiled version for [fault C11]", () => {
    const locked: Record<string, Record<string, string>> = {};
    for (const [path, entry] of Object.entries(lock.packages as Record<string, { version?: string; integrity?: string }>)) {
      const match = /@openai\/codex-\w+-\w+$/.test(path) ? /^(\d+\.\d+\.\d+)-(.+)$/.exec(entry.version ?? "") : null;
      if (match !== null && entry.integrity !== undefined) (locked[match[1]!] ??= {})[match[2]!] = entry.integrity;
    }
    expect(CODEX_INTEGRITY).toEqual(locked);
    const all = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64", "win32-arm64", "win32-x64"];
    // npm answers 404 for the other platforms of 0.144.4; docs/codex-versions.md says so. A version that is added has to have them all.
    for (const version of PROFILED_VERSIONS)
      expect(Object.keys(CODEX_INTEGRITY[version]!).sort(), version).toEqual(version === "0.144.4" ? ["linux-x64"] : all);
  });

  it.each([
    ["another digest", undefined],
    ["that digest with other content", CODEX_INTEGRITY["0.171.0"]![codexPlatform()!.id]],
  ])("keeps nothing that is not what it knows by its digest, from a registry that has %s [R48]", async (_what, claims) => {
    const { env, fetched } = await codexRegistry({ version: "0.171.0", ...(claims === undefined ? {} : { claims }) });
    const { code, stderr } = await install("0.171.0", env);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining("is not what this Rollcall knows by its digest") });
    expect([fetched() > 0, inState()]).toEqual([claims !== undefined, []]);
  });

  it("keeps nothing that says that it is another version [R48]", async () => {
    const { env } = await codexRegistry({ version: "9.9.9", says: "9.9.8" });
    const { code, stderr } = await install("9.9.9", env);
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining("is 9.9.8, but 9.9.9 is required") });
    expect(inState()).toEqual([]);
  });

  it("says what to do without such a version, without a registry, and without npm", async () => {
    const { env } = await codexRegistry({ version: "9.9.9" });
    expect((await install("9.9.7", env)).stderr).toContain("npm's registry has no Codex 9.9.7 for");
    const gone = await install("9.9.9", { ...env, npm_config_registry: "http://127.0.0.1:1" });
    expect(gone.stderr).toMatch(
      /npm does not reach its registry for Codex 9\.9\.9 .*ECONNREFUSED.*or copy its package's vendor.*codex_bin/,
    );
    const without = await install("9.9.9", { ...env, PATH: "/nowhere" });
    expect(without).toMatchObject({ code: 2, stderr: expect.stringMatching(/there is no npm on PATH: install npm, or copy.*codex_bin/) });
    expect((await install("latest", env)).stderr).toContain("Expected an exact version");
    expect(inState()).toEqual([]);
  });

  it("makes one installation of two at once, removes what a killed one left and replaces what does not work", async () => {
    const { env } = await codexRegistry({ version: "9.9.9" });
    const left = join(state, "codex", ".fetching.999999999.1.abcdef01", "node_modules");
    mkdirSync(left, { recursive: true });
    placeFakeCodex(join(treeOf("9.9.9"), "bin"), "", "9.9.8");
    expect((await codexLines('[codex]\nunknown_version = "try"\n')).at(-1)!.text).toMatch(/^9\.9\.9 cannot be run: .*9\.9\.8/);
    const both = await Promise.all([install("9.9.9", env), install("9.9.9", env)]);
    for (const { code, stderr } of both) expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
    expect(inState()).toEqual(["9.9.9"]);
    expect((await install("9.9.9", env)).stdout).toContain("was there already");
  });
});
