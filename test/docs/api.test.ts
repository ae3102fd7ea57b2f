// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { startApiRig } from "../api/rig.ts";
import { completes } from "../queue/rig.ts";
import { tempDir } from "../support/temp-dir.ts";

function page(path: string): string {
  return readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
}

/** All blocks of shell, in order. */
function shellOf(text: string): string {
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block]) => block!).join("\n");
}

/** Runs them as pasted by somebody whose server is at `origin`. */
async function paste(script: string, origin: string, key: string): Promise<{ code: number | null; output: string }> {
  const home = tempDir();
  mkdirSync(join(home, ".local/state/rollcall"), { recursive: true });
  writeFileSync(join(home, ".local/state/rollcall/api-key"), key);
  const text = script.replaceAll("http://127.0.0.1:8080", origin);
  const child = spawn("bash", ["-euo", "pipefail", "-c", text], {
    cwd: home,
    env: { PATH: process.env["PATH"], HOME: home, API: origin, KEY: key },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (part: string) => (output += `${part}\n`));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}

it("the examples of docs/api.md work as they are, and there is one for each route", async () => {
  const rig = await startApiRig();
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  await rig.store.put("act-1", 0, "outputs/report.txt", Readable.from([Buffer.from("a report")]), {
    kind: "output",
    source: null,
    quarantined: false,
  });
  const script = shellOf(page("docs/api.md"));
  const { code, output } = await paste(script, rig.api.origin, rig.key);
  expect([code, output]).toEqual([0, expect.stringContaining("event: ended")]);
  expect(output).toContain('"outcome":"acked"');
  expect(output).toContain("a report");
  expect(output).not.toContain("sk-secret");

  const { body } = await rig.call("/openapi.json");
  for (const route of Object.keys(body.paths as object)) {
    if (!route.startsWith("/v1/")) continue;
    const pattern = route
      .replaceAll("/", "\\/")
      .replaceAll(/\{path\}/g, '[^ ?"]+')
      .replaceAll(/\{\w+\}/g, '[^/?"]+');
    expect(script).toMatch(new RegExp(`${pattern}[?"]`));
  }
});

it("the README's examples of the API work as pasted", async () => {
  const section = /## Over HTTP\n([\s\S]*?)\n## /.exec(page("README.md"))?.[1] ?? "";
  const rig = await startApiRig();
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  const { code, output } = await paste(shellOf(section), rig.api.origin, rig.key);
  expect(code).toBe(0);
  for (const word of ['"outcome":"added"', "event: ended", '"status":"completed"', '"total":1']) expect(output).toContain(word);
});
