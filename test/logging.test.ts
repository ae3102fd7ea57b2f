// SPDX-License-Identifier: Apache-2.0
import { Writable } from "node:stream";
import { expect, it } from "vitest";
import { createLogger } from "../src/logging.ts";
import { buildSecretSet, LiveSecrets } from "../src/redact/index.ts";

function lines(): { destination: Writable; entries: () => Record<string, unknown>[]; text: () => string } {
  let text = "";
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  return {
    destination,
    text: () => text,
    entries: () =>
      text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}

it("no secret of a live activation shows in a log line: message, fields, keys, errors and stacks [C1]", () => {
  const secrets = new LiveSecrets();
  const { destination, entries, text } = lines();
  const log = createLogger({ level: "info", secrets, destination, base: { worker: "w1" } });
  const value = 'FAKE-"tok\\en 1';
  const remove = secrets.add(buildSecretSet([{ value }]));
  const removeOther = secrets.add(buildSecretSet([{ value: "OTHER-secret" }]));
  log.info({ header: value, [value]: 1, nested: { body: JSON.stringify({ value }) } }, `sent ${value} and OTHER-secret`);
  log.child({ child: value }).error({ err: new Error(`bad ${value}`, { cause: new Error(`why ${value}`) }) }, "failed");
  log.warn({ error: new Error(`also ${value}`) }, "failed");
  expect(text()).not.toMatch(/FAKE|tok|OTHER/);
  const [first, second, third] = entries();
  expect(first).toMatchObject({ level: "info", worker: "w1", header: "[redacted]", msg: "sent [redacted] and [redacted]" });
  expect(second).toMatchObject({ child: "[redacted]", err: { type: "Error", message: "bad [redacted]: why [redacted]" } });
  expect(third).toMatchObject({ error: { message: "also [redacted]" } });

  remove();
  log.info(`${value} OTHER-secret`);
  expect(entries().at(-1)!["msg"]).toBe(`${value} [redacted]`);
  removeOther();
  removeOther();
  log.info("OTHER-secret");
  expect(entries().at(-1)!["msg"]).toBe("OTHER-secret");
});

it("lines without secrets are passed on as pino wrote them, and levels hold", () => {
  const secrets = new LiveSecrets();
  secrets.add(buildSecretSet([{ value: "FAKE-token" }]));
  const { destination, entries } = lines();
  const log = createLogger({ level: "warn", secrets, destination });
  log.info("not shown");
  log.warn({ a: 1.5, b: "ü" }, "shown");
  expect(entries()).toEqual([{ level: "warn", time: expect.stringMatching(/^\d{4}-/) as string, a: 1.5, b: "ü", msg: "shown" }]);
});

it("the command that ioredis hangs on its errors, with the password in it, is not logged", () => {
  const { destination, entries, text } = lines();
  const log = createLogger({ level: "info", secrets: new LiveSecrets(), destination });
  const failed = Object.assign(new Error("WRONGPASS invalid username-password pair"), {
    command: { name: "auth", args: ["the-redis-password"] },
  });
  log.warn({ err: failed }, "a connection to Redis failed");
  log.warn({ err: "no error at all" }, "odd");
  expect(text()).not.toContain("the-redis-password");
  expect(entries()[0]).toMatchObject({ err: { message: failed.message, stack: expect.stringContaining("logging.test.ts") as string } });
  expect(entries()[1]).toMatchObject({ err: "no error at all" });
});

it("what could steer a terminal is escaped in log lines, which stay the same JSON [fault C8]", () => {
  const { destination, entries, text } = lines();
  const log = createLogger({ level: "info", secrets: new LiveSecrets(), destination });
  const reason = "\u001b[2J\u009b31m\u061c\u202e\ufeff\u{e0041} 日本 👩‍👩‍👧";
  log.info({ reason }, reason);
  expect(text()).not.toMatch(/[\u001b\u009b\u061c\u202e\ufeff]|\u{e0041}/u);
  expect(text()).toContain("日本 👩‍👩‍👧");
  expect(entries()).toMatchObject([{ reason, msg: reason }]);
});
