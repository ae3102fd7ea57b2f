// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { RunCancelled, RunRetried } from "../../../src/api/routes/runs.ts";
import type { RunReply } from "../../../src/api/run-view.ts";
import { askJson, segment } from "../ask.ts";
import { wholeText } from "../charts/words.ts";
import { ActionButton } from "../confirm.tsx";
import type { TableRow } from "./table-rows.ts";

/** What can be done with a whole run. */
export function Actions({ run, rows, again }: { run: RunReply; rows: readonly TableRow[]; again: () => void }) {
  const [told, setTold] = useState("");
  const base = `/v1/runs/${segment(run.run_id)}`;
  const { failed, refused, cancelled } = run.ended;
  const bad = failed + refused + cancelled;
  const lost = rows.filter(({ mark, retryable }) => !retryable && (mark === "failed" || mark === "refused" || mark === "cancelled")).length;
  const command = `rollcall enqueue TASKS.jsonl --run-id ${run.run_id} --server ${location.origin} --again failed`;
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
        {(bad === 0 || lost < bad) && (
          <ActionButton
            name="Retry what did not complete"
            disabled={bad === 0}
            question={`${wholeText(bad - lost)} that failed, were refused or cancelled are queued again, each as a new generation; earlier results are kept.${lost === 0 ? "" : ` ${wholeText(lost)} more had secrets, or have no job in the queue: ${command} runs them again.`}`}
            act={async () => {
              const { queued_again, impossible } = await askJson<RunRetried>(`${base}/retry`, { method: "POST" });
              const gone = impossible.secrets_deleted + impossible.job_removed;
              return `${wholeText(queued_again)} queued again${gone === 0 ? "." : `; ${wholeText(gone)} cannot be, from here: ${command}`}`;
            }}
            done={done}
          />
        )}
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
      {bad > 0 && lost >= bad && (
        <p class="dim">
          What did not complete had secrets, which are deleted at its end, or has no job in the queue. From its task file it runs again with{" "}
          <code>{command}</code>
        </p>
      )}
      <p role="status" class="told">
        {told}
      </p>
    </div>
  );
}
