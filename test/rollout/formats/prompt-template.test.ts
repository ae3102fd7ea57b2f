// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { defaultPromptTemplate, fillTemplate, promptTemplate, readPromptTemplate } from "../../../src/rollout/formats/prompt-template.ts";
import { tempDir } from "../../support/temp-dir.ts";

const VALUES = { reference_files_str: "- a", sector: "{prompt}", occupation: "$& $1", prompt: "do {sector} {x} {{y}}" };

describe("a prompt template", () => {
  it("is filled in one pass: nothing in a value is replaced, whatever it looks like", () => {
    const template = promptTemplate("{sector}/{occupation}/{prompt}/{reference_files_str}/{prompt}", "t");
    expect(fillTemplate(template, VALUES)).toBe("{prompt}/$& $1/do {sector} {x} {{y}}/- a/do {sector} {x} {{y}}");
  });

  it("leaves other braces alone, and writes {name} for {{name}}", () => {
    expect(fillTemplate(promptTemplate('{"a": {}} { } {{name}} {prompt}', "t"), VALUES)).toBe(`{"a": {}} { } {name} ${VALUES.prompt}`);
  });

  it("is refused with all its unknown placeholders, and without {prompt}", () => {
    expect(() => promptTemplate("{prompt} {sektor} {x} {x}", "t.txt")).toThrow(
      /^t\.txt has unknown placeholders: \{sektor\} \(did you mean \{sector\}\?\), \{x\};/,
    );
    expect(() => promptTemplate("{{prompt}}", "t.txt")).toThrow("no {prompt}");
  });

  it("comes from a file of UTF-8 text, or is ours", async () => {
    const path = join(tempDir(), "t.txt");
    writeFileSync(path, "{prompt}!");
    expect(await readPromptTemplate(path)).toMatchObject({ text: "{prompt}!" });
    writeFileSync(path, Buffer.from([0xff, 0x7b]));
    await expect(readPromptTemplate(path)).rejects.toMatchObject({ code: "template_unreadable" });
    await expect(readPromptTemplate(`${path}.gone`)).rejects.toMatchObject({ code: "template_unreadable" });
    const text = fillTemplate(defaultPromptTemplate(), VALUES);
    for (const value of Object.values(VALUES)) expect(text).toContain(value);
    const docs = readFileSync(new URL("../../../docs/rows.md", import.meta.url), "utf8");
    expect(docs).toContain(`\n${defaultPromptTemplate().text}`);
  });
});
