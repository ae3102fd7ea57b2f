// SPDX-License-Identifier: Apache-2.0
import type { Tokens } from "../contract/result.ts";
import { addTokens, NO_TOKENS, tokensSince } from "./tokens.ts";

/** One answered model call. */
export interface ModelCallFacts {
  /** null: the version does not tell it. */
  response_id: string | null;
  usage: Tokens;
  /** When its tokens were told, in Unix seconds. */
  at: number | null;
  kind: "turn" | "compaction";
}

/**
 * Counts the model calls of one thread from what its transcript says, in order. `source`: where their tokens stand (see
 * TranscriptHabits); null = in records, or where no record comes in the growth of totals. `keep` says whether one more may be kept.
 *
 * A call is open from when it begins (a turn starts, the model was given all outputs, the context was compacted) until its tokens
 * are told or the turn ends. With records that is right after the answer; with totals it is after the outputs of the calls in it.
 */
export class ModelCallCount {
  readonly #source: "records" | "totals" | null;
  readonly #keep: () => boolean;
  readonly #byRecords = new Tally();
  readonly #byTotals = new Tally();
  #total: Tokens | null = null;
  #open = false;
  /** Calls whose outputs the model is still to be given. */
  #running = 0;
  /** It was given all of them: the next call begins, with totals when the tokens of this one are told. */
  #nextBegins = false;
  /** Since tokens were last told. */
  #answered = false;
  #called = false;

  constructor(source: "records" | "totals" | null, keep: () => boolean) {
    this.#source = source;
    this.#keep = keep;
  }

  begun(): void {
    this.ended();
    this.#open = true;
  }

  /** However a turn ended by itself, nothing is asked any more. */
  ended(): void {
    this.#settled(false);
    this.#running = 0;
  }

  answering(what: "call" | "words"): void {
    this.#answered = true;
    if (what === "words") this.#current.wordsSince = true;
    else {
      this.#called = true;
      this.#running++;
    }
  }

  /** The model gets an output. `last`: its turn was aborted, so that it is asked no more. */
  given({ last }: { last: boolean }): void {
    this.#running = Math.max(0, this.#running - 1);
    if (last || this.#running > 0) return;
    this.#nextBegins = true;
    // The tokens of the answer that made the call were told before.
    if (!this.#answered) this.#open = true;
  }

  told({ response_id, usage }: { response_id: string; usage: Tokens }, at: number | null): void {
    if (this.#source === "totals") return;
    this.#byRecords.add({ response_id, usage, at, kind: "turn" }, this.#keep);
    this.#settled(false);
  }

  /** The same total comes again after a call that failed and around a compaction: those are no model calls. It falls to zero when the context is full. */
  totals(total: Tokens | null, at: number | null): void {
    if (this.#source === "records") return;
    const grown = total === null ? NO_TOKENS : tokensSince(this.#total, total);
    if (total !== null) this.#total = total;
    const isCall = Object.values(grown).some((more) => more !== null && more > 0);
    if (isCall) this.#byTotals.add({ response_id: null, usage: grown, at, kind: "turn" }, this.#keep);
    const isByRecords = this.#source === null && this.#byRecords.count > 0;
    if (!isByRecords && (isCall || this.#answered)) this.#settled(this.#nextBegins);
  }

  /** A total that was copied from the parent thread. */
  copied(total: Tokens | null): void {
    this.#total = total ?? this.#total;
  }

  /** The call before it summed the context up, if its tokens were told; and another one follows. */
  compacted(): void {
    this.#byRecords.lastWasCompaction();
    this.#byTotals.lastWasCompaction();
    this.#open = true;
  }

  facts(): {
    modelCalls: ModelCallFacts[];
    answeredCalls: number;
    lastAnswerUncounted: boolean;
    openCalls: number;
    usage: Tokens | null;
  } {
    const { calls, count, sum } = this.#current;
    return {
      modelCalls: calls,
      answeredCalls: count,
      lastAnswerUncounted: this.#called,
      openCalls: this.#open ? 1 : 0,
      usage: count === 0 ? null : sum,
    };
  }

  get #current(): Tally {
    if (this.#source !== null) return this.#source === "records" ? this.#byRecords : this.#byTotals;
    return this.#byRecords.count > 0 ? this.#byRecords : this.#byTotals;
  }

  #settled(nextBegins: boolean): void {
    this.#open = nextBegins;
    this.#nextBegins = this.#answered = this.#called = false;
  }
}

/** The calls that are kept, and the sum of all. */
class Tally {
  readonly calls: ModelCallFacts[] = [];
  count = 0;
  sum: Tokens = NO_TOKENS;
  /** The model said something after its last call was told. */
  wordsSince = false;
  #lastIsKept = false;

  add(call: ModelCallFacts, keep: () => boolean): void {
    this.count++;
    this.sum = addTokens(this.sum, call.usage);
    this.wordsSince = false;
    this.#lastIsKept = keep();
    if (this.#lastIsKept) this.calls.push(call);
  }

  lastWasCompaction(): void {
    const last = this.calls.at(-1);
    if (last !== undefined && this.#lastIsKept && !this.wordsSince) last.kind = "compaction";
  }
}
