// SPDX-License-Identifier: Apache-2.0
import { NO_SKILLS } from "../../src/codex/skills.ts";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Writable } from "node:stream";
import { CANARY_MESSAGE } from "../../src/activation/canary.ts";
import type { UnsavedAttempt } from "../../src/activation/lost-attempt.ts";
import { runActivation, type RunPorts } from "../../src/activation/run.ts";
import type { CancelMark, ProgressEntry, RunEnd, StopReason } from "../../src/activation/ports.ts";
import { noAttemptTelemetry } from "../../src/activation/telemetry.ts";
import { openDirectoryStore } from "../../src/artifacts/directory-store.ts";
import { findCodex, PACKAGED_CODEX_VERSION, type CodexBinary } from "../../src/codex/binary.ts";
import { PROFILED_VERSIONS } from "../../src/codex/profile.ts";
import { withDerivedIds } from "../../src/contract/derive.ts";
import { admit } from "../../src/contract/refusals.ts";
import type { ActivationResult, Attempt } from "../../src/contract/result.ts";
import { createLogger } from "../../src/logging.ts";
import { LiveSecrets } from "../../src/redact/index.ts";
import { findBubblewrap } from "../../src/sandbox/bubblewrap-binary.ts";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap.ts";
import { createHostProvider } from "../../src/sandbox/host.ts";

/** The Codex versions that tests of the real binary run, the default first; CODEX_TEST_BIN (with CODEX_TEST_VERSION) adds one. */
export async function codexVersions(): Promise<{ name: string; codex: CodexBinary }[]> {
  const versions = await Promise.all(PROFILED_VERSIONS.map(async (name) => ({ name, codex: await findCodex({ version: name }) })));
  const { CODEX_TEST_BIN: codexBin, CODEX_TEST_VERSION: version = "0.0.0" } = process.env;
  if (codexBin === undefined) return versions;
  return [...versions, { name: `${codexBin} (CODEX_TEST_BIN)`, codex: await findCodex({ codexBin, version, unknown: "try" }) }];
}

export const TEST_KEY = "stand-in-model-key-0815";

export interface AttemptRunner {
  ports: RunPorts;
  /** Root of the artifact store. */
  store: string;
  /** Where sandboxes' records are. */
  stateDir: string;
  logLines: string[];
  /** Runs one attempt of an activation given as a producer would write it (ids are derived). Throws on a refusal. */
  run(raw: Record<string, unknown>, options?: RunOptions): Promise<RunEnd>;
  /** The result, whether it ended or would be retried. */
  outcome(
    raw: Record<string, unknown>,
    options?: RunOptions,
  ): Promise<{ end: RunEnd; attempt: Attempt; result: ActivationResult | null; read: (file: string) => Promise<string> }>;
}

export interface RunOptions {
  attempt?: number;
  charged?: number;
  signal?: AbortSignal;
  cancelMark?: () => CancelMark | null;
  /** What happens elsewhere while the attempt's number is taken. */
  meanwhile?: () => Promise<unknown>;
  /** Whether another attempt has begun when this one ends. */
  isOvertaken?: () => Promise<boolean>;
  /** Earlier attempts, as the ledger knows them. */
  unsaved?: UnsavedAttempt[];
  onProgress?: (entry: ProgressEntry) => void;
}

/** Everything real but the queue: its part (attempt numbers, cancel marks) is passed in. */
export async function attemptRunner(dir: string, codex: CodexBinary, overrides: Partial<RunPorts> = {}): Promise<AttemptRunner> {
  const liveSecrets = new LiveSecrets();
  const logLines: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      logLines.push(chunk.toString());
      done();
    },
  });
  const stateDir = join(dir, "state");
  const store = join(dir, "artifacts");
  const vendored = (await findCodex({ version: PACKAGED_CODEX_VERSION })).bwrap;
  const bwrapPath = await findBubblewrap({ path: process.env["PATH"] ?? "", ...(vendored === null ? {} : { vendored }) });
  const ports: RunPorts = {
    store: await openDirectoryStore(store),
    providers: { bubblewrap: createBubblewrapProvider({ stateDir, bwrapPath }), host: createHostProvider({ stateDir }) },
    defaultProvider: "bubblewrap",
    codexes: [codex],
    modelKeys: { OPENAI_API_KEY: TEST_KEY },
    defaultKeyEnv: "OPENAI_API_KEY",
    keyOrigins: { OPENAI_API_KEY: ["*"], UNSET_KEY: ["*"] },
    systemPrompt: undefined,
    skills: NO_SKILLS,
    createSeconds: 60,
    worker: { id: "test-worker", host: "test-host", version: "0.0.0" },
    abandoned: new Set(),
    liveSecrets,
    telemetry: noAttemptTelemetry,
    log: createLogger({ level: "info", secrets: liveSecrets, destination }),
    ...overrides,
  };

  async function run(raw: Record<string, unknown>, options: RunOptions = {}): Promise<RunEnd> {
    const admission = admit(withDerivedIds(raw, "run1"), {
      allow_providers: ["bubblewrap", "host"],
      allow_key_env: ["OPENAI_API_KEY", "UNSET_KEY"],
    });
    if (!admission.accepted) throw new Error(`refused: ${JSON.stringify(admission.refusals)}`);
    const {
      signal = new AbortController().signal,
      attempt = 0,
      charged = 0,
      cancelMark = () => null,
      onProgress = () => undefined,
      meanwhile = () => Promise.resolve(),
      unsaved = [],
      isOvertaken = () => Promise.resolve(false),
    } = options;
    const end = await runActivation(
      {
        activation: admission.activation,
        generation: 0,
        enqueued_at: new Date().toISOString(),
        signal,
        ledger: {
          takeAttempt: () => meanwhile().then(() => ({ attempt, charged })),
          unsavedBefore: () => unsaved,
          used: () => undefined,
          isOvertaken,
          committed: () => undefined,
          cancelMark: () => Promise.resolve(cancelMark()),
          tell: () => Promise.resolve({ charged: true }),
          answered: () => undefined,
          progress: onProgress,
        },
      },
      ports,
    );
    const leak = logLines.find((line) => line.includes(CANARY_MESSAGE));
    if (leak !== undefined) throw new Error(`the canary found what redaction had missed: ${leak}`);
    return end;
  }

  return {
    ports,
    store,
    stateDir,
    logLines,
    run,
    async outcome(raw, options = {}) {
      const end = await run(raw, options);
      const result = end.kind === "ended" ? end.result : null;
      const activation_id = String(withDerivedIds(raw, "run1")["activation_id"]);
      const attempt = (await ports.store.readAttempts(activation_id)).find((saved) => saved.attempt === (options.attempt ?? 0));
      if (attempt === undefined) throw new Error(`no attempt.json of ${activation_id}`);
      const read = (file: string): Promise<string> => readFile(join(store, activation_id, `attempt-${attempt.attempt}`, file), "utf8");
      return { end, attempt, result, read };
    },
  };
}

/** Aborts as the queue would. */
export function abortWith(controller: AbortController, reason: StopReason): void {
  controller.abort(reason);
}
