// SPDX-License-Identifier: Apache-2.0
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { tempDir } from "../support/temp-dir.ts";
import { promtool } from "./promtool.ts";
import { seriesNames, serverRegistry, workerRegistry } from "./registries.ts";

const RULES = fileURLToPath(new URL("../../deploy/prometheus/rules.yml", import.meta.url));
const page = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { h: number; w: number; x: number; y: number };
  datasource?: { uid: string };
  targets?: { expr: string; datasource: { uid: string } }[];
}
interface Dashboard {
  panels: Panel[];
  templating: { list: { name: string; type: string; definition?: string }[] };
}
const dashboard = JSON.parse(page("deploy/grafana/rollcall.json")) as Dashboard;
const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
const known = new Set([...(await seriesNames(serverRegistry().registry)), ...(await seriesNames(workerRegistry().registry))]);

/** Names of metrics in PromQL or in text: all of ours have a prefix. */
function namedIn(text: string): string[] {
  return [...new Set([...text.matchAll(/\b(?:rollcall|nodejs|process)_[a-z0-9_]+\b/g)].map(([name]) => name))];
}

describe("the alert rules", () => {
  it("pass Prometheus' own checker, and fire when they should and only then", () => {
    expect(promtool(["check", "rules", RULES])).toBe("");
    const cases = join(tempDir(), "cases.yml");
    writeFileSync(cases, page("test/telemetry/rules-cases.yml").replace("RULES", RULES));
    expect(promtool(["test", "rules", cases])).toBe("");
  });

  it("name only metrics that there are, and say each why and what to do", () => {
    const rules = page("deploy/prometheus/rules.yml");
    expect(namedIn(rules).filter((name) => !known.has(name) && name !== "rollcall_fleet_")).toEqual([]);
    const alerts = rules.split(/^ {6}- alert: /m).slice(1);
    expect(alerts.length).toBeGreaterThan(10);
    for (const alert of alerts) for (const word of ["severity:", "summary:", "reason:", "action:"]) expect(alert).toContain(word);
  });
});

describe("the Grafana dashboard", () => {
  it("asks only for metrics that there are, in PromQL that Prometheus reads", () => {
    expect(queries.length).toBeGreaterThan(30);
    const asked = [...queries, ...dashboard.templating.list.map(({ definition = "" }) => definition)].flatMap(namedIn);
    expect(asked.filter((name) => !known.has(name))).toEqual([]);
    // promtool reads queries as recording rules; what Grafana fills in is filled in.
    const rules = queries.map((expr, index) => {
      const filled = expr.replaceAll("$__rate_interval", "5m").replaceAll("$__range", "1h").replaceAll(/\$\w+/g, ".*");
      return `      - { record: "panel:query:${index}", expr: ${JSON.stringify(filled)} }\n`;
    });
    const file = join(tempDir(), "queries.yml");
    writeFileSync(file, `groups:\n  - name: panels\n    rules:\n${rules.join("")}`);
    expect(promtool(["check", "rules", file])).toBe("");
  });

  it("shows everything that Rollcall itself counts", () => {
    const ours = [...known].filter((name) => name.startsWith("rollcall_") && !/_(sum|count|bucket)$/.test(name));
    expect(ours.filter((name) => !queries.some((query) => query.includes(name)))).toEqual([]);
  });

  it("can be imported as it is: panels of their own ids and places, and one data source that is chosen there", () => {
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    for (const { targets = [], datasource } of panels) {
      for (const { uid } of [...targets.map((target) => target.datasource), ...(datasource === undefined ? [] : [datasource])])
        expect(uid).toBe("${datasource}");
    }
    expect(dashboard.templating.list.map(({ name }) => name)).toEqual(["datasource", "worker", "server"]);
    const taken = new Map<string, string>();
    for (const {
      title,
      gridPos: { x, y, w, h },
    } of panels) {
      expect(x + w).toBeLessThanOrEqual(24);
      for (let column = x; column < x + w; column++) {
        for (let line = y; line < y + h; line++) {
          expect(taken.get(`${column},${line}`), title).toBeUndefined();
          taken.set(`${column},${line}`, title);
        }
      }
    }
  });
});
