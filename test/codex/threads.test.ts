// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { modelCallGaps, modelCallsOf } from "../../src/activation/model-calls.ts";
import { transcriptGaps } from "../../src/activation/own-transcript.ts";
import { profileFor } from "../../src/codex/profile.ts";
import { joinTranscripts, type JoinedSession } from "../../src/codex/transcript-join.ts";
import type { ObservationGap } from "../../src/contract/observation.ts";
import { factsOf, threadsRecordings, transcriptsOf, VERSIONS, type ThreadsRecording, type Version } from "./recordings.ts";

async function joined(version: Version, recording: ThreadsRecording): Promise<JoinedSession> {
  return joinTranscripts(await factsOf(recording.stdout), await transcriptsOf(version, recording), "key", profileFor(version).transcript);
}
const gapsOf = (session: JoinedSession): ObservationGap[] => [
  ...transcriptGaps(session, "key", (text) => text),
  ...modelCallGaps(session.threads, "key"),
];

/** What the model server served: [input and output tokens, answered calls]. */
const SERVED: Record<string, [tokens: number | null, calls: number]> = {
  "subagent-wait": [105_040, 6],
  "subagent-late-fork": [54_540, 5],
  "subagent-of-subagent": [53_550, 6],
  "subagent-not-waited": [103_020, 4],
  "subagent-running-at-end": [2_020, 2],
  "subagent-fails": [3_030, 3],
  "first-kind-fork": [7_070, 7],
  "first-kind-code-mode": [4_040, 4],
  "compaction-code-mode": [14_039, 3],
  "compaction-plain": [14_039, 3],
  /** The totals fall to zero when the context is full. */
  "context-overflow": [2_020, 2],
  "code-mode-nested": [240, 2],
  "code-mode-sigint": [120, 1],
  "tool-search": [360, 3],
  "direct-by-catalogue": [360, 3],
  "fault-works-once-then-refused": [120, 1],
};

describe.each(VERSIONS)("the threads of a session of Codex %s", (version) => {
  const all = threadsRecordings(version);

  it.each(Object.keys(SERVED))("took together what the model server served: %s", async (name) => {
    const session = await joined(version, all[name]!);
    const { threads, model_calls } = modelCallsOf(session.threads);
    const [tokens, calls] = SERVED[name]!;
    expect([session.facts.usage?.total_tokens ?? null, threads.reduce((sum, one) => sum + one.model_calls, 0)]).toEqual([tokens, calls]);
    const listed = model_calls.reduce((sum, call) => sum + call.tokens.input_tokens + call.tokens.output_tokens, 0);
    expect([listed, model_calls.length]).toEqual([tokens, calls]);
    const times = model_calls.map(({ at }) => Date.parse(at ?? ""));
    expect(times).toEqual(times.toSorted((one, other) => one - other));
    const ids = model_calls.map(({ response_id }) => response_id);
    expect(new Set(ids).size).toBe(version === "0.144.4" ? 1 : calls);
    expect(ids.includes(null)).toBe(version === "0.144.4");
    expect(threads.map((one) => one.tokens.cache_write_input_tokens === null)).toEqual(threads.map(() => version === "0.144.4"));
  });

  it("agree with the events in every recording, and what they do not know they say", async () => {
    for (const [name, recording] of Object.entries(all)) {
      const codes = gapsOf(await joined(version, recording)).map(({ code }) => code);
      expect([name, codes.filter((code) => code !== "tool_outcome_unavailable" && code !== "model_call_outcome_unknown")]).toEqual([
        name,
        [],
      ]);
    }
  });

  it("say of one call that had begun when its thread ended, and of none where none had", async () => {
    const open: Record<string, string[]> = {};
    for (const [name, recording] of Object.entries(all)) {
      const session = await joined(version, recording);
      const told = gapsOf(session).flatMap(({ code, detail }) => (code === "model_call_outcome_unknown" ? [detail ?? ""] : []));
      const ids = modelCallsOf(session.threads).threads.flatMap((one) => (one.open_model_calls > 0 ? [one.thread_id] : []));
      expect(told).toEqual(ids.map((thread_id) => JSON.stringify({ thread_id, count: 1 })));
      if (told.length > 0) open[name] = ids;
    }
    // The model server was asked once more than it had answered; 0.171.0 was ended while it waited for the network.
    const child = Object.keys(all["subagent-running-at-end"]!.transcripts)[1]!;
    const waiting = Object.keys(all["fault-works-once-then-refused"]!.transcripts);
    expect(open).toEqual({
      "subagent-running-at-end": [child],
      ...(version === "0.144.4" ? {} : { "fault-works-once-then-refused": waiting }),
    });
  });

  it("name a finish that a subagent called: as a call of that subagent, with its own id", async () => {
    const { facts, threads } = await joined(version, all["subagent-wait"]!);
    expect(facts.toolsCalled["finish"]).toBe(1);
    const [root, sub] = threads;
    expect(facts.toolCalls.find(({ tool_name }) => tool_name === "finish")).toMatchObject({
      invocation_id: `key/${sub?.thread_id}`,
      tool_call_id: expect.stringMatching(/^exec-/),
      server_name: "office",
      status: "completed",
      duration_ms: expect.any(Number),
    });
    expect(sub).toMatchObject({
      parent_thread_id: root?.thread_id,
      agent_path: "/root/sub_one",
      parent_invocation_id: "key",
      spawned_by_tool_call_id: expect.stringMatching(/^call_/),
      status: "completed",
    });
    expect(sub?.conversation).toContainEqual(expect.objectContaining({ type: "function_call", name: "finish", status: "completed" }));
    expect(sub?.conversation.at(-1)).toMatchObject({ type: "message", role: "assistant" });
  });

  it("are told apart by their parents, and a fork's copy of its parent's calls is none of its own", async () => {
    const { threads: deep } = await joined(version, all["subagent-of-subagent"]!);
    expect(deep.map(({ agent_path }) => agent_path)).toEqual([deep[0]?.agent_path, "/root/sub_one", "/root/sub_one/sub_deep"]);
    expect(deep.map(({ parent_invocation_id }) => parent_invocation_id)).toEqual([null, "key", deep[1]?.invocation_id]);
    const { facts, threads } = await joined(version, all["subagent-late-fork"]!);
    expect([threads[1]?.toolCalls, threads[1]?.answeredCalls]).toEqual([[], 1]);
    expect(facts.toolCalls.map(({ invocation_id }) => invocation_id)).toEqual(["key"]);
  });

  it("say how each ended", async () => {
    const statusOf = async (name: string): Promise<unknown> => (await joined(version, all[name]!)).threads[1]?.status;
    expect(await statusOf("subagent-running-at-end")).toBe("incomplete");
    expect(await statusOf("subagent-fails")).toBe(version === "0.144.4" ? "unknown" : "failed");
  });

  it("are found for agents of the first kind too, of which records or events tell", async () => {
    for (const name of ["first-kind-fork", "first-kind-code-mode"]) {
      const { threads } = await joined(version, all[name]!);
      expect([name, threads.map(({ answeredCalls }) => answeredCalls)]).toEqual([name, name === "first-kind-fork" ? [5, 2] : [2, 2]]);
    }
    const { facts } = await joined(version, all["first-kind-fork"]!);
    const commands = facts.toolCalls.filter(({ invocation_id }) => invocation_id !== "key");
    expect(commands).toEqual([expect.objectContaining({ tool_name: "exec_command", status: "completed", error_type: null })]);
  });

  it("mark the call that summed the context up, and no other", async () => {
    const { threads } = await joined(version, all["compaction-plain"]!);
    expect(threads[0]?.modelCalls.map(({ kind, usage }) => [kind, usage.input_tokens])).toEqual([
      ["turn", 6000],
      ["compaction", 7000],
      ["turn", 900],
    ]);
  });
});

describe.each(VERSIONS)("code mode of Codex %s", (version) => {
  const all = threadsRecordings(version);
  const calls = async (name: string): Promise<string[]> =>
    (await joined(version, all[name]!)).facts.toolCalls.map(({ tool_name, tool_call_id, status, error_type }) => {
      const id = /^(exec|call|item)[-_]/.exec(tool_call_id)?.[1];
      return `${tool_name} ${id} ${status} ${error_type}`;
    });
  // 0.144.4 has no record of a command that a script ran.
  const command = version === "0.144.4" ? "item" : "exec";

  it("gives each call of a script its own id, where the version records it", async () => {
    expect(await calls("code-mode-nested")).toEqual([
      `exec_command ${command} completed null`,
      "slow exec completed null",
      "finish exec completed null",
      ...Array.from({ length: 3 }, () => `exec_command ${command} completed null`),
    ]);
    expect(await calls("code-mode-patch")).toEqual(["apply_patch exec completed null"]);
    expect(await calls("code-mode-mcp-timeout")).toEqual(["slow exec timeout timeout"]);
    expect(await calls("code-mode-mcp-tool-error")).toEqual(["boom exec failed tool_error"]);
    expect(await calls("code-mode-shell")).toEqual([`exec_command ${command} failed exit_code`]);
  });

  it("shows a script that failed, and no script that ran well", async () => {
    expect(await calls("code-mode-exception")).toEqual([`exec_command ${command} completed null`, "exec call failed script_error"]);
    // Without its host program 0.171.0 runs no script, and 0.144.4 runs it itself.
    expect(await calls("code-mode-no-host")).toEqual(version === "0.144.4" ? [] : ["exec call failed script_error"]);
    expect((await joined(version, all["code-mode-exception"]!)).facts.toolsCalled).toEqual({ exec_command: 1 });
  });

  it("leaves a script's call without an end open", async () => {
    expect(await calls("code-mode-terminate")).toEqual(["slow item incomplete null"]);
    expect(await calls("code-mode-sigint")).toEqual(["slow item incomplete null"]);
  });

  it("says it when a call is only in the events, or only in the transcript", async () => {
    const recording = all["code-mode-nested"]!;
    const without = (text: string, part: string): string =>
      text
        .split("\n")
        .filter((line) => !line.includes(part) || line.includes("custom_tool_call"))
        .join("\n");
    const [id, transcript] = Object.entries(recording.transcripts)[0]!;
    const unwritten = { ...recording, transcripts: { [id]: without(transcript, '"finish"') } };
    expect((await joined(version, unwritten)).disagreements).toEqual([{ what: "tool_calls", tool: "finish", events: 1, transcript: 0 }]);
    const untold = { ...recording, stdout: without(recording.stdout, '"finish"') };
    expect((await joined(version, untold)).disagreements).toEqual([{ what: "tool_calls", tool: "finish", events: 0, transcript: 1 }]);
  });
});

describe("of transcripts in the directory", () => {
  const version = "0.171.0";
  const recording = threadsRecordings(version)["subagent-wait"]!;
  const [rootId, childId] = Object.keys(recording.transcripts) as [string, string];
  const files = recording.transcripts;
  const FORGED = "01a22e83-ffff-7000-8000-000000000000";
  const read = async (changed: Record<string, string>, more = {}): Promise<{ threads: string[]; leftOut: string[] }> => {
    const { subagents, leftOut } = await transcriptsOf(version, { ...recording, transcripts: { ...files, ...changed } }, more);
    return { threads: subagents.map(({ thread_id }) => thread_id), leftOut: leftOut.map(({ thread_id, why }) => `${thread_id}: ${why}`) };
  };
  const spawns = (thread: string): string =>
    `${JSON.stringify({ type: "event_msg", payload: { type: "sub_agent_activity", event_id: "c", agent_thread_id: thread, kind: "started" } })}\n`;

  it("only those are read that a thread of the session spawned: not one that the model wrote beside them", async () => {
    const forged = files[childId]!.replaceAll(childId, FORGED);
    expect(await read({ [FORGED]: forged })).toEqual({ threads: [childId], leftOut: [] });
  });

  it("one is left out, and told, that says it is of another session or another parent: that of a Codex which the model ran", async () => {
    const named = `${files[rootId]!}${spawns(FORGED)}`;
    const other = files[childId]!.replaceAll(childId, FORGED);
    const foreign = other.replaceAll(rootId, "01a22e83-eeee-7000-8000-000000000000");
    for (const text of [foreign, other.replace(`"parent_thread_id":"${rootId}"`, `"parent_thread_id":"${childId}"`), "no record\n", ""]) {
      expect(await read({ [rootId]: named, [FORGED]: text })).toEqual({
        threads: [childId],
        leftOut: [`${FORGED}: it says that it is another's`],
      });
    }
    expect(await read({ [rootId]: named, [FORGED]: other })).toEqual({ threads: [childId, FORGED], leftOut: [] });
  });

  it("so many are read, and a missing one or one more than that is told", async () => {
    const many = Array.from({ length: 5 }, (_, n) => `01a22e83-ffff-7000-8000-00000000000${n}`);
    const named = files[rootId]! + many.map(spawns).join("");
    expect(await read({ [rootId]: named }, { maxThreads: 3 })).toEqual({
      threads: [childId],
      leftOut: [...many.slice(0, 2).map((id) => `${id}: there is none, or too much of it`), `${many[2]}: more than 3 threads`],
    });
  });

  it("a thread that names itself or its parent as spawned is read once", async () => {
    const circle = `${files[childId]!}${spawns(rootId)}${spawns(childId)}`;
    expect(await read({ [childId]: circle })).toEqual({ threads: [childId], leftOut: [] });
  });
});
