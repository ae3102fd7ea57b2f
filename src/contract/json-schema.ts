// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import { activationSchema } from "./activation.ts";
import { failureSchema } from "./failure.ts";
import { observationBundleSchema } from "./observation.ts";
import { attemptSchema, resultSchema } from "./result.ts";

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** The names of what jsonSchemas() makes, which takes a while. */
export const JSON_SCHEMA_NAMES = ["activation", "result", "attempt", "observations", "failure"] as const;

type JsonSchemaFile = `${(typeof JSON_SCHEMA_NAMES)[number]}.json`;

/**
 * JSON Schemas (draft-07, which validators of every language read) by file name, for producers and consumers that are
 * not TypeScript. The activation is described as a producer writes it: defaults and derived ids may be left out. What
 * depends on several fields or on a deployment is not in them; the refusals say it at admission.
 */
export function jsonSchemas(): Record<JsonSchemaFile, JsonSchema> {
  // Derived when absent (derive.ts).
  const written = activationSchema.partial({ activation_id: true, run_id: true, episode_id: true });
  return {
    "activation.json": describe("activation", "Session activation: what a producer enqueues", written, "input"),
    "result.json": describe("result", "Result: the end of an activation", resultSchema, "output"),
    "attempt.json": describe("attempt", "Attempt: one physical run of Codex for an activation", attemptSchema, "output"),
    "observations.json": describe("observations", "Observation bundle: records and gaps", observationBundleSchema, "output"),
    "failure.json": describe("failure", "Failure: what went wrong, for programs and for people", failureSchema, "output"),
  };
}

function describe(name: string, title: string, schema: z.ZodType, io: "input" | "output"): JsonSchema {
  const { $schema, ...rest } = z.toJSONSchema(schema, {
    io,
    target: "draft-7",
    override: ({ jsonSchema }) => {
      if (jsonSchema.format === "base64") delete jsonSchema.format; // no format of JSON Schema; contentEncoding says it
    },
  });
  return { ...($schema === undefined ? {} : { $schema }), $id: `urn:rollcall:schema:${name}:1`, title, ...rest };
}
