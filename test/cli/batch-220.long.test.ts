// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { OFFICE_SERVER } from "../../examples/stand-ins/office-jobs/job.ts";
import { startOfficeTools } from "../../examples/stand-ins/office-tools.ts";
import { startResourcesServer } from "../../examples/stand-ins/resources-server.ts";
import { SESSION_TOKEN_HEADER } from "../../examples/stand-ins/session-tokens.ts";
import { openReportFile } from "../report/open-report.ts";
import { openBrowser } from "../support/browser.ts";
import { startMeetingPoint } from "../support/meeting-point.ts";
import { NEIGHBOURS, ODD, referenceRows, ROLLOUTS } from "../support/reference-rows.ts";
import { expectItsNumbers, expectTheKillerKept } from "./reference-numbers.ts";
import { runReference, type ReferenceRun } from "./reference-run.ts";

// The reference run's shape at its full size: 217 hand in, one of them twice, one ends with a message, one at its wall clock, and one kills
// what it can.

const MINUTES = 60_000;
/** Of a rollout. The reference run's 6,001 in all (27 each) take several times as long: REFERENCE_CALLS=27. */
const FEW_CALLS = 6;

const journalOf = ({ out }: ReferenceRun, id: string): string => readFileSync(join(out, `task_${id}`, "repeat_0", "journal.txt"), "utf8");

it(
  "220 rollouts of the reference run end in one result each, told in numbers that the servers counted, and none is hurt by the one that kills [R45 R47]",
  async () => {
    const [meeting, office] = [await startMeetingPoint(NEIGHBOURS), await startOfficeTools()];
    const outside = [spawn("python3", ["-c", "import time; time.sleep(7200)"]), spawn("sleep", ["7200"])];
    onTestFinished(async () => {
      for (const one of outside) one.kill("SIGKILL");
      await Promise.all([meeting.close(), office.close()]);
    });
    const more = (id: string): object => {
      const connection = { transport: "streamable_http", url: office.url, headers: { [SESSION_TOKEN_HEADER]: office.mintToken(id) } };
      return { tool_grants: [{ type: "mcp", name: OFFICE_SERVER, required: true, connection }] };
    };
    const each = Number(process.env["REFERENCE_CALLS"] ?? FEW_CALLS);
    const ran = await runReference(referenceRows({ port: meeting.port, calls: { each, oneMore: 109 }, more }), () => []);
    expectTheKillerKept(ran);
    // Five sessions with a python3 and a sleep of their own, and two processes beside the run, were there for each of its two blows.
    expect(meeting.besides).toEqual([NEIGHBOURS, NEIGHBOURS]);
    expect(meeting.alive.size).toBe(NEIGHBOURS);
    for (const id of meeting.alive) expect(journalOf(ran, id)).toContain("python3 and sleep live");
    expect(outside.map(({ exitCode, signalCode }) => exitCode ?? signalCode)).toEqual([null, null]);
    // What cost the reference run a rollout costs none here: Codex outlives it, and the work is handed in.
    expect(ran.results.get(ODD.killsPython)).toMatchObject({ status: "completed", evidence: { tools_called: { finish: 1 } } });
    expectItsNumbers(ran, office.calls);
    expect(ran.metrics.model_calls.answered.total).toBe(218 * each + 115); // 6,001 with 27 each
    expect(ran.metrics.rewards).toBeNull();
    await expectTheReportToFit(join(ran.out, "report.html"));
  },
  60 * MINUTES,
);

it(
  "the same 220 behind a resources server are seeded, verified and closed once each; the rewards are over the 219 that it scored [R45]",
  async () => {
    let server: Awaited<ReturnType<typeof startResourcesServer>> | undefined;
    onTestFinished(() => server?.close());
    const more = (id: string): object => ({ task_data: { task_id: id, sector: "Finance" } });
    const ran = await runReference(referenceRows({ port: null, calls: { each: FEW_CALLS, oneMore: 109 }, more }), async (out) => {
      server = await startResourcesServer({ artifacts: join(out, "artifacts") });
      return ["--resources-server", server.url];
    });
    const { calls, toolCalls } = server!;
    const stillOpen = server!.openSessions();
    expectTheKillerKept(ran);
    expectItsNumbers(ran, toolCalls);
    const asked = (path: string): string[] =>
      calls.flatMap((call) => (call.path === path && call.status === 200 ? [call.rollout_id!] : []));
    const all = [...ran.results.keys()].sort();
    expect(calls.filter(({ status }) => status !== 200)).toEqual([]);
    expect([asked("/seed_session").sort(), asked("/close_session").sort(), stillOpen]).toEqual([all, all, []]);
    const scored = asked("/verify").sort();
    expect(scored).toEqual(all.filter((id) => id !== ODD.killer));
    // It gives 1 to a session that handed in, and looked at the file itself.
    const finishers = new Set(toolCalls.flatMap(({ tool, session_id }) => (tool === "finish" ? [session_id] : [])));
    const good = calls
      .filter(({ path, session_id }) => path === "/verify" && finishers.has(session_id))
      .map(({ rollout_id }) => rollout_id);
    for (const [id, { reward }] of ran.results)
      expect([id, reward]).toEqual([id, id === ODD.killer ? undefined : good.includes(id) ? 1 : 0]);
    expect(ran.summary.unverified).toBe(0);
    expect(ran.summary.rewards.scored).toBe(scored.length);
    expect(ran.summary.rewards.mean).toBeCloseTo(good.length / scored.length, 12);
    expect(ran.ended.stdout).toMatch(/reward +│ mean 0\.991 over 219 scored /);
    const { rewards } = ran.metrics;
    expect(rewards).toMatchObject({ scored: scored.length, unscored_gradable: 0, verification_failed: 0, tasks: scored.length });
    expect(rewards!.mean_of_scored!.value).toBeCloseTo(good.length / scored.length, 12);
    expect(rewards!.median_of_scored!.value).toBe(1);
    expect(rewards!.mean_of_expected).toBeCloseTo(good.length / ROLLOUTS, 12);
    expect(rewards!.pass).toMatchObject([{ k: 1, pass_at_k: { n: scored.length }, pass_hat_k: { n: scored.length } }]);
    expect(readFileSync(join(ran.out, "report.md"), "utf8")).toContain("| mean, unscored as 0 | 0.986 | all 220 expected rollouts |");
  },
  60 * MINUTES,
);

/** At both sizes and in both schemes: nothing is wider than the window, nothing is asked for, nothing is wrong. */
async function expectTheReportToFit(path: string): Promise<void> {
  const browser = await openBrowser();
  onTestFinished(() => browser.close());
  for (const [width, height] of [
    [1280, 900],
    [360, 740],
  ] as const) {
    for (const colorScheme of ["light", "dark"] as const) {
      const { page, wrong } = await openReportFile(browser, path, { viewport: { width, height }, colorScheme });
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(width);
      expect(await page.locator("#rollouts tbody tr:visible").count()).toBe(ROLLOUTS);
      expect(wrong).toEqual([]);
      await page.close();
    }
  }
}
