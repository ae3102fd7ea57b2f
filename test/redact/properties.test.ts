// SPDX-License-Identifier: Apache-2.0
import * as fc from "fast-check";
import { describe, it } from "vitest";
import { createRedactStream, redactText } from "../../src/redact/index.ts";
import { eitherEnd, foreignBytes, harmless, streamed, survivesNoCut, survivesNowhere } from "./redactor-properties.ts";

/** Fewer for many searches, e.g. one per hand-made fault; `npm run fuzz` looks longer. */
const numRuns = Number(process.env["REDACT_RUNS"] ?? 300);
const redactor = { redactText, createRedactStream };

describe("for all secrets, embeddings and chunkings", () => {
  it("no piece of a secret survives, whatever is around it [R12 R13 R16 R18]", () => fc.assert(survivesNowhere(redactor), { numRuns }));

  it("no piece of a cut-off secret survives before a proven cut, nor of one in whose middle the window begins [R14 R15]", () =>
    fc.assert(survivesNoCut(redactor), { numRuns }));

  it("12 characters or half of a value go whichever side was cut; so do its base64 in lines, and its hex [fault C4]", () =>
    fc.assert(eitherEnd(redactor), { numRuns }));

  it("text without secrets is returned as it is", () => fc.assert(harmless(redactor), { numRuns }));

  it("the stream gives the same as the text, however it is cut into chunks", () => fc.assert(streamed(redactor), { numRuns }));

  it("bytes that are no UTF-8 pass the stream unharmed", () => fc.assert(foreignBytes(redactor), { numRuns }));
});
