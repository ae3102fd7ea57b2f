// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import { html, raw } from "hono/html";
import { amount } from "../rollout/summary-table.ts";
import { printable } from "../printable.ts";
import { reportCharts, type ReportChart } from "./charts.ts";
import { drawChart } from "./draw-chart.ts";
import type { GatheredRun } from "./gather.ts";
import { PAGE_SCRIPT } from "./page-script.ts";
import { PAGE_COLORS, PAGE_STYLE } from "./page-style.ts";
import { type Cell, keyFigures, reportTables, type ReportTable } from "./report-tables.ts";
import { type RolloutLine, rolloutsTable } from "./rollouts-table.ts";
import { partialSentence } from "./words.ts";

type Html = ReturnType<typeof html>;

/** Rows in the table of rollouts; a browser is slow with many more, and `--json` has all. */
const MAX_ROLLOUTS = 2_000;
/** A chart is drawn for a desk and for a phone: scaled down, its text could not be read. */
const WIDTHS = [
  ["wide", 560],
  ["narrow", 330],
] as const;

/**
 * The report as one HTML page that needs nothing else: styles, charts (SVG, drawn here) and the one small script are in it, and its
 * policy forbids everything else, so that no text of others can become code or a request.
 */
export async function reportPage(gathered: Pick<GatheredRun, "metrics" | "rows">): Promise<string> {
  const { metrics, rows } = gathered;
  const title = `Run ${printable(metrics.run_id)}`;
  const { head, lines } = rolloutsTable(rows);
  const policy = `default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-${createHash("sha256").update(PAGE_SCRIPT).digest("base64")}'; base-uri 'none'; form-action 'none'`;
  const partial = partialSentence(metrics);
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${policy}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="referrer" content="no-referrer" />
        <title>${title}</title>
        ${raw(`<style>${PAGE_STYLE}</style>`)}
      </head>
      <body>
        <a class="skip" href="#rollouts-title">To the rollouts</a>
        <header>
          <h1><bdi>${title}</bdi></h1>
          <p class="soft"><bdi>${printable(metrics.tasks_path)}</bdi>, begun ${metrics.created_at}${models(metrics.models)}</p>
          ${partial === null ? "" : html`<p class="notice">${partial}</p>`}
        </header>
        <main>
          <dl class="figures">
            ${keyFigures(metrics).map(
              ({ name, value, note }) =>
                html`<div>
                  <dt><bdi>${printable(name)}</bdi></dt>
                  <dd class="value">${value}</dd>
                  <dd class="note">${note}</dd>
                </div>`,
            )}
          </dl>
          <div class="charts">${reportCharts(gathered, PAGE_COLORS).map(chartFigure)}</div>
          ${reportTables(metrics).map((table) => tableSection(table))} ${rolloutsSection(lines, head)}
        </main>
        <footer>Made by rollcall report; nothing on this page is fetched from anywhere.</footer>
        ${raw(`<script>${PAGE_SCRIPT}</script>`)}
      </body>
    </html>`;
  return `${String(await page)}\n`;
}

function models(names: readonly string[]): Html | string {
  return names.length === 0 ? "" : html`, model <bdi>${printable(names.join(", "))}</bdi>`;
}

function chartFigure({ title, text, height, option }: ReportChart): Html {
  return html`<figure role="img" aria-label="${title}: ${printable(text)}">
    <h3 aria-hidden="true">${title}</h3>
    ${WIDTHS.map(([name, width]) => html`<div class="${name}" aria-hidden="true">${raw(drawChart(option(width), { width, height }))}</div>`)}
  </figure>`;
}

function tableSection({ title, note, head, rows }: ReportTable): Html {
  return html`<section>
    <h2>${title}</h2>
    <p class="note">${printable(note)}</p>
    <div class="scroll" tabindex="0" role="region" aria-label="${title}">
      <table>
        <thead>
          <tr>
            ${head.map(({ text, numeric }) => html`<th scope="col" class="${numeric === true ? "number" : ""}">${text}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            (row) =>
              html`<tr>
                ${row.map((cell, at) => html`<td class="${head[at]?.numeric === true ? "number" : widthOf(cell)}">${cellContent(cell)}</td>`)}
              </tr> `,
          )}
        </tbody>
      </table>
    </div>
  </section>`;
}

/** Long texts keep some width where a table is wider than the screen, and names are not broken at their hyphens. */
function widthOf(cell: Cell): "long" | "short" {
  return (typeof cell === "string" ? cell : cell.text).length > 20 ? "long" : "short";
}

function cellContent(cell: Cell): Html {
  if (typeof cell === "string") return html`<bdi>${printable(cell)}</bdi>`;
  return html`<bdi>${printable(cell.text)}</bdi>
    <details>
      <summary>reason</summary>
      <p><bdi>${printable(cell.detail)}</bdi></p>
    </details>`;
}

function rolloutsSection(lines: readonly RolloutLine[], head: readonly string[]): Html {
  const shown = lines.slice(0, MAX_ROLLOUTS);
  const statuses = [...new Set(shown.map(({ status }) => status))].sort();
  const left = lines.length - shown.length;
  const first = shown[0]?.cells ?? [];
  const some = left > 0 ? `, of which the first ${amount(shown.length)} are here: those that ended badly come first` : "";
  return html`<section>
    <h2 id="rollouts-title" tabindex="-1">Rollouts</h2>
    <p class="note">${`${amount(lines.length)} with a result${some}.`}</p>
    <form id="filter" class="filter" hidden>
      <label>Filter <input name="text" type="search" autocomplete="off" size="18" /></label>
      <label
        >Status
        <select name="status">
          <option value="">all</option>
          ${statuses.map((status) => html`<option>${status}</option>`)}
        </select></label
      >
      <span id="shown" class="soft" role="status"></span>
    </form>
    <div class="scroll" tabindex="0" role="region" aria-label="Rollouts">
      <table id="rollouts">
        <thead>
          <tr>
            ${head.map((text, at) => html`<th scope="col" class="${first[at]?.numeric === true ? "number" : ""}">${text}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${shown.map(
            ({ status, cells }) =>
              html`<tr data-status="${status}">
                ${cells.map(rolloutCell)}
              </tr> `,
          )}
        </tbody>
      </table>
    </div>
  </section>`;
}

function rolloutCell({ text, sort, numeric, detail }: RolloutLine["cells"][number]): Html {
  const content = detail === undefined ? html`<bdi>${printable(text)}</bdi>` : cellContent({ text, detail });
  return html`<td class="${numeric ? "number" : widthOf(text)}" data-sort="${printable(String(sort))}">${content}</td>`;
}
