// SPDX-License-Identifier: Apache-2.0
import { execa, ExecaError } from "execa";
import { hasErrno, RollcallError } from "../errors.ts";

const OTHER_WAY = "or copy its package's vendor/<platform> directory here and name the bin/codex in it with the codex_bin setting";

/** npm's codes for a registry that it does not get to. */
const UNREACHABLE =
  /^(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|FETCH_ERROR|ENOTCACHED|E5\d\d)$/;

/**
 * Runs npm on the package.json in `directory`, without scripts of packages. The user's own configuration (registry, proxy, key) counts.
 * Throws RollcallError "npm_missing", "codex_not_published", "codex_integrity", "registry_unreachable" or "npm_failed"; `what` is
 * that which is fetched.
 */
export async function npm(
  args: readonly string[],
  { directory, what, signal }: { directory: string; what: string; signal?: AbortSignal | undefined },
): Promise<void> {
  const flags = ["--prefix", directory, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1"];
  try {
    await execa("npm", [...args, ...flags, "--fetch-retry-mintimeout=1000"], {
      cwd: directory,
      stdin: "ignore",
      stdout: "ignore",
      maxBuffer: 1_000_000,
      ...(signal === undefined ? {} : { cancelSignal: signal }),
    });
  } catch (error) {
    if (signal?.aborted === true) throw new RollcallError("interrupted", `fetching ${what} was interrupted`, { exitCode: 75 });
    throw npmFailure(error, what);
  }
}

function npmFailure(error: unknown, what: string): RollcallError {
  const { code, text } = told(error);
  const failure = (name: string, message: string): RollcallError => new RollcallError(name, message, { cause: error });
  if (code === "ENOENT")
    return failure("npm_missing", `${what} is fetched through npm, and there is no npm on PATH: install npm, ${OTHER_WAY}`);
  if (code === "E404" || code === "ETARGET")
    return failure("codex_not_published", `npm's registry has no ${what}: is that a released version?`);
  if (code === "EINTEGRITY") {
    const message = `what npm's registry has as ${what} is not what this Rollcall knows by its digest; nothing of it was kept. Ask who runs the registry`;
    return failure("codex_integrity", message);
  }
  if (UNREACHABLE.test(code)) {
    return failure("registry_unreachable", `npm does not reach its registry for ${what} (${code}): see "npm ping", ${OTHER_WAY}`);
  }
  return failure("npm_failed", `npm could not fetch ${what} (${code}): ${text}`);
}

/** npm's own code and words, from its stderr; they name no key. */
function told(error: unknown): { code: string; text: string } {
  if (!(error instanceof ExecaError)) return { code: "unknown", text: String(error) };
  if (error.code === "ENOENT" || hasErrno(error.cause, "ENOENT")) return { code: "ENOENT", text: "" };
  const stderr: unknown = error.stderr;
  const lines = (typeof stderr === "string" ? stderr : "")
    .split("\n")
    .flatMap((line) => /^npm (?:error|ERR!) ?(.*)$/.exec(line)?.[1]?.trim() ?? [])
    .filter((line) => line !== "" && !line.startsWith("A complete log"));
  const code = lines.flatMap((line) => /^code (\S+)$/.exec(line)?.[1] ?? [])[0] ?? `exit code ${error.exitCode ?? "unknown"}`;
  return {
    code,
    text: lines
      .filter((line) => !line.startsWith("code "))
      .join(" ")
      .slice(0, 400),
  };
}
