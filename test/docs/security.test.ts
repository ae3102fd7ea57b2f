// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

const limits = readFileSync("docs/security.md", "utf8").split("## Known limits")[1]!;

it("docs/security.md says how long Redis' files keep what was deleted, and what takes it out [fault C7]", () => {
  expect(limits).toMatch(/append-only file keeps each sealed secret until[^]*64 MB[^]*BGREWRITEAOF/);
});

it("docs/security.md says what one cell for Codex and its commands cannot hold [fault C10]", () => {
  for (const words of ["session keyring", "abstract Unix sockets", "loopback port", "pidfd_getfd", "ptrace", "usage"])
    expect(limits).toContain(words);
});
