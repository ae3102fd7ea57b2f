// SPDX-License-Identifier: Apache-2.0
import { open } from "node:fs/promises";
import { hasErrno, messageOf, RollcallError } from "../errors.ts";

/** The variables of a process, as process.env has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Far more than any key; a wrong path must not fill the memory. */
const MAX_BYTES = 64 * 1024;

/**
 * The value of a variable that holds a secret: its own, or the text of the file that NAME_FILE names, without line ends after it. A
 * file (`/run/secrets/...`, systemd's credentials) shows neither in `docker inspect` nor in /proc/PID/environ. Empty counts as not
 * set. Throws RollcallError "secret_file_unusable" or "secret_given_twice"; neither shows the value.
 */
export async function secretVariable(env: Environment, name: string): Promise<string | undefined> {
  const own = nonEmpty(env[name]);
  const file = nonEmpty(env[`${name}_FILE`]);
  if (file === undefined) return own;
  if (own !== undefined) throw new RollcallError("secret_given_twice", `${name} and ${name}_FILE are both set: set one of the two`);
  const value = (await readBounded(file, name)).replace(/[\r\n]+$/, "");
  if (value === "")
    throw new RollcallError("secret_file_unusable", `the file of ${name}_FILE, ${file}, is empty: expected the value of ${name}`);
  return value;
}

async function readBounded(file: string, name: string): Promise<string> {
  try {
    const handle = await open(file, "r");
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAX_BYTES + 1), 0, MAX_BYTES + 1, null);
      if (bytesRead <= MAX_BYTES) return buffer.toString("utf8", 0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch (error) {
    const reason = hasErrno(error, "ENOENT")
      ? "there is no such file"
      : hasErrno(error, "EACCES")
        ? `this user (uid ${process.getuid?.() ?? "?"}) may not read it`
        : messageOf(error);
    throw new RollcallError("secret_file_unusable", `cannot read the file of ${name}_FILE, ${file}: ${reason}`, { cause: error });
  }
  throw new RollcallError(
    "secret_file_unusable",
    `the file of ${name}_FILE, ${file}, has more than ${MAX_BYTES} bytes: expected the value of ${name}`,
  );
}

export function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text === "" ? undefined : text;
}
