// SPDX-License-Identifier: Apache-2.0
import { Link } from "wouter-preact";
import type { RunReply } from "../../../src/api/run-view.ts";
import { visible, wholeText } from "../charts/words.ts";
import { ActivationLink } from "../parts.tsx";
import { filterIn, searchOf } from "./filter.ts";
import { toTable } from "./summary.tsx";

const MOST_REASON = 300;

/** What went wrong, the most frequent first, each with the words of one. */
export function Failures({ failures }: Pick<RunReply, "failures">) {
  if (failures.length === 0) return null;
  return (
    <section class="card" aria-labelledby="failures">
      <h2 id="failures">Failures by cause</h2>
      <ul class="failures">
        {failures.map(({ failure_kind, cause_code, count, example }) => (
          <li key={`${failure_kind}/${cause_code}`}>
            <div class="cause">
              <Link
                href={`${location.pathname}${searchOf({ ...filterIn(new URLSearchParams()), cause: cause_code })}#activations`}
                onClick={toTable}
                aria-label={`${wholeText(count)} with the cause ${cause_code}: show them in the table`}
              >
                <span class="count is-failed">{wholeText(count)}</span> <strong>{cause_code}</strong>
              </Link>
              <span class="dim">{failure_kind}</span>
            </div>
            <div class="example">
              <span class="dim">for example </span>
              <ActivationLink id={example.activation_id} />
              {example.failure_reason !== null && <p class="reason">{ending(example.failure_reason)}</p>}
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Of the end of stderr, the last line says most. */
function ending(reason: string): string {
  const lines = visible(reason.trim()).split("\n");
  const last = lines.at(-1) ?? "";
  return (lines.length === 1 ? "" : "… ") + (last.length <= MOST_REASON ? last : `${last.slice(0, MOST_REASON)} …`);
}
