// SPDX-License-Identifier: Apache-2.0
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkCodexVersion, findCodex, PACKAGED_CODEX_VERSION } from "../../src/codex/binary.ts";
import manifest from "../../package.json" with { type: "json" };

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "rollcall-binary-"));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const newest = new URL("../../node_modules/codex-newest/package.json", import.meta.url);

async function executable(name: string, script: string): Promise<string> {
  const path = join(dir, name);
  await writeFile(path, script, { mode: 0o755 });
  await chmod(path, 0o755);
  return path;
}

describe("findCodex", () => {
  it("finds the native binary of the pinned version, with its tools and bwrap, and it says that version [R48]", async () => {
    expect(PACKAGED_CODEX_VERSION).toBe(manifest.dependencies["@openai/codex"]);
    const binary = await findCodex({ version: PACKAGED_CODEX_VERSION });
    expect(binary).toMatchObject({ version: "0.144.4", key: "codex-0.144.4", entry: "bin/codex", tools: "codex-path" });
    expect(binary.bwrap).toBe(join(binary.hostDir, "codex-resources", "bwrap"));
    expect(binary).not.toHaveProperty("only");
    await checkCodexVersion(binary);
  });

  it("finds the newest version under its alias", async () => {
    const binary = await findCodex({ version: "0.171.0", searchFrom: newest });
    await checkCodexVersion(binary);
    expect(await findCodex({ version: "0.171.0", codexBin: join(binary.hostDir, binary.entry) })).toEqual(binary);
  });

  it("refuses a version that is not installed, naming the one that is [R48]", async () => {
    await expect(findCodex({ version: "0.144.5" })).rejects.toMatchObject({
      code: "codex_version_mismatch",
      message: expect.stringMatching(/0\.144\.4.*0\.144\.5/),
    });
  });

  it("says what to do when the platform package is missing", async () => {
    await expect(findCodex({ version: "0.144.4", searchFrom: pathToFileURL(join(dir, "index.js")) })).rejects.toMatchObject({
      code: "binary_missing",
      message: expect.stringContaining("--include=optional"),
    });
  });

  it("takes a binary that stands alone, by its real name", async () => {
    const path = await executable("my-codex", "#!/bin/sh\necho codex-cli 9.9.9\n");
    await mkdir(join(dir, "links"));
    await symlink(path, join(dir, "links", "codex"));
    const binary = await findCodex({ version: "9.9.9", codexBin: join(dir, "links", "codex") });
    expect(binary).toMatchObject({
      hostDir: expect.stringContaining(basename(dir)),
      entry: "my-codex",
      only: ["my-codex"],
      tools: null,
      bwrap: null,
    });
    await checkCodexVersion(binary);
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
  it.each(["codex-cli 0.144.40", "codex-cli 0.144.4-alpha.1", "codex-cli 0.171.0", "no version"])(
    "refuses a binary that says %s [R48]",
    async (says) => {
      const binary = await findCodex({ version: "0.144.4", codexBin: await executable("other", `#!/bin/sh\necho '${says}'\n`) });
      await expect(checkCodexVersion(binary)).rejects.toMatchObject({ code: "codex_version_mismatch" });
    },
  );

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
