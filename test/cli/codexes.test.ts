// SPDX-License-Identifier: Apache-2.0
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { codexesOf } from "../../src/cli/codexes.ts";
import { codexPlatform } from "../../src/codex/package-trees.ts";
import { loadSettings } from "../../src/config/load.ts";
import { placeFakeCodex } from "../support/fake-codex-binary.ts";
import { tempDir } from "../support/temp-dir.ts";

let state: string;
beforeEach(() => {
  state = tempDir();
});

/** As `rollcall codex install` leaves one, its binary saying that it is `says`. */
function installed(version: string, says = version): string {
  const { name, triple } = codexPlatform()!;
  return placeFakeCodex(join(state, "codex", version, "node_modules", name, "vendor", triple, "bin"), "", says);
}

async function found(overrides: Record<string, unknown> = {}): Promise<{ runs: string[]; first: string; leftOut: Record<string, string> }> {
  const settings = await loadSettings({ env: { ROLLCALL_STATE_DIR: state }, file: null, overrides });
  const { codexes, leftOut } = await codexesOf(settings);
  const [{ hostDir, entry }] = codexes;
  return {
    runs: codexes.map(({ version, profile }) => (profile.version === version ? version : `${version} as ${profile.version}`)),
    first: join(hostDir, entry),
    leftOut: Object.fromEntries(leftOut.map(({ version, why }) => [version, why])),
  };
}

const TRY = { codex: { unknown_version: "try" } };

describe("the Codex versions of a worker", () => {
  it("are the default, the others in the packages and what was installed, each that has a profile [R48]", async () => {
    expect(await found()).toMatchObject({ runs: ["0.171.0", "0.144.4"], leftOut: {} });
    expect(await found({ codex_version: "0.144.4" })).toMatchObject({ runs: ["0.144.4", "0.171.0"], leftOut: {} });
    installed("9.9.9");
    const refused = await found();
    expect(refused.runs).toEqual(["0.171.0", "0.144.4"]);
    expect(refused.leftOut["9.9.9"]).toContain("has no profile");
    expect(await found(TRY)).toMatchObject({ runs: ["0.171.0", "0.144.4", "9.9.9 as 0.171.0"], leftOut: {} });
    expect(await found({ ...TRY, codex_version: "9.9.9" })).toMatchObject({ runs: ["9.9.9 as 0.171.0", "0.171.0", "0.144.4"] });
  });

  it("do not hold one that is broken, another version or without its companion: it is told and the others run [R48]", async () => {
    installed("9.9.7", "9.9.6");
    rmSync(installed("9.9.8"));
    rmSync(join(dirname(installed("9.9.9")), "codex-code-mode-host"));
    const { runs, leftOut } = await found(TRY);
    expect(runs).toEqual(["0.171.0", "0.144.4"]);
    expect(leftOut["9.9.7"]).toContain("is 9.9.6, but 9.9.7 is required");
    expect(leftOut["9.9.8"]).toContain("is missing from its package");
    expect(leftOut["9.9.9"]).toContain("needs codex-code-mode-host beside it");
  });

  it("have the given executable as the default, checked like any other, and the others beside it [R48]", async () => {
    const codex_bin = placeFakeCodex(join(state, "mine"), "", "0.144.4");
    await expect(found({ codex_bin })).rejects.toMatchObject({ code: "codex_version_mismatch" });
    expect(await found({ codex_bin, codex_version: "0.144.4" })).toMatchObject({ runs: ["0.144.4", "0.171.0"], first: codex_bin });
    const unknown = placeFakeCodex(join(state, "newer"), "", "9.9.9");
    const named = { codex_bin: unknown, codex_version: "9.9.9" };
    await expect(found(named)).rejects.toMatchObject({ code: "codex_version_unknown" });
    expect(await found({ ...named, ...TRY })).toMatchObject({ runs: ["9.9.9 as 0.171.0", "0.171.0", "0.144.4"], first: unknown });
    rmSync(join(state, "newer", "codex-code-mode-host"));
    await expect(found({ ...named, ...TRY })).rejects.toMatchObject({ code: "codex_incomplete" });
  });

  it("are none when the default is not here", async () => {
    await expect(found({ ...TRY, codex_version: "9.9.9" })).rejects.toMatchObject({
      code: "codex_version_mismatch",
      message: expect.stringContaining('Run "rollcall codex install 9.9.9"'),
    });
  });
});
