// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { createReadStream, existsSync, lstatSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { safeName } from "../../src/contract/identity.ts";

/**
 * Secrets of one run. Each holds the same random letters and digits, which no escape changes: whoever finds them has found
 * bytes of a secret, without the product's own search.
 */
export interface ChaosSecrets {
  /** In every secret. */
  readonly core: string;
  readonly modelKey: string;
  readonly redisPassword: string;
  /** Base64 of 32 bytes, as the deployment key must be. */
  readonly deploymentKey: string;
  /** For office tools: what a session id must hold so that its token, which is base64, does too. */
  readonly sessionOf: (taskId: string) => string;
  /** With the characters that JSON, URLs and shells write otherwise. */
  readonly canaryOf: (taskId: string) => string;
}

export function newSecrets(): ChaosSecrets {
  const core = `Qz${randomBytes(9).toString("hex")}Zq`;
  return {
    core,
    modelKey: `sk-${core}-model`,
    redisPassword: `pw-${core}`,
    deploymentKey: randomBytes(32).toString("base64"),
    sessionOf: (taskId) => `${taskId} ${core}`,
    canaryOf: (taskId) => `c"an ary\\${taskId}%2F${core}"\\ %${core}`,
  };
}

/** The byte strings that are looked for. */
export function needlesOf({ core, deploymentKey }: ChaosSecrets): Buffer[] {
  // What of its base64 depends on nothing before or behind it, for each place in a group of three.
  const encoded = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), Buffer.from(core)]).toString("base64");
    return text.slice([0, 2, 3][before], Math.floor(((before + core.length) * 8) / 6));
  });
  return [core, deploymentKey, ...encoded].map((text) => Buffer.from(text));
}

/** Files below `root` (names count, too) that hold one of the needles; streamed. */
export async function filesHolding(root: string, needles: readonly Buffer[]): Promise<string[]> {
  const longest = Math.max(...needles.map(({ length }) => length));
  const found: string[] = [];
  for (const path of existsSync(root) ? readdirSync(root, { recursive: true, encoding: "utf8" }) : []) {
    const file = join(root, path);
    if (!lstatSync(file).isFile()) continue;
    if (needles.some((needle) => path.includes(needle.toString())) || (await holds(file, needles, longest))) found.push(file);
  }
  return found;
}

async function holds(file: string, needles: readonly Buffer[], longest: number): Promise<boolean> {
  let kept: Buffer = Buffer.alloc(0);
  for await (const chunk of createReadStream(file, { highWaterMark: 1024 * 1024 })) {
    const window = Buffer.concat([kept, chunk as Buffer]);
    if (needles.some((needle) => window.includes(needle))) return true;
    kept = window.subarray(Math.max(0, window.length - longest));
  }
  return false;
}

/** Puts each kind of secret in each way in which it could be written into `root`, and answers which the search does not find. */
export async function missedControls(root: string, secrets: ChaosSecrets, token: string): Promise<string[]> {
  const canary = secrets.canaryOf("control");
  const written: Record<string, string> = {
    "model key": secrets.modelKey,
    "deployment key": secrets.deploymentKey,
    "session token": token,
    canary,
    "canary in JSON": JSON.stringify({ canary }),
    "canary in a URL": encodeURIComponent(canary),
    "canary in base64": Buffer.from(`x${canary}`).toString("base64"),
  };
  const missed: string[] = [];
  for (const [name, text] of Object.entries(written)) {
    const file = join(root, `control-${safeName(name)}`);
    writeFileSync(file, `${" ".repeat(1024 * 1024 - 10)}${text}\n`); // over the border of two chunks
    if (!(await filesHolding(root, needlesOf(secrets))).includes(file)) missed.push(name);
    rmSync(file);
  }
  return missed;
}
