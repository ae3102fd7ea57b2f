// SPDX-License-Identifier: Apache-2.0
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, it } from "vitest";
import { startApiRig } from "./rig.ts";

it("the OpenAPI document is one, each of its references leads somewhere, and it names every message", async () => {
  const rig = await startApiRig();
  const { body } = await rig.call("/openapi.json", { key: null });
  const validator = new Validator();
  expect(await validator.validate(body as Record<string, unknown>)).toMatchObject({ valid: true });
  validator.resolveRefs();
  expect(body.openapi).toBe("3.1.0");
  expect(Object.keys(body.components.schemas as object)).toEqual(expect.arrayContaining(["Activation", "Result", "Attempt", "Problem"]));
  expect(body.security).toEqual([{ key: [] }]);
});

it("the page that shows it asks nothing of other servers", async () => {
  const rig = await startApiRig();
  const { body } = await rig.call("/docs", { key: null });
  const asked = [...(body as string).matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address!);
  expect(asked.length).toBeGreaterThan(2);
  for (const address of asked) {
    expect(address).toMatch(/^\/docs\//);
    expect((await rig.call(address, { key: null })).status).toBe(200);
  }
});
