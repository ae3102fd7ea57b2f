// SPDX-License-Identifier: Apache-2.0
import { useMemo } from "preact/hooks";
import { sumUsage, usageText } from "../../../src/contract/usage.ts";
import { distributionOf, type Distribution } from "../charts/histogram.ts";
import { histogramOption } from "../charts/histogram-option.ts";
import type { Palette } from "../charts/palette.ts";
import { durationText } from "../../../src/contract/figures.ts";
import { countText, rewardText, wholeText } from "../charts/words.ts";
import { Chart } from "../chart.tsx";
import type { TableRow } from "./table-rows.ts";

const HEIGHT = 132;

/** How rewards, time, tokens and tool calls are spread over the activations that ended. */
export function Distributions({ rows, palette }: { rows: readonly TableRow[]; palette: Palette }) {
  const ended = useMemo(() => rows.filter((row) => row.ended !== null), [rows]);
  const spread = useMemo(
    () => [
      { name: "Reward", words: rewardText, found: distributionOf(known(ended, "reward")) },
      { name: "Time with Codex", words: durationText, found: distributionOf(known(ended, "took")) },
      { name: "Tokens", words: countText, found: distributionOf(known(ended, "tokens")) },
      { name: "Tool calls", words: countText, found: distributionOf(known(ended, "tool_calls")) },
    ],
    [ended],
  );
  if (spread.every(({ found }) => found === null)) return null;
  return (
    <div class="three">
      {spread.map(({ name, words, found }) =>
        found === null ? null : <Spread key={name} {...{ name, words, found, palette }} figures={figuresOf(name, found, words, ended)} />,
      )}
    </div>
  );
}

interface Props {
  name: string;
  words: (value: number) => string;
  found: Distribution;
  palette: Palette;
  figures: string;
}

function Spread({ name, words, found, palette, figures }: Props) {
  const option = useMemo(() => histogramOption(found, palette, words), [found, palette, words]);
  return (
    <figure class="card">
      <figcaption>
        <h2>{name}</h2>
        <span class="dim">{figures}</span>
      </figcaption>
      <Chart option={option} height={HEIGHT} label={`${name} of ${wholeText(found.count)} activations: ${figures}`} />
      <details>
        <summary>As a table</summary>
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">{name}</th>
              <th scope="col" class="number">
                Activations
              </th>
            </tr>
          </thead>
          <tbody>
            {found.bins
              .filter(({ count }) => count > 0)
              .map(({ from, to, count }) => (
                <tr key={from}>
                  <th scope="row">
                    {words(from)} to {words(to)}
                  </th>
                  <td class="number">{wholeText(count)}</td>
                </tr>
              ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}

/** Of rewards the mean, and over how many, is what anybody asks for. */
function figuresOf(name: string, { p50, p90, most, sum, count }: Distribution, words: Props["words"], ended: readonly TableRow[]): string {
  const spread = `median ${words(p50)}, 90 % within ${words(p90)}, most ${words(most)}`;
  if (name === "Tokens") return [...tokensInAll(sum, ended), spread].join("; ");
  if (name !== "Reward") return spread;
  const without = ended.filter(({ scored, reward }) => scored && reward === null).length;
  return `mean ${words(sum / count)} of ${wholeText(count)} scored, median ${words(p50)}${without === 0 ? "" : `; ${wholeText(without)} ended without one`}`;
}

/** By kind as far as rows tell it: those of earlier versions tell the sum alone. */
function tokensInAll(sum: number, ended: readonly TableRow[]): string[] {
  const { usage } = sumUsage(ended.map((row) => row.usage));
  return [`${wholeText(sum)} in all${usage === null || usage.total_tokens !== sum ? "" : `: ${usageText(usage, wholeText)}`}`];
}

function known(rows: readonly TableRow[], field: "reward" | "took" | "tokens" | "tool_calls"): number[] {
  return rows.flatMap((row) => row[field] ?? []);
}
