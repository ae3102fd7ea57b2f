// SPDX-License-Identifier: Apache-2.0
import { jsonSchemas } from "../contract/json-schema.ts";

/** The JSON Schemas of the messages as components of an OpenAPI document, by name (activation.json -> Activation). Pure. */
export function messageComponents(): Record<string, object> {
  const components: Record<string, object> = {};
  for (const [file, { $id: _id, $schema: _schema, ...schema }] of Object.entries(jsonSchemas())) {
    const name = file.charAt(0).toUpperCase() + file.slice(1).replace(".json", "");
    // Where they are part of a document, what they define for themselves is a component beside them.
    const text = JSON.stringify(schema).replaceAll('"#/definitions/', `"#/components/schemas/${name}.`);
    const { definitions = {}, ...rest } = JSON.parse(text) as { definitions?: Record<string, object> };
    components[name] = rest;
    for (const [inner, definition] of Object.entries(definitions)) components[`${name}.${inner}`] = definition;
  }
  return components;
}
