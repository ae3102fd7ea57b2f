// SPDX-License-Identifier: Apache-2.0
import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { loadSettings } from "../../src/config/load.ts";
import { secretVariable } from "../../src/config/secret-variable.ts";
import { tempDir } from "../support/temp-dir.ts";

function fileWith(text: string): string {
  const path = join(tempDir(), "secret");
  writeFileSync(path, text);
  return path;
}

it("takes a secret from its variable, or from the file that NAME_FILE names, without the line's end", async () => {
  expect(await secretVariable({ KEY: "direct" }, "KEY")).toBe("direct");
  expect(await secretVariable({ KEY_FILE: fileWith("in a file \r\n") }, "KEY")).toBe("in a file ");
  expect(await secretVariable({ KEY: "", KEY_FILE: "" }, "KEY")).toBeUndefined();
});

it("refuses both at once, and a file that is empty, huge or not there, without showing what it holds", async () => {
  const huge = fileWith("s3cret");
  truncateSync(huge, 10_000_000_000);
  const refusals = [
    [{ KEY: "s3cret", KEY_FILE: fileWith("s3cret") }, "secret_given_twice", /both set/],
    [{ KEY_FILE: fileWith("\n") }, "secret_file_unusable", /is empty/],
    [{ KEY_FILE: huge }, "secret_file_unusable", /more than 65536 bytes/],
    [{ KEY_FILE: "/nowhere" }, "secret_file_unusable", /KEY_FILE, \/nowhere: there is no such file/],
  ] as const;
  for (const [env, code, message] of refusals) {
    const error = await secretVariable(env, "KEY").catch((thrown: unknown) => thrown as Error);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
    expect((error as Error).message).not.toContain("s3cret");
  }
});

it("puts the password of Redis into a URL that has none, whatever characters it holds, and refuses two of them", async () => {
  const env = { HOME: "/h", REDIS_URL: "redis://rollcall@redis:6379/1" };
  const { redis_url } = await loadSettings({ env: { ...env, REDIS_PASSWORD_FILE: fileWith("p@/:%41 w\n") }, file: null });
  expect(decodeURIComponent(new URL(redis_url!).password)).toBe("p@/:%41 w");
  expect(redis_url).toMatch(/^redis:\/\/rollcall:[^@]*@redis:6379\/1$/);
  const twice = { ...env, REDIS_URL: "redis://:s3cret@redis", REDIS_PASSWORD: "other" };
  const message = await loadSettings({ env: twice, file: null }).catch((error: Error) => error.message);
  expect(message).toContain("take it out of the URL");
  expect(message).not.toMatch(/s3cret|other/);
});
