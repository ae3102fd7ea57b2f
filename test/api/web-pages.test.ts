// SPDX-License-Identifier: Apache-2.0
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { startApiRig } from "./rig.ts";

const WEB = fileURLToPath(new URL("../../dist/web/", import.meta.url));

it("pages and their files are for those who have signed in; a page is never kept, its files for ever; nothing else of the disk is served [C7]", async () => {
  const rig = await startApiRig({ ports: { web: WEB } });
  const html = { accept: "text/html" };
  for (const path of ["/", "/runs/run-1", "/activations/act-1?x=1"]) {
    expect((await rig.call(path, { key: null })).status).toBe(401);
    const away = await fetch(rig.api.origin + path, { headers: html, redirect: "manual" });
    expect([away.status, away.headers.get("location")]).toEqual([302, `/sign-in?next=${encodeURIComponent(path)}`]);
    const page = await rig.call(path, { headers: html });
    expect(page).toMatchObject({ status: 200, body: expect.stringContaining("<title>Rollcall</title>") as string });
    expect(page.headers.get("cache-control")).toBe("no-store");
    expect(page.headers.get("content-security-policy")).toMatch(/^default-src 'self';/);
  }
  const { body } = await rig.call("/", { headers: html });
  const files = [...(body as string).matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, file]) => file!);
  expect(files).toHaveLength(2);
  for (const file of files) {
    expect((await rig.call(file, { key: null })).status).toBe(401);
    const found = await rig.call(file);
    expect([found.status, found.headers.get("cache-control")]).toEqual([200, "private, max-age=31536000, immutable"]);
  }
  for (const path of ["/assets/none.js", "/assets/..%2findex.html", "/assets/%2e%2e/%2e%2e/package.json", "/runs", "/other"])
    expect([path, (await rig.call(path)).status]).toEqual([path, 404]);
});

it("without a build the API serves, and has no pages", async () => {
  const rig = await startApiRig({ ports: { web: null } });
  expect((await rig.call("/", { headers: { accept: "text/html" } })).status).toBe(404);
  expect((await rig.call("/v1/runs")).status).toBe(200);
});
