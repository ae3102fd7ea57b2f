// SPDX-License-Identifier: Apache-2.0
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { binaryStamp, checkCodexVersion, checkedCodex, findCodex, PACKAGED_CODEX_VERSION } from "../../src/codex/binary.ts";
import { PROFILED_VERSIONS } from "../../src/codex/profile.ts";
import manifest from "../../package.json" with { type: "json" };

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "rollcall-binary-"));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

async function executable(name: string, script: string): Promise<string> {
  const path = join(dir, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, script, { mode: 0o755 });
  await chmod(path, 0o755);
  return path;
}

describe("findCodex", () => {
  it.each([...PROFILED_VERSIONS])(
    "finds the native binary of %s, with its tools and bwrap, and it says that version [R48]",
    async (version) => {
      const binary = await checkedCodex({ version });
      expect(binary).toMatchObject({ version, profile: { version }, key: `codex-${version}`, entry: "bin/codex", tools: "codex-path" });
      expect(binary.bwrap).toBe(join(binary.hostDir, "codex-resources", "bwrap"));
      expect(binary).not.toHaveProperty("only");
      expect(await checkedCodex({ version, codexBin: join(binary.hostDir, binary.entry) })).toEqual(binary);
    },
  );

  it("has the version that is locked as the packaged one, and the others under an alias each [R48]", () => {
    expect(PACKAGED_CODEX_VERSION).toBe(manifest.dependencies["@openai/codex"]);
    const aliases = Object.entries(manifest.devDependencies).filter(([, what]) => what.startsWith("npm:@openai/codex@"));
    const others = PROFILED_VERSIONS.filter((version) => version !== PACKAGED_CODEX_VERSION);
    expect(aliases).toEqual(others.map((version) => [`codex-${version}`, `npm:@openai/codex@${version}`]));
  });

  it("refuses a version that is not installed, naming those that are and how to get it [R48]", async () => {
    await expect(findCodex({ version: "0.144.5", unknown: "try" })).rejects.toMatchObject({
      code: "codex_version_mismatch",
      message: expect.stringMatching(/0\.144\.5.*0\.171\.0, 0\.144\.4.*rollcall codex install 0\.144\.5/),
    });
  });

  it("refuses a version that has no profile, unless it is to be tried [R48]", async () => {
    const codexBin = await executable("unprofiled", "#!/bin/sh\necho codex-cli 9.9.9\n");
    await expect(findCodex({ version: "9.9.9", codexBin })).rejects.toMatchObject({
      code: "codex_version_unknown",
      message: expect.stringMatching(/9\.9\.9.*0\.171\.0, 0\.144\.4.*unknown_version/),
    });
    expect((await findCodex({ version: "9.9.9", codexBin, unknown: "try" })).profile.version).toBe(PROFILED_VERSIONS[0]);
  });

  it("says what to do when the platform package is missing", async () => {
    await expect(findCodex({ version: "0.171.0", searchFrom: pathToFileURL(join(dir, "index.js")) })).rejects.toMatchObject({
      code: "binary_missing",
      message: expect.stringContaining("--include=optional"),
    });
  });

  it("takes a binary that stands alone, by its real name", async () => {
    const path = await executable("my-codex", "#!/bin/sh\necho codex-cli 0.144.4\n");
    await mkdir(join(dir, "links"));
    await symlink(path, join(dir, "links", "codex"));
    const binary = await checkedCodex({ version: "0.144.4", codexBin: join(dir, "links", "codex") });
    expect(binary).toMatchObject({
      hostDir: expect.stringContaining(basename(dir)),
      entry: "my-codex",
      only: ["my-codex"],
      tools: null,
      bwrap: null,
    });
  });

  it("takes a binary of 0.171.0 that stands alone only with codex-code-mode-host beside it, and then brings both along", async () => {
    const codexBin = await executable("lone/codex", "#!/bin/sh\necho codex-cli 0.171.0\n");
    const wanted = { version: "0.171.0", codexBin };
    await expect(checkedCodex(wanted)).rejects.toMatchObject({
      code: "codex_incomplete",
      message: expect.stringMatching(/needs codex-code-mode-host beside it.*Copy/),
    });
    await executable("lone/codex-code-mode-host", "#!/bin/sh\n");
    const binary = await checkedCodex(wanted);
    expect(binary.only).toEqual(["codex", "codex-code-mode-host"]);
    // What sessions run must stay what was checked, of both.
    await executable("lone/codex-code-mode-host", "#!/bin/sh\nexit 1\n");
    expect(await binaryStamp(binary)).not.toBe(binary.stamp);
  });

  it.each([
    ["does not exist", async () => join(dir, "nothing"), "does not exist"],
    ["is not executable", async () => (await writeFile(join(dir, "plain"), "x"), join(dir, "plain")), "is not executable"],
    ["is npm's launcher", () => executable("codex.js", "#!/usr/bin/env node\n"), "native binary"],
  ])("refuses a codex_bin that %s", async (_what, make, message) => {
    if (message === "is not executable" && process.getuid?.() !== 0) await chmod(dir, 0o755);
    await expect(findCodex({ version: "0.144.4", codexBin: await make() })).rejects.toMatchObject({
      code: "binary_missing",
      message: expect.stringContaining(message),
    });
  });
});

describe("checkCodexVersion", () => {
  const wrong = PROFILED_VERSIONS.flatMap((version) =>
    [
      `codex-cli ${version}0`,
      `codex-cli ${version}-alpha.1`,
      "no version",
      ...PROFILED_VERSIONS.filter((other) => other !== version).map((other) => `codex-cli ${other}`),
    ].map((says) => ({ version, says })),
  );
  it.each(wrong)("refuses a binary for $version that says $says [R48]", async ({ version, says }) => {
    const codexBin = await executable("other", `#!/bin/sh\necho '${says}'\n`);
    await expect(checkedCodex({ version, codexBin })).rejects.toMatchObject({ code: "codex_version_mismatch" });
  });

  it("refuses a version that is tried and says another one, too [R48]", async () => {
    const codexBin = await executable("tried", "#!/bin/sh\necho codex-cli 9.9.8\n");
    await expect(checkedCodex({ version: "9.9.9", codexBin, unknown: "try" })).rejects.toMatchObject({ code: "codex_version_mismatch" });
  });

  it("says that a binary does not run", async () => {
    const binary = await findCodex({ version: "0.144.4", codexBin: await executable("broken", "#!/nowhere/sh\n") });
    await expect(checkCodexVersion(binary)).rejects.toMatchObject({ code: "binary_missing", message: expect.stringContaining("ENOENT") });
    const exits = await findCodex({ version: "0.144.4", codexBin: await executable("exits", "#!/bin/sh\nexit 3\n") });
    await expect(checkCodexVersion(exits)).rejects.toMatchObject({
      code: "binary_missing",
      message: expect.stringContaining("exit code 3"),
    });
  });
});
