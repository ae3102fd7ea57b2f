// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { readSkills } from "../../src/codex/skills.ts";
import { tempDir } from "../support/temp-dir.ts";

const ENTRY = "---\nname: report\ndescription: Writes reports.\n---\nUse it.\n";

function directory(files: Record<string, string>): string {
  const root = tempDir();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text, { mode: path.endsWith(".sh") ? 0o755 : 0o644 });
  }
  return root;
}

describe("a directory of skills", () => {
  it("is read whole, with a digest of its names and contents", async () => {
    const files = { "report/SKILL.md": ENTRY, "report/bin/run.sh": "#!/bin/sh\n", "a/SKILL.md": ENTRY };
    const skills = await readSkills(directory(files));
    expect(skills.names).toEqual(["a", "report"]);
    expect(skills.filesOf("report").map(({ path, executable }) => [path, executable])).toEqual([
      ["SKILL.md", false],
      ["bin/run.sh", true],
    ]);
    expect((await readSkills(directory(files))).sha256).toBe(skills.sha256);
    expect((await readSkills(directory({ ...files, "a/x": "" }))).sha256).not.toBe(skills.sha256);
    expect(await readSkills(directory({}))).toMatchObject({ names: [], sha256: null });
  });

  it.each<[what: string, files: Record<string, string>, why: string]>([
    ["a skill without SKILL.md", { "a/README.md": "" }, "it has no SKILL.md"],
    ["one without a description", { "a/SKILL.md": "---\nname: a\n---\n" }, "a name and a description"],
    ["a file beside the skills", { "README.md": "" }, "only directories"],
    ["a hidden directory", { ".system/SKILL.md": ENTRY }, "only directories"],
    ["a tree that is too deep", { [`a/${"d/".repeat(9)}x`]: "" }, "deeper than 8"],
  ])("is refused for %s", async (_, files, why) => {
    await expect(readSkills(directory(files))).rejects.toMatchObject({ code: "skills_unusable", message: expect.stringContaining(why) });
  });

  it("is refused for a link in it, to a file, a directory or a skill", async () => {
    for (const [place, target] of [
      ["a/link", "/etc/passwd"],
      ["a/dir", "/etc"],
      ["b", "/etc"],
    ] as const) {
      const root = directory({ "a/SKILL.md": ENTRY });
      symlinkSync(target, join(root, place));
      await expect(readSkills(root)).rejects.toMatchObject({ message: expect.stringContaining("it is a link") });
    }
  });

  it("is refused when it is too large or not there", async () => {
    const root = directory({ "a/SKILL.md": ENTRY, "a/data": "" });
    truncateSync(join(root, "a/data"), 21 * 1024 * 1024);
    await expect(readSkills(root)).rejects.toMatchObject({ message: expect.stringContaining("over 1000 files or") });
    await expect(readSkills(join(root, "gone"))).rejects.toMatchObject({ code: "skills_unusable" });
  });
});
