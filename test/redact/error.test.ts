// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { RollcallError } from "../../src/errors.ts";
import { buildSecretSet, redactError } from "../../src/redact/index.ts";

const VALUE = 'FAKE-"tok\\en 1';
const set = buildSecretSet([{ value: VALUE }]);

it("an error loses every secret in its message, stack, further texts and causes, and stays the error that it is [C8]", () => {
  const root = Object.assign(new Error(`cannot open /x/${VALUE}`), { path: `/x/${VALUE}`, code: "ENOENT", errno: -2 });
  const error = new RollcallError("store_damaged", `of no use: ${JSON.stringify(VALUE)}`, { cause: root });
  const redacted = redactError(set, error) as RollcallError;
  expect(redacted).toBe(error);
  expect(redacted).toMatchObject({
    code: "store_damaged",
    message: 'of no use: "[redacted]"',
    cause: { code: "ENOENT", errno: -2, path: "/x/[redacted]" },
  });
  for (const text of [redacted.message, redacted.stack, root.message, root.stack]) expect(text).not.toContain("FAKE");
  expect(redacted.stack).toContain("error.test.ts");
});

it("what is no error becomes one, and a cause that is none is dropped", () => {
  expect(redactError(set, `thrown ${VALUE}`)).toMatchObject({ message: "thrown [redacted]" });
  expect(redactError(set, new Error("x", { cause: { token: VALUE } })).cause).toBeUndefined();
});

it("of a long chain of causes, or one that goes round, the first five are kept and redacted", () => {
  const chain = Array.from({ length: 7 }, () => new Error(`x ${VALUE}`));
  for (const [index, one] of chain.entries()) one.cause = chain[(index + 1) % chain.length];
  const kept: Error[] = [];
  for (let one: unknown = redactError(set, chain[0]); one instanceof Error && kept.length < 9; one = one.cause) kept.push(one);
  expect(kept.map(({ message }) => message)).toEqual(Array.from({ length: 5 }, () => "x [redacted]"));
  expect(kept).toEqual(chain.slice(0, 5));
  expect(chain[4]).not.toHaveProperty("cause");
});
