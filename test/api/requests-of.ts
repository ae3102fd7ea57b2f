// SPDX-License-Identifier: Apache-2.0
import * as fc from "fast-check";
import type { Arbitrary } from "fast-check";

/** The parts of an OpenAPI document that requests are made from. */
export interface OpenApiDocument {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}
interface Operation {
  parameters?: { name: string; in: "path" | "query" | "header"; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
}
interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  pattern?: string;
  minimum?: number;
  maximum?: number;
}

export interface MadeRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: unknown;
}

const DEPTH = 6;

/** Requests for every operation of the document: some as it says, some with any JSON in their place. */
export function requestsOf(document: OpenApiDocument): Arbitrary<MadeRequest> {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => requestOf(document, method, path, operation)),
  );
  return fc.oneof(...operations);
}

function requestOf(
  document: OpenApiDocument,
  method: string,
  path: string,
  { parameters = [], requestBody }: Operation,
): Arbitrary<MadeRequest> {
  const values = fc.record(
    Object.fromEntries(
      parameters.map(({ name, schema }) => [name, fc.oneof({ weight: 3, arbitrary: valueOf(document, schema, 0) }, fc.string())]),
    ),
    { requiredKeys: parameters.filter((each) => each.in === "path").map(({ name }) => name) },
  );
  const [content] = Object.values(requestBody?.content ?? {});
  const body =
    content === undefined
      ? fc.constant(undefined)
      : fc.oneof({ weight: 3, arbitrary: valueOf(document, content.schema, 0) }, fc.jsonValue());
  return fc.record({ values, body }).map(({ values: given, body: made }) => {
    const of = (place: string): [string, string][] =>
      parameters.flatMap(({ name, in: where }) => (where === place && given[name] !== undefined ? [[name, text(given[name])]] : []));
    const query = new URLSearchParams(
      of("query").map(([name, value]): [string, string] => [name, name === "wait" && Number(value) > 0.1 ? "0.1" : value]),
    );
    const filled = of("path").reduce(
      (text, [name, value]) => text.replace(`{${name}}`, () => encodeURIComponent(Buffer.from(value).toString())),
      path,
    );
    return {
      method: method.toUpperCase(),
      path: `${filled}?${query.toString()}`,
      headers: Object.fromEntries(of("header").filter(([, value]) => /^[\x21-\x7e]*$/.test(value))),
      body: soon(made),
    };
  });
}

/** Nobody waits for a claim here. */
function soon(body: unknown): unknown {
  return body !== null && typeof body === "object" && "wait" in body && Number(body.wait) > 0.1 ? { ...body, wait: 0.1 } : body;
}

function valueOf(document: OpenApiDocument, schema: Schema, depth: number): Arbitrary<unknown> {
  if (schema.$ref !== undefined)
    return valueOf(document, document.components.schemas[schema.$ref.replace("#/components/schemas/", "")]!, depth + 1);
  if (depth > DEPTH) return fc.jsonValue({ maxDepth: 1 });
  const variants = schema.oneOf ?? schema.anyOf ?? schema.allOf;
  if (variants !== undefined) return fc.oneof(...variants.map((variant) => valueOf(document, variant, depth + 1)));
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.const !== undefined) return fc.constant(schema.const);
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "string":
      return schema.pattern === undefined
        ? fc.string({ unit: "binary" })
        : fc.oneof(fc.stringMatching(new RegExp(schema.pattern)), fc.string());
    case "integer":
    case "number":
      return fc.oneof(fc.integer({ min: schema.minimum ?? -5, max: Math.min(schema.maximum ?? 1_000, 100_000) }), fc.double());
    case "boolean":
      return fc.boolean();
    case "array":
      return fc.array(schema.items === undefined ? fc.jsonValue() : valueOf(document, schema.items, depth + 1), { maxLength: 3 });
    case "object": {
      const properties = Object.entries(schema.properties ?? {}).map(([name, inner]) => [name, valueOf(document, inner, depth + 1)]);
      const known = fc.record(Object.fromEntries(properties) as Record<string, Arbitrary<unknown>>, {
        requiredKeys: schema.required ?? [],
      });
      return fc.oneof({ weight: 5, arbitrary: known }, fc.dictionary(fc.string(), fc.jsonValue()));
    }
    default:
      return fc.jsonValue();
  }
}

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
