// SPDX-License-Identifier: Apache-2.0
import Table from "cli-table3";
import type { InjectedFault, RunFacts } from "./facts.ts";
import type { Verdict } from "./oracle.ts";
import { FAULTS, type Injection } from "./schedule.ts";

const MOST_SHOWN = 20;

export function scheduleTable(schedule: readonly Injection[]): string {
  const table = plainTable("after results", "fault", "seconds", "pick");
  for (const { after_results, fault, seconds, pick } of schedule) table.push([after_results, fault, seconds, pick.toFixed(3)]);
  return table.toString();
}

/** What was done, attempts with their reasons, and each promise with what breaks it. */
export function reportText(facts: RunFacts, { checks, repeats, ok }: Verdict): string {
  const lines = [injectedTable(facts.faults)];
  for (const { fault, detail } of facts.faults.filter(({ injected }) => !injected)) lines.push(`NOT INJECTED: ${fault}: ${detail}`);
  lines.push(`attempts after the first: ${repeats.length}, beside another one: ${repeats.filter(({ at_once }) => at_once).length}`);
  for (const { activation_id, attempt, at_once, reason } of repeats)
    lines.push(`  ${activation_id} attempt ${attempt}${at_once ? " (at once)" : ""}: ${reason ?? "NO REASON"}`);
  for (const { who, detail } of facts.unexpected_ends) lines.push(`ended by itself: ${who}, ${detail}`);
  if (facts.stalls.length > 0) lines.push(`the machine stood still ${facts.stalls.length} times for more than a second`);
  const table = plainTable("promise", "expected", "found", "breaches");
  for (const { name, expected, found, breaches } of checks) table.push([name, expected ?? "", found ?? "", breaches.length]);
  lines.push(table.toString());
  for (const { name, breaches } of checks) {
    for (const breach of breaches.slice(0, MOST_SHOWN)) lines.push(`BREACH: ${name}: ${breach}`);
    if (breaches.length > MOST_SHOWN) lines.push(`  and ${breaches.length - MOST_SHOWN} more`);
  }
  lines.push(ok ? "chaos: every promise was kept" : "chaos: PROMISES WERE BROKEN");
  return lines.join("\n");
}

function injectedTable(faults: readonly InjectedFault[]): string {
  const table = plainTable("fault", "injected", "planned", "on what");
  for (const kind of FAULTS) {
    const all = faults.filter(({ fault }) => fault === kind);
    if (all.length > 0)
      table.push([kind, all.filter(({ injected }) => injected).length, all.length, all.map(({ detail }) => detail).join("\n")]);
  }
  return table.toString();
}

function plainTable(...head: string[]): Table.Table {
  return new Table({ head, style: { head: [], border: [], compact: true } });
}
