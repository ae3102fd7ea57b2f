// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { isLoopback } from "../../src/host/loopback.ts";

it.each([
  ["127.0.0.1", true],
  ["127.9.9.9", true],
  ["::1", true],
  ["0:0:0:0:0:0:0:1", true],
  ["::ffff:127.0.0.1", true],
  ["localhost", true],
  ["0.0.0.0", false],
  ["::", false],
  ["10.0.0.1", false],
  ["::ffff:10.0.0.1", false],
  ["128.0.0.1", false],
  ["localhost.example.org", false],
  ["127.0.0.1.example.org", false],
  ["", false],
])("%j is reached from this host alone: %s", (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});
