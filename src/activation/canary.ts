// SPDX-License-Identifier: Apache-2.0
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { z } from "zod";
import type { SessionActivation } from "../contract/activation.ts";
import type { ObservationGap } from "../contract/observation.ts";
import type { Artifact } from "../contract/result.ts";
import { buildSecretSet, findSecrets, holdsSecret, isPlainWord, REDACTED, redactValue, type SecretSet } from "../redact/index.ts";
import type { AttemptContext } from "./attempt.ts";
import type { RunPorts } from "./run.ts";

/** Logged, as an error, for every hit; tests fail when they see it. */
export const CANARY_MESSAGE = "a secret was about to leave in what had been redacted";

/** The last look at what an attempt is about to leave, after all redaction. A hit is a fault of ours. */
export interface Canary {
  /** Evidence that holds a secret is withheld: moved away in the store, and flagged. */
  evidence(artifacts: readonly Artifact[]): Promise<{ artifacts: Artifact[]; gaps: ObservationGap[] }>;
  /** The document itself when no secret is in it, else a copy that is redacted again and still fits its schema. */
  document<T extends object>(name: string, schema: z.ZodType<T>, document: T): Promise<T>;
}

/**
 * The producer's own words, which come back as they were given: ids name files and jobs, and metadata is returned untouched. A
 * value that stands in a grant as well is not hidden in them.
 */
const PRODUCERS_WORDS = new Set(
  "activation_id run_id agent_session_id episode_id task_id capture_key invocation_id uri metadata".split(" "),
);
/** Objects whose keys are not ours. */
const RECORDS = new Set(["tools_called"]);
const CHUNK = 262_144;

export function newCanary(
  { secrets, activation, attempt }: Pick<AttemptContext, "secrets" | "attempt"> & { activation: Pick<SessionActivation, "activation_id"> },
  { store, log, telemetry }: Pick<RunPorts, "store" | "log" | "telemetry">,
): Canary {
  const set = searchable(secrets);
  const { activation_id } = activation;
  const tell = (where: readonly string[]): void => {
    telemetry.canaryHits(where.length);
    log.error({ activation_id, attempt, where }, CANARY_MESSAGE);
  };

  async function checked(artifact: Artifact): Promise<{ artifact: Artifact; why: string | null }> {
    try {
      const hits = await findSecrets(set).scan(store.open(activation_id, attempt, artifact.path));
      if (hits === 0) return { artifact, why: null };
      tell([artifact.path]);
      const moved = await store.withhold(activation_id, attempt, artifact.path);
      return { artifact: { ...artifact, ...moved, quarantined: true }, why: "it holds a secret" };
    } catch (error) {
      log.error({ activation_id, attempt, path: artifact.path, err: error }, "evidence could not be searched for secrets");
      return { artifact: { ...artifact, quarantined: true }, why: "it could not be searched for secrets" };
    }
  }

  return {
    async evidence(artifacts) {
      if (set.isEmpty) return { artifacts: [...artifacts], gaps: [] };
      const gaps: ObservationGap[] = [];
      const left: Artifact[] = [];
      for (const one of artifacts) {
        const { artifact, why } = one.kind === "evidence" ? await checked(one) : { artifact: one, why: null }; // collect searched the others
        left.push(artifact);
        if (why !== null) gaps.push({ code: "artifact_quarantined", detail: JSON.stringify({ path: artifact.path, why }) });
      }
      return { artifacts: left, gaps };
    },
    async document(name, schema, document) {
      if (set.isEmpty || !(await stands(set, textOf(document)))) return document;
      const { value, hits } = redactAgain(set, schema, document);
      if (hits.length > 0) tell(hits.map((path) => `${name}: ${redactValue(secrets, path)}`));
      return value;
    },
  };
}

/** The secrets that can be told from our own words in a finished document: no plain words, small numbers, pieces of "[redacted]". */
function searchable(secrets: SecretSet): SecretSet {
  const isTold = ({ value }: { value: string }): boolean =>
    !isPlainWord(value) && !/^\d{1,12}$/.test(value.trim()) && !holdsSecret(buildSecretSet([{ value }]), REDACTED);
  return buildSecretSet(secrets.inputs.filter(isTold));
}

function textOf(document: object): string {
  return JSON.stringify(document, (key, value: unknown) => (PRODUCERS_WORDS.has(key) ? undefined : value));
}

/** In steps, so that others get their turn while a large document is read. */
async function stands(set: SecretSet, text: string): Promise<boolean> {
  async function* chunks(): AsyncGenerator<Buffer> {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += CHUNK) {
      if (at > 0) await nextTurn();
      yield bytes.subarray(at, at + CHUNK);
    }
  }
  return (await findSecrets(set).scan(Readable.from(chunks(), { objectMode: false }))) > 0;
}

type Path = readonly (string | number)[];

/**
 * Redacts every string of a document but the producer's words. What the schema fixes (words of ours, instants) stays as it is:
 * a header's value "agent" does not make a leak of a stage that is called so.
 */
function redactAgain<T extends object>(set: SecretSet, schema: z.ZodType<T>, document: T): { value: T; hits: string[] } {
  const kept = new Set<string>();
  for (;;) {
    const hits: Path[] = [];
    const value = redactLeaves(set, document, [], (path) => {
      if (kept.has(JSON.stringify(path))) return false;
      hits.push(path);
      return true;
    }) as T;
    const { error } = schema.safeParse(value);
    const fixed = (error?.issues ?? [])
      .map(({ path }) => JSON.stringify(path))
      .filter((path) => hits.some((hit) => JSON.stringify(hit) === path));
    if (fixed.length === 0) return { value, hits: hits.map((path) => path.join(".")) };
    for (const path of fixed) kept.add(path);
  }
}

function redactLeaves(set: SecretSet, value: unknown, path: Path, mayRedact: (path: Path) => boolean): unknown {
  if (typeof value === "string") return holdsSecret(set, value) && mayRedact(path) ? redactValue(set, value) : value;
  if (Array.isArray(value)) return value.map((item, index) => redactLeaves(set, item, [...path, index], mayRedact));
  if (value === null || typeof value !== "object") return value;
  if (RECORDS.has(String(path.at(-1)))) {
    const redacted = redactValue(set, value);
    return redacted !== value && mayRedact(path) ? redacted : value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      PRODUCERS_WORDS.has(key) ? inner : redactLeaves(set, inner, [...path, key], mayRedact),
    ]),
  );
}
