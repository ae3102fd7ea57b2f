// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { jsonSchemas } from "../src/contract/json-schema.ts";

/** Writes schemas/*.json of the working directory anew; a test fails while they are out of step. */
const directory = join(process.cwd(), "schemas");
mkdirSync(directory, { recursive: true });
for (const [file, schema] of Object.entries(jsonSchemas())) {
  writeFileSync(join(directory, file), `${JSON.stringify(schema, null, 2)}\n`);
}
