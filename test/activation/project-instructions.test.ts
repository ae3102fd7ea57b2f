// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ignoredInstructions } from "../../src/activation/project-instructions.ts";
import { profileFor } from "../../src/codex/profile.ts";
import { suiteDir } from "../support/suite-dir.ts";

describe("instructions in the workdir that Codex does not read", () => {
  const dir = suiteDir();

  /** Which file is named, of a workdir made like this; null = none. */
  async function named(
    make: (workdir: string) => void,
    extra_config: Record<string, never[] | string[] | number> = {},
    version = "0.171.0",
  ): Promise<unknown> {
    const workdir = mkdtempSync(join(dir, "w-"));
    make(workdir);
    const gaps = await ignoredInstructions({ outside: { workdir, home: "", codexHome: "", tmp: "" } }, profileFor(version), {
      extra_config,
    });
    expect(gaps.length).toBeLessThan(2);
    return gaps[0]?.detail === undefined ? null : (JSON.parse(gaps[0].detail) as { path: unknown }).path;
  }
  const file =
    (name: string, text = "x") =>
    (workdir: string): void =>
      writeFileSync(join(workdir, name), text);

  it("are told by the name of the file that it would have taken, where there is one", async () => {
    expect(await named(() => undefined)).toBeNull();
    expect(await named(file("AGENTS.md"))).toBe("AGENTS.md");
    expect(await named((workdir) => ["AGENTS.md", "AGENTS.override.md"].forEach((name) => file(name)(workdir)))).toBe("AGENTS.override.md");
    expect(await named(file("agents.md"))).toBeNull();
  });

  it("are none of a version that reads them", async () => {
    expect(await named(file("AGENTS.md"), {}, "0.144.4")).toBeNull();
  });

  it("are none where the file is empty, or a directory, or nothing was to be read", async () => {
    expect(await named(file("AGENTS.md", ""))).toBeNull();
    expect(await named((workdir) => mkdirSync(join(workdir, "AGENTS.md")))).toBeNull();
    expect(await named(file("AGENTS.md"), { project_doc_max_bytes: 0 })).toBeNull();
  });

  it("may be a link, which is not followed", async () => {
    expect(await named((workdir) => symlinkSync("/proc/self/fd/0", join(workdir, "AGENTS.md")))).toBe("AGENTS.md");
    expect(await named((workdir) => symlinkSync("AGENTS.md", join(workdir, "AGENTS.md")))).toBe("AGENTS.md");
  });

  it("may have other names by extra_config, but only in the workdir", async () => {
    file("outside.md")(dir);
    expect(await named(file("CLAUDE.md"), { project_doc_fallback_filenames: ["", "..", "CLAUDE.md"] })).toBe("CLAUDE.md");
    expect(await named(file("CLAUDE.md"))).toBeNull();
    expect(await named(() => undefined, { project_doc_fallback_filenames: ["../outside.md", "a\0b"] })).toBeNull();
  });
});
