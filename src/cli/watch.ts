// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import type { EventReply } from "../api/messages.ts";
import type { RunReply } from "../api/run-view.ts";
import { printable } from "../printable.ts";
import { duration } from "../rollout/summary-table.ts";
import type { Reader } from "./reader.ts";
import { withServerFlags, type ServerFlags } from "./server-client.ts";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";
import { stopSignals } from "./signals.ts";

interface WatchFlags extends SettingsFlags, ServerFlags {
  out?: string;
  json?: true;
  run?: true;
}

export function watchCommand(): Command {
  const command = new Command("watch")
    .description("Follow an activation, or a run, until it has ended: a line for each event, or for each end.")
    .argument("[id]", "an activation or a run; with --out its run when left away")
    .option("--out <dir>", "output directory of a run with an embedded Redis, instead of REDIS_URL")
    .option("--json", "events as JSON lines")
    .option("--run", "take the id for a run's, where an activation has the same");
  return withConfigFlag(withServerFlags(command)).action(async (id: string | undefined, flags: WatchFlags) => {
    const { openReader } = await import("./reader.ts");
    const reader = await openReader(flags, { settings: await settingsFrom(flags), env: process.env });
    const stop = stopSignals();
    try {
      const target = await reader.find(id ?? null, { run: flags.run === true });
      const lines = target.kind === "run" ? runLines(reader, target.id, stop.signal) : eventLines(reader, target.id, stop.signal);
      for await (const { data, text } of lines)
        process.stdout.write(`${flags.json === true ? printable(JSON.stringify(data)) : printable(text)}\n`);
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    } finally {
      stop.dispose();
      await reader.close();
    }
  });
}

type Lines = AsyncGenerator<{ data: unknown; text: string }, undefined>;

async function* eventLines(reader: Reader, id: string, signal: AbortSignal): Lines {
  for await (const event of reader.events(id, { signal })) yield { data: event, text: eventText(event) };
  return undefined;
}

async function* runLines(reader: Reader, runId: string, signal: AbortSignal): Lines {
  const first = await reader.run(runId);
  yield { data: first, text: runText(first) };
  const wanted = { limit: 1_000_000, follow: true, bare: true, signal };
  for await (const { activation_id, status, cursor } of reader.results(runId, wanted))
    yield { data: { activation_id, status, cursor }, text: `${activation_id}: ${status}` };
  const last = await reader.run(runId);
  yield { data: last, text: runText(last) };
  return undefined;
}

/** For people. Pure. */
function eventText({ at, stage, attempt, note, counts }: EventReply): string {
  const so_far = counts === undefined ? "" : ` (${counts.turns} turns, ${counts.tool_calls} tool calls, ${counts.tokens ?? "?"} tokens)`;
  return `${at}  attempt ${attempt}  ${stage}${note === undefined ? "" : `: ${note}`}${so_far}`;
}

/** For people. Pure. */
function runText({ run_id, total, ended, running, waiting, parked, delayed, paused, eta_seconds }: RunReply): string {
  const ends = Object.entries(ended).filter(([, count]) => count > 0);
  const sum = ends.reduce((all, [, count]) => all + count, 0);
  const how = ends.length === 0 ? "" : ` (${ends.map(([status, count]) => `${count} ${status}`).join(", ")})`;
  const held = paused === null ? "" : ", paused";
  const eta = eta_seconds === null ? "" : `, about ${duration(eta_seconds * 1_000)} left`;
  return `run ${run_id}: ${sum} of ${total} ended${how}, ${running} running, ${waiting + parked + delayed} waiting${held}${eta}`;
}
