// SPDX-License-Identifier: Apache-2.0
import { OFFICE_SERVER } from "../../examples/stand-ins/office-jobs/job.ts";
import { mcp, say, scriptLine, shell, step, withFault, type Step } from "../../examples/stand-ins/script.ts";
import { afterMeeting, besideTheKiller } from "./meeting-point.ts";

/** The reference run: 220 rollouts, of which 217 hand in, and 6,001 answered calls of the model. */
export const ROLLOUTS = 220;
export const NEIGHBOURS = 5;

/** Those that are not like the others, in the middle of the batch or at least not at its ends. */
export const ODD = {
  twice: "task-007",
  cutOff: "task-020",
  saysOnly: "task-040",
  hangs: "task-060",
  /** Behind its neighbours in the queue, so that they run when it does. */
  killer: "task-110",
  /** Does what cost the reference run a rollout, and no more than that. */
  killsPython: "task-112",
} as const;

const FIRST_NEIGHBOUR = 105;

export interface ReferenceRowsOptions {
  /** Of the meeting point; null = the killer does not wait for its neighbours. */
  port: number | null;
  /** Model calls of those that hand in: at least 6. The first `oneMore` of them make one more. */
  calls: { each: number; oneMore: number };
  /** What a row has besides its work. */
  more: (id: string) => object;
}

/** The rows of a task file, for the stand-in model. Pure. */
export function referenceRows({ port, calls, more }: ReferenceRowsOptions): object[] {
  let handingIn = 0;
  return Array.from({ length: ROLLOUTS }, (_, at) => {
    const id = `task-${String(at).padStart(3, "0")}`;
    const steps =
      endsOtherwise(id, { port, calls: calls.each }) ??
      handsIn(id, at, { port, calls: calls.each + (handingIn++ < calls.oneMore ? 1 : 0) });
    return {
      task_id: { taskset: "tasks", task_id: id },
      input: `Keep a journal of your work in journal.txt, then hand it in.\n${scriptLine({ steps: steps.map((one, call) => withUsage(one, at, call)) })}`,
      required_tools: ["finish"],
      ...(id === ODD.hangs ? { codex: { timeout_seconds: 20 } } : {}),
      ...more(id),
    };
  });
}

/** null for one that hands in. */
function endsOtherwise(id: string, { port, calls }: { port: number | null; calls: number }): Step[] | null {
  switch (id) {
    case ODD.saysOnly:
      return [...entries(calls - 1), step(say("Everything is done, and I do not hand it in."))];
    case ODD.hangs:
      return [...entries(3), withFault(step(say("never")), { kind: "hang" })];
    case ODD.killer: {
      const [first, last] = ["pkill -f python3; echo not reached", 'pkill -9 -f "[r]edis"; kill -9 1; kill -9 -1; sleep 5'];
      return [
        ...entries(1),
        step(shell(port === null ? first : afterMeeting(port, "killer first", first))),
        step(shell(port === null ? `sleep 0.5; ${last}` : afterMeeting(port, "killer last", last))),
        step(say("never")),
      ];
    }
    default:
      return null;
  }
}

function handsIn(id: string, at: number, { port, calls }: { port: number | null; calls: number }): Step[] {
  const isBeside = port !== null && at >= FIRST_NEIGHBOUR && at < FIRST_NEIGHBOUR + NEIGHBOURS;
  const finish = step(mcp(OFFICE_SERVER, "finish", { reason: "The journal is written.", paths: ["{{workdir}}/journal.txt"] }));
  const url = at % 10 === 0 ? "https://office.example/nothing-here" : "https://intranet.example/policies/travel";
  const middle = [
    ...(isBeside ? [step(shell(besideTheKiller(port, id)))] : []),
    ...(id === ODD.killsPython ? [step(shell("pkill -f python3; echo not reached"))] : []),
    step(mcp(OFFICE_SERVER, "web_search", { query: "travel policy" })),
    step(mcp(OFFICE_SERVER, "fetch_web_page", { url })),
    ...(id === ODD.twice ? [finish] : []),
  ];
  const script = [...entries(calls - middle.length - 2), ...middle, finish, step(say("The journal is handed in."))];
  if (id === ODD.cutOff) script[1] = withFault(script[1]!, { kind: "cut", times: 1 });
  return script;
}

const entries = (count: number): Step[] => Array.from({ length: count }, (_, at) => step(shell(`echo "entry ${at}" >> journal.txt`)));

/** No two calls alike, so that a sum over the wrong ones is another sum. */
const withUsage = (one: Step, task: number, call: number): Step => ({
  ...one,
  usage: {
    input_tokens: 1_000 + 7 * task + 100 * call,
    cached_input_tokens: 400 + call,
    output_tokens: 50 + call,
    reasoning_output_tokens: 10,
  },
});
