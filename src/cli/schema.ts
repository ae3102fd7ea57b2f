// SPDX-License-Identifier: Apache-2.0
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { nearest } from "../config/nearest.ts";
import { JSON_SCHEMA_NAMES, jsonSchemas } from "../contract/json-schema.ts";

type Name = (typeof JSON_SCHEMA_NAMES)[number];

export function schemaCommand(): Command {
  const names = JSON_SCHEMA_NAMES.join(", ");
  return new Command("schema")
    .description(`Print the JSON Schema of one of: ${names}; or write all of them.`)
    .argument("[name]", "which one", (name: string): Name => {
      const known = JSON_SCHEMA_NAMES.find((each) => each === name);
      if (known !== undefined) return known;
      const meant = nearest(name, JSON_SCHEMA_NAMES);
      throw new InvalidArgumentError(`expected ${names}${meant === null ? "" : `; did you mean ${meant}?`}`);
    })
    .option("--out <dir>", "write every schema into this directory")
    .action(async (name: Name | undefined, { out }: { out?: string }) => {
      if (out !== undefined) {
        await mkdir(out, { recursive: true });
        for (const [file, schema] of Object.entries(jsonSchemas())) await writeFile(join(out, file), text(schema));
      } else if (name === undefined) process.stdout.write(`${JSON_SCHEMA_NAMES.join("\n")}\n`);
      else process.stdout.write(text(jsonSchemas()[`${name}.json`]));
    });
}

function text(schema: unknown): string {
  return `${JSON.stringify(schema, null, 2)}\n`;
}
