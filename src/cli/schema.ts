// SPDX-License-Identifier: Apache-2.0
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { nearest } from "../config/nearest.ts";
import { jsonSchemas } from "../contract/json-schema.ts";

export function schemaCommand(): Command {
  const schemas = new Map(Object.entries(jsonSchemas()).map(([file, schema]) => [file.replace(/\.json$/, ""), schema]));
  const names = [...schemas.keys()];
  return new Command("schema")
    .description(`Print the JSON Schema of one of: ${names.join(", ")}; or write all of them.`)
    .argument("[name]", "which one", (name: string) => {
      if (schemas.has(name)) return name;
      const meant = nearest(name, names);
      throw new InvalidArgumentError(`expected ${names.join(", ")}${meant === null ? "" : `; did you mean ${meant}?`}`);
    })
    .option("--out <dir>", "write every schema into this directory")
    .action(async (name: string | undefined, { out }: { out?: string }) => {
      if (out !== undefined) {
        await mkdir(out, { recursive: true });
        for (const [each, schema] of schemas) await writeFile(join(out, `${each}.json`), text(schema));
      } else if (name === undefined) process.stdout.write(`${names.join("\n")}\n`);
      else process.stdout.write(text(schemas.get(name)));
    });
}

function text(schema: unknown): string {
  return `${JSON.stringify(schema, null, 2)}\n`;
}
