// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { RunCancelled, RunRetried } from "../../../src/api/routes/runs.ts";
import type { RunReply } from "../../../src/api/run-view.ts";
import { askJson, segment } from "../ask.ts";
import { wholeText } from "../charts/words.ts";
import { ActionButton } from "../confirm.tsx";

/** What can be done with a whole run. */
export function Actions({ run, again }: { run: RunReply; again: () => void }) {
  const [told, setTold] = useState("");
  const base = `/v1/runs/${segment(run.run_id)}`;
  const { failed, refused, cancelled } = run.ended;
  const open = run.waiting + run.parked + run.delayed + run.running + (run.rollouts?.with_server ?? 0);
  const held = run.paused !== null || run.breaker !== null;
  const done = (text: string): void => {
    setTold(text);
    again();
  };
  return (
    <div class="actions">
      <div class="buttons">
        {held ? (
          <ActionButton name="Resume" act={() => askJson(`${base}/resume`, { method: "POST" }).then(() => "Goes on.")} done={done} />
        ) : (
          <ActionButton
            name="Pause"
            disabled={open === 0}
            act={() => askJson(`${base}/pause?reason=on+its+page`, { method: "POST" }).then(() => "Paused: nothing more starts.")}
            done={done}
          />
        )}
        <ActionButton
          name="Retry what did not complete"
          disabled={failed + refused + cancelled === 0}
          question={`${wholeText(failed)} failed, ${wholeText(refused)} refused and ${wholeText(cancelled)} cancelled are queued again, each as a new generation; earlier results are kept. Of those that had secrets Redis has nothing to run again: send them again yourself.`}
          act={async () => {
            const { queued_again, impossible } = await askJson<RunRetried>(`${base}/retry`, { method: "POST" });
            const lost = impossible.secrets_deleted + impossible.job_removed;
            return `${wholeText(queued_again)} queued again${lost === 0 ? "." : `; ${wholeText(lost)} are gone from the queue: send them again.`}`;
          }}
          done={done}
        />
        <ActionButton
          name="Cancel the run"
          danger
          disabled={open === 0}
          question={`${wholeText(open)} that have not ended are cancelled; ${wholeText(run.running)} of them run, and are told to stop. What was seen of them is kept.`}
          act={async () => {
            const { found } = await askJson<RunCancelled>(`${base}?reason=on+its+page`, { method: "DELETE" });
            return `Cancelled: ${Object.entries(found)
              .map(([state, count]) => `${wholeText(count)} ${state}`)
              .join(", ")}.`;
          }}
          done={done}
        />
      </div>
      <p role="status" class="told">
        {told}
      </p>
    </div>
  );
}
