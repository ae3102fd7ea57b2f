// SPDX-License-Identifier: Apache-2.0
import type { ToolCallRecord } from "../contract/observation.ts";
import type { ResponseItem, Usage } from "../contract/response.ts";
import { advisoryOf, type Advisory } from "./advisories.ts";
import { errorText, type CodexEvent, type CodexItem } from "./events.ts";
import { responseItems, spawnedBy, toolUseOf } from "./items.ts";
import { RECONNECTING } from "./profiles/texts.ts";
import type { StdoutRecord } from "./stdout.ts";
import { toolCallRecord } from "./tool-calls.ts";
import { addUsage } from "./usage.ts";

/** Everything the events of one Codex session say. */
export interface SessionFacts {
  threadId: string | null;
  turnStarted: boolean;
  turnCompleted: boolean;
  /** The conversation; items that never completed come last, as incomplete. */
  items: ResponseItem[];
  toolCalls: ToolCallRecord[];
  /** Successful calls by tool name. */
  toolsCalled: Record<string, number>;
  /** null = no turn completed, or its usage could not be read. */
  usage: Usage | null;
  /** Messages of turn.failed, in order. */
  turnFailures: string[];
  /** `error` items that are no advisories, and turn.failed; in order. */
  errors: string[];
  advisories: Advisory[];
  /** Top-level error events, reconnects among them: the usage of what they cut off is unknown. */
  streamErrors: number;
  reconnects: number;
  /** The last top-level error event; null = there is none after the last item, or the turn ended. */
  streamTrouble: string | null;
  /** Items and usage show that the model answered; null = cannot be told. */
  modelAnswered: boolean | null;
  /** Ids of tool items that completed without having started; at most 1,000. */
  toolStartsMissing: string[];
  events: number;
  unparsedLines: number;
  cutLines: number;
  /** Item events not kept because the conversation was too large. */
  eventsDropped: number;
  /** Threads that the events say were spawned: only those of agents of the first kind. */
  spawnedThreads: string[];
}

interface OpenItem {
  item: CodexItem;
  startedAt: number;
}

const MAX_CONVERSATION_BYTES = 64 * 1024 * 1024;
/** Stands for the id of items that have none. */
const NO_ID = "item";
/**
 * What each item counts beside its bytes, so that there are at most some 16,000. Until it stands in the result it is joined,
 * redacted and written several times, which takes about 9 KB of memory for the smallest (measured).
 */
const ITEM_OVERHEAD = 4_096;
/** Errors, advisories, tool names, missing starts: more than this are not told apart any more. */
const MAX_LISTED = 1_000;

/** Folds the records of one session as they come. Memory is bounded by `maxBytes` of items; what decides the verdict is always seen. */
export class Session {
  readonly #invocationId: string;
  readonly #maxBytes: number;
  readonly #open = new Map<string, OpenItem>();
  /** How often each id has been used. */
  readonly #ids = new Map<string, number>();
  readonly #toolsCalled = new Map<string, number>();
  readonly #facts: Omit<SessionFacts, "toolsCalled" | "usage" | "modelAnswered">;
  /** undefined = no turn completed yet. */
  #usage: Usage | null | undefined;
  #itemBytes = 0;

  constructor(invocationId: string, maxBytes: number = MAX_CONVERSATION_BYTES) {
    this.#invocationId = invocationId;
    this.#maxBytes = maxBytes;
    this.#facts = {
      threadId: null,
      turnStarted: false,
      turnCompleted: false,
      items: [],
      toolCalls: [],
      turnFailures: [],
      errors: [],
      advisories: [],
      streamErrors: 0,
      reconnects: 0,
      streamTrouble: null,
      toolStartsMissing: [],
      events: 0,
      unparsedLines: 0,
      cutLines: 0,
      eventsDropped: 0,
      spawnedThreads: [],
    };
  }

  get turnStarted(): boolean {
    return this.#facts.turnStarted;
  }

  /** Nothing more is to come: Codex runs one turn. */
  get turnEnded(): boolean {
    return this.#facts.turnCompleted || this.#facts.turnFailures.length > 0;
  }

  /** Something came that only the model can have made. */
  get answered(): boolean {
    return this.#facts.turnCompleted || this.#facts.items.length > 0 || this.#open.size > 0;
  }

  /** For live progress. */
  counts(): { turns: number; tool_calls: number; tokens: number | null } {
    const { turnStarted, toolCalls } = this.#facts;
    return { turns: turnStarted ? 1 : 0, tool_calls: toolCalls.length, tokens: this.#usage?.total_tokens ?? null };
  }

  apply(record: StdoutRecord): void {
    if (record.kind === "unparsed") this.#facts.unparsedLines++;
    else this.#facts.events++;
    if (record.kind === "cut") this.#facts.cutLines++;
    if (record.kind === "event") this.#applyEvent(record.event, record.at, record.bytes);
  }

  /** What is known so far. Open items are shown as incomplete; the session itself is not changed. */
  facts(): SessionFacts {
    const facts = this.#facts;
    const open = [...this.#open].flatMap(([id, { item, startedAt }]) =>
      item.type === "error" ? [] : [{ id: this.#distinct(id), item, startedAt }],
    );
    return {
      ...facts,
      items: [...facts.items, ...open.flatMap(({ id, item }) => responseItems(item, id, true))],
      toolCalls: [...facts.toolCalls, ...open.flatMap(({ id, item, startedAt }) => this.#toolCall(item, id, startedAt, null))],
      toolsCalled: Object.fromEntries(this.#toolsCalled),
      usage: this.#usage ?? null,
      modelAnswered: facts.turnCompleted || facts.items.length > 0 || open.length > 0 ? true : facts.turnStarted ? null : false,
    };
  }

  #applyEvent(event: CodexEvent, at: number, bytes: number): void {
    const facts = this.#facts;
    switch (event.type) {
      case "thread.started":
        facts.threadId = event.thread_id;
        return;
      case "turn.started":
        facts.turnStarted = true;
        return;
      case "turn.completed":
        facts.turnStarted = facts.turnCompleted = true;
        facts.streamTrouble = null;
        this.#usage = addUsage(this.#usage, event.usage);
        return;
      case "turn.failed": {
        const text = errorText(event.error);
        facts.streamTrouble = null;
        if (facts.turnFailures.length < MAX_LISTED) facts.turnFailures.push(text);
        this.#error(text);
        return;
      }
      case "error":
        facts.streamErrors++;
        facts.streamTrouble = errorText(event.message);
        if (facts.streamTrouble.startsWith(RECONNECTING)) facts.reconnects++;
        return;
      case "item.started":
      case "item.updated":
        facts.streamTrouble = null;
        this.#openItem(event.item, at, bytes);
        return;
      case "item.completed":
        facts.streamTrouble = null;
        this.#completeItem(event.item, at, bytes);
        return;
      default:
        event satisfies never;
    }
  }

  #openItem(item: CodexItem, at: number, bytes: number): void {
    if (item.id === undefined || !this.#fits(bytes)) return;
    const known = this.#open.get(item.id);
    this.#open.set(item.id, { item: { ...known?.item, ...item }, startedAt: known?.startedAt ?? at });
  }

  #completeItem(item: CodexItem, at: number, bytes: number): void {
    if (item.type === "error") {
      const text = errorText(item["message"]);
      const advisory = advisoryOf(text, this.#facts.turnStarted);
      if (advisory === null) this.#error(text);
      else if (this.#facts.advisories.length < MAX_LISTED) this.#facts.advisories.push(advisory);
      return;
    }
    const opened = item.id === undefined ? undefined : this.#open.get(item.id);
    if (item.id !== undefined) this.#open.delete(item.id);
    this.#addSpawned(spawnedBy(item));
    const use = toolUseOf(item);
    if (use !== null && !use.failed) this.#countCall(use.toolName);
    if (!this.#fits(bytes)) return;
    const id = this.#distinct(item.id);
    this.#ids.set(item.id ?? NO_ID, this.#uses(item.id) + 1);
    if (use !== null && opened === undefined && this.#facts.toolStartsMissing.length < MAX_LISTED) this.#facts.toolStartsMissing.push(id);
    this.#facts.items.push(...responseItems(item, id, false));
    this.#facts.toolCalls.push(...this.#toolCall(item, id, opened?.startedAt ?? null, at));
  }

  #toolCall(item: CodexItem, id: string, startedAt: number | null, completedAt: number | null): ToolCallRecord[] {
    const use = toolUseOf(item);
    return use === null ? [] : [toolCallRecord(use, { invocationId: this.#invocationId, id, startedAt, completedAt })];
  }

  #addSpawned(threads: readonly string[]): void {
    const { spawnedThreads } = this.#facts;
    spawnedThreads.push(...threads.slice(0, MAX_LISTED - spawnedThreads.length));
  }

  #error(text: string): void {
    if (this.#facts.errors.length < MAX_LISTED) this.#facts.errors.push(text);
  }

  #fits(bytes: number): boolean {
    this.#itemBytes += bytes + ITEM_OVERHEAD;
    if (this.#itemBytes <= this.#maxBytes) return true;
    this.#facts.eventsDropped++;
    return false;
  }

  #countCall(toolName: string): void {
    const before = this.#toolsCalled.get(toolName) ?? 0;
    if (before > 0 || this.#toolsCalled.size < MAX_LISTED) this.#toolsCalled.set(toolName, before + 1);
  }

  /** Codex's own id; numbered when it comes again or is missing, since calls and outputs are joined by it. */
  #distinct(id: string | undefined): string {
    const uses = this.#uses(id);
    return id !== undefined && uses === 0 ? id : `${id ?? NO_ID}~${uses + 1}`;
  }

  #uses(id: string | undefined): number {
    return this.#ids.get(id ?? NO_ID) ?? 0;
  }
}
