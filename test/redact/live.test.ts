// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { buildSecretSet, LiveSecrets } from "../../src/redact/index.ts";

it("the secrets of everything that runs are hidden, in text and in values, until their activation has ended", () => {
  const live = new LiveSecrets();
  const text = "ONE-FAKE-1 TWO-FAKE-2";
  expect(live.text(text)).toBe(text);
  const [endOne, endTwo] = ["ONE-FAKE-1", "TWO-FAKE-2"].map((value) => live.add(buildSecretSet([{ value }])));
  expect(live.text(text)).toBe("[redacted] [redacted]");
  expect(live.value({ text })).toEqual({ text: "[redacted] [redacted]" });
  expect(live.current).toBe(live.current);
  endOne!();
  expect(live.text(text)).toBe("ONE-FAKE-1 [redacted]");
  const before = live.current;
  endOne!();
  expect(live.current).toBe(before);
  endTwo!();
  expect(live.value({ text })).toEqual({ text });
});

it("a value that two activations share is hidden until both have ended", () => {
  const live = new LiveSecrets();
  const shared = buildSecretSet([{ value: "FAKE-shared" }]);
  const ends = [live.add(shared), live.add(shared)];
  ends[0]!();
  expect(live.text("FAKE-shared")).toBe("[redacted]");
  ends[1]!();
  expect(live.text("FAKE-shared")).toBe("FAKE-shared");
});
