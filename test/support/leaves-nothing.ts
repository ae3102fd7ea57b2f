// SPDX-License-Identifier: Apache-2.0
import { afterAll, expect, vi } from "vitest";

// Test files share a process, one after the other. What one changes of it would be found by the next, so it fails here by its own name.
const before = shared();

// Registered before the hooks of the file, so it runs after them.
afterAll(() => {
  expect(shared(), "a test file leaves its process as it found it").toEqual(before);
});

function shared(): object {
  return {
    env: { ...process.env },
    directory: process.cwd(),
    umask: process.umask(),
    fakeTimers: vi.isFakeTimers(),
    listeners: Object.fromEntries(["SIGINT", "SIGTERM", "SIGHUP"].map((name) => [name, process.listenerCount(name)])),
  };
}
