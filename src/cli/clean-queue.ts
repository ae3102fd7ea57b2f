// SPDX-License-Identifier: Apache-2.0
import type { Environment } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { RollcallError } from "../errors.ts";
import { cleanSessions } from "../gym/clean.ts";
import { AGENT_SERVER_RUN } from "../gym/names.ts";
import { cleanEnded } from "../queue/clean.ts";
import { removeRun } from "../queue/remove-run.ts";
import { isKnownRun } from "../queue/run-status.ts";
import { EXIT } from "../rollout/exit-code.ts";
import type { CleanFlags } from "./clean.ts";
import { openDesk } from "./desk.ts";
import { printable } from "../printable.ts";

const DAY_MS = 86_400_000;

/** Cleans, prints what went and returns the exit code. Throws RollcallError "run_unknown". */
export async function clean(flags: CleanFlags, { settings, env }: { settings: Settings; env: Environment }): Promise<number> {
  const desk = await openDesk({ settings, env, out: flags.out ?? null, records: false });
  try {
    const dryRun = flags.dryRun === true;
    const print = (data: object, text: string): void =>
      void process.stdout.write(printable(`${flags.json === true ? JSON.stringify(data) : text}\n`));
    const verb = dryRun ? "would remove" : "removed";
    if (flags.run === undefined) {
      const days = flags.olderThan ?? settings.retention.ended_jobs_days;
      const before = Date.now() - days * DAY_MS;
      const cleaned = await cleanEnded(desk.queues, { before, dryRun });
      const agent_sessions = await cleanSessions(desk.queues, { before, dryRun });
      const strays = cleaned.strays === 0 ? "" : `, and ${cleaned.strays} jobs without a parent`;
      const sessions = agent_sessions === 0 ? "" : `, and ${agent_sessions} agent sessions that were closed`;
      const text = `${verb} ${cleaned.activations} activations that ended more than ${days} days ago${strays}${sessions}`;
      print({ dry_run: dryRun, ...cleaned, agent_sessions }, text);
      return EXIT.ok;
    }
    if (!(await isKnownRun(desk.queues, flags.run)))
      throw new RollcallError("run_unknown", `nothing of a run ${flags.run} is in this Redis`);
    const removed = await removeRun(desk.queues, flags.run, { dryRun });
    const { ended, open, held } = removed;
    const data = { dry_run: dryRun, run_id: flags.run, ...removed };
    if (held > 0) {
      print(data, `nothing was removed: workers hold ${held} of run ${flags.run}; \`rollcall cancel\` it first`);
      return EXIT.someFailed;
    }
    if (flags.run === AGENT_SERVER_RUN) await cleanSessions(desk.queues, { before: null, dryRun });
    print(data, `${verb} run ${flags.run}: ${ended} activations that had ended, ${open} that had not`);
    return EXIT.ok;
  } finally {
    await desk.close();
  }
}
