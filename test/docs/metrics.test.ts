// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Registry } from "prom-client";
import { expect, it } from "vitest";
import { promtool } from "../telemetry/promtool.ts";
import { serverRegistry, workerRegistry } from "../telemetry/registries.ts";
import { tempDir } from "../support/temp-dir.ts";

const path = new URL("../../docs/metrics.md", import.meta.url);
const page = readFileSync(path, "utf8");

async function tableOf(registry: Registry, ours: boolean): Promise<string> {
  const metrics = registry.getMetricsAsArray() as unknown as { name: string; type: string; labelNames: string[]; help: string }[];
  const rows = metrics
    .filter(({ name }) => (name.startsWith("rollcall_") && name !== "rollcall_build_info") === ours)
    .map(
      ({ name, type, labelNames, help }) => `| \`${name}\` | ${type} | ${labelNames.map((label) => `\`${label}\``).join(", ")} | ${help} |`,
    );
  return `| metric | type | labels | what |\n|---|---|---|---|\n${rows.join("\n")}\n`;
}

it("the page about metrics has each of them (npx vitest run test/docs/metrics -u writes its tables)", async () => {
  const [worker, server] = [workerRegistry().registry, serverRegistry().registry];
  const tables = { worker: await tableOf(worker, true), server: await tableOf(server, true), process: await tableOf(server, false) };
  let expected = page;
  for (const [name, table] of Object.entries(tables))
    expected = expected.replace(new RegExp(`(<!-- ${name} -->\n\n)[^#<]*?(?=\n#)`), (_, marker: string) => `${marker}${table}`);
  await expect(expected).toMatchFileSnapshot("../../docs/metrics.md");
  for (const table of Object.values(tables)) expect(expected).toContain(table);
});

it("its scrape configuration is one that Prometheus reads", () => {
  const config = /```yaml\n([\s\S]*?)```/.exec(page)![1]!;
  const file = join(tempDir(), "prometheus.yml");
  writeFileSync(file, config);
  expect(promtool(["check", "config", "--syntax-only", file])).toBe("");
});
