// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { ActivationResult } from "../../src/contract/result.ts";
import { startWebhookSenders } from "../../src/webhooks/senders.ts";
import type { SendSettings } from "../../src/webhooks/send.ts";
import { asked, startApiRig, type ApiRig } from "../api/rig.ts";
import { completes, TEST_KEYS } from "../queue/rig.ts";
import { filesHolding } from "../support/byte-search.ts";
import { startReceiver, status, type Receiver } from "./receiver.ts";

const WAIT = { timeout: 60_000, interval: 50 };
const SECRET = `whsec_${randomBytes(32).toString("base64")}`;

/** A rig that runs activations, and sends what webhooks are told, quickly. */
async function startPushRig(settings: Partial<SendSettings> = {}): Promise<ApiRig & { lines: string[] }> {
  const rig = await startApiRig();
  await rig.sentinel();
  await rig.worker(completes(rig.store));
  const lines: string[] = [];
  const senders = startWebhookSenders({
    queues: rig.open(),
    keys: TEST_KEYS,
    store: rig.store,
    version: "0.0.0",
    lookMs: 100,
    log: pino({ level: "info" }, { write: (line: string) => void lines.push(line) }),
    settings: { timeout_ms: 2_000, max_attempts: 3, base_ms: 20, max_ms: 50, allow_hosts: ["127.0.0.1"], concurrency: 2, ...settings },
  });
  onTestFinished(() => senders.close({ graceMs: 3_000 }));
  return Object.assign(rig, { lines });
}

async function put(rig: ApiRig, name: string, body: Record<string, unknown>): Promise<void> {
  expect(await rig.call(`/v1/webhooks/${name}`, { method: "PUT", body: { secret: SECRET, ...body } })).toMatchObject({ status: 200 });
}

async function run(rig: ApiRig, ...ids: string[]): Promise<void> {
  await rig.call("/v1/activations", { body: ids.map((id) => asked(id)) });
  await Promise.all(ids.map((id) => rig.ended(id)));
}

async function dead(
  rig: ApiRig,
  name: string,
  count: number,
): Promise<{ delivery_id: string; activation_id: string; attempts: number; reason: string }[]> {
  return vi.waitFor(async () => {
    const { body } = await rig.call(`/v1/webhooks/${name}/dead`);
    expect(body.dead).toHaveLength(count);
    return body.dead;
  }, WAIT);
}

function dataOf({ received }: Receiver, index = 0): ActivationResult {
  return (JSON.parse(received[index]!.body) as { data: ActivationResult }).data;
}

describe("webhooks", () => {
  it("push each end once to whoever wants it, signed as Standard Webhooks' own library verifies; neither secret nor URL is in Redis, in an answer or in the log", async () => {
    const rig = await startPushRig();
    const all = await startReceiver(status(204));
    const some = await startReceiver(status(200, {}, "thanks"));
    await put(rig, "all", { url: `${all.origin}/in/url-token-5501?k=v` });
    await put(rig, "failures", { url: `${some.origin}/`, events: ["activation.failed"] });
    await put(rig, "of-run-2", { url: `${some.origin}/`, run_id: "run-2" });
    await run(rig, "a", "b");
    await vi.waitFor(() => expect(all.received).toHaveLength(2), WAIT);

    const first = all.received[0]!;
    expect(first.path).toBe("/in/url-token-5501?k=v");
    const verified = new StandardWebhook(SECRET).verify(first.body, first.headers as Record<string, string>);
    expect(verified).toMatchObject({
      type: "activation.completed",
      timestamp: dataOf(all).ended_at,
      data: { status: "completed", run_id: "run-1" },
    });
    expect(() => new StandardWebhook(SECRET).verify(`${first.body} `, first.headers as Record<string, string>)).toThrow();
    expect(new Set(all.received.map(({ headers }) => headers["webhook-id"])).size).toBe(2);
    expect(some.received).toHaveLength(0);

    const listed = await vi.waitFor(async () => {
      const { body } = await rig.call("/v1/webhooks");
      expect(body.webhooks[0]).toMatchObject({
        name: "all",
        origin: all.origin,
        disabled: null,
        counts: { waiting: 0, sending: 0, sent: 2, dead: 0 },
      });
      return JSON.stringify(body);
    }, WAIT);
    for (const hidden of [SECRET, SECRET.slice("whsec_".length), "url-token-5501"]) {
      expect(filesHolding(rig.redis.dir, hidden)).toEqual([]);
      expect(listed + rig.lines.join("")).not.toContain(hidden);
    }
    expect(filesHolding(rig.redis.dir, all.origin)).not.toEqual([]); // the search finds what is there
  });

  it("are tried again after a failure under the same id, no sooner than Retry-After says, and not after a success", async () => {
    const rig = await startPushRig();
    const times: number[] = [];
    const receiver = await startReceiver((response, _request, before) => {
      times.push(performance.now());
      if (before === 0) status(500)(response);
      else status(before === 1 ? 503 : 200, before === 1 ? { "retry-after": "1" } : {})(response);
    });
    await put(rig, "flaky", { url: receiver.origin });
    await run(rig, "a");
    await vi.waitFor(
      async () => expect((await rig.call("/v1/webhooks")).body.webhooks[0].counts).toMatchObject({ sent: 1, waiting: 0 }),
      WAIT,
    );
    expect(receiver.received).toHaveLength(3);
    expect(new Set(receiver.received.map(({ headers, body }) => JSON.stringify([headers["webhook-id"], body]))).size).toBe(1);
    expect(times[2]! - times[1]!).toBeGreaterThan(990);
  });

  it("are dead letters after the last try; replayed they are sent as they were, by name or all", async () => {
    const rig = await startPushRig({ max_attempts: 2 });
    let well = false;
    const receiver = await startReceiver((response) => status(well ? 200 : 500, {}, `no: ${SECRET}\u001b[31m`)(response));
    await put(rig, "ill", { url: receiver.origin });
    await run(rig, "a", "b");
    const letters = await dead(rig, "ill", 2);
    expect(letters.map(({ activation_id }) => activation_id).toSorted()).toEqual(["a", "b"]);
    expect(letters[0]).toMatchObject({ attempts: 2, reason: "HTTP 500: no: [redacted]\\u001b[31m" });
    expect(receiver.received).toHaveLength(4);

    well = true;
    const named = letters[0]!.delivery_id;
    const replay = (body: object) => rig.call("/v1/webhooks/ill/replay", { body });
    expect((await replay({ delivery_ids: [named, `msg_${"0".repeat(32)}`] })).body).toEqual({ replayed: 1 });
    await vi.waitFor(() => expect(receiver.received).toHaveLength(5), WAIT);
    expect(receiver.received[4]!.headers["webhook-id"]).toBe(named);
    expect((await replay({})).body).toEqual({ replayed: 1 });
    await dead(rig, "ill", 0);
    await vi.waitFor(() => expect(receiver.received).toHaveLength(6), WAIT);
    expect((await replay({})).body).toEqual({ replayed: 0 });
  });

  it("are disabled by a 410, and told nothing until they are put again", async () => {
    const rig = await startPushRig();
    const receiver = await startReceiver((response, _request, before) => status(before === 0 ? 410 : 200)(response));
    await put(rig, "gone", { url: receiver.origin });
    await run(rig, "a");
    expect((await dead(rig, "gone", 1))[0]).toMatchObject({ attempts: 1, reason: "HTTP 410" });
    expect((await rig.call("/v1/webhooks")).body.webhooks[0].disabled).toMatchObject({ reason: expect.stringContaining("410") });
    await run(rig, "b");
    expect((await rig.call("/v1/webhooks")).body.webhooks[0].counts).toMatchObject({ waiting: 0, dead: 1 });
    await put(rig, "gone", { url: receiver.origin });
    await run(rig, "c");
    await vi.waitFor(() => expect(receiver.received).toHaveLength(2), WAIT);
    expect(dataOf(receiver, 1).activation_id).toBe("c");

    // Removed, nothing is left of it; put again, it begins anew.
    await rig.call("/v1/webhooks/gone", { method: "DELETE" });
    await run(rig, "d");
    expect(await rig.queues.redis.keys("{rollcall}:webhook*")).toEqual([]);
    await put(rig, "gone", { url: receiver.origin });
    await run(rig, "e");
    await vi.waitFor(() => expect(receiver.received).toHaveLength(3), WAIT);
    expect(dataOf(receiver, 2).activation_id).toBe("e");
  });

  it("follow no redirect, bound what they wait for and read, and hold up nobody else's", async () => {
    const rig = await startPushRig({ max_attempts: 1, timeout_ms: 1_000 });
    const elsewhere = await startReceiver(status(200));
    const redirecting = await startReceiver(status(307, { location: elsewhere.origin }));
    const silent = await startReceiver(() => undefined);
    const endless = await startReceiver((response) => {
      response.writeHead(500);
      const more = (): void => void (response.destroyed || response.write("x".repeat(65_536), more));
      more();
    });
    const quick = await startReceiver(status(200));
    for (const [name, { origin }] of Object.entries({ redirecting, silent, endless, quick })) await put(rig, name, { url: origin });
    await run(rig, "a", "b", "c", "d");
    await vi.waitFor(() => expect(quick.received).toHaveLength(4), WAIT);
    expect((await dead(rig, "redirecting", 4))[0]!.reason).toBe("HTTP 307");
    expect((await dead(rig, "silent", 4))[0]!.reason).toBe("no whole answer within 1 s");
    expect((await dead(rig, "endless", 4))[0]!.reason).toMatch(/^HTTP 500: x{200}$/);
    expect(elsewhere.received).toHaveLength(0);
  });

  it("reach no private address, neither as itself nor behind a name, unless the host is allowed; nor anything without TLS", async () => {
    const rig = await startPushRig({ allow_hosts: [] });
    const receiver = await startReceiver(status(200));
    await put(rig, "literal", { url: receiver.origin }); // the API of this rig would let it pass
    await put(rig, "name", { url: receiver.origin.replace("http://127.0.0.1", "https://localhost") });
    await run(rig, "a");
    expect((await dead(rig, "literal", 1))[0]).toMatchObject({ attempts: 1, reason: expect.stringContaining("is not https") });
    expect((await dead(rig, "name", 1))[0]!.reason).toMatch(
      /^localhost is at (127\.0\.0\.1|::1), no public address; .*webhooks\.allow_hosts/,
    );
    expect(receiver.received).toHaveLength(0);
  });

  it("send a large result by reference", async () => {
    const rig = await startPushRig();
    const receiver = await startReceiver(status(200));
    await put(rig, "large", { url: receiver.origin });
    await rig.call("/v1/activations", {
      body: asked("a", { metadata: Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`k${i}`, "v".repeat(500)])) }),
    });
    await vi.waitFor(() => expect(receiver.received).toHaveLength(1), WAIT);
    expect(dataOf(receiver)).toMatchObject({
      activation_id: "a",
      status: "completed",
      body: { store_id: rig.store.id, sha256: expect.any(String) },
    });
  });
});

describe("the API of webhooks", () => {
  it("makes a secret where none is given and shows it this once; later changes keep it", async () => {
    const rig = await startApiRig();
    const { body: made } = await rig.call("/v1/webhooks/w", { method: "PUT", body: { url: "https://hooks.example/x" } });
    expect(made).toMatchObject({
      name: "w",
      origin: "https://hooks.example",
      events: expect.arrayContaining(["activation.failed"]),
      changed_by: "default",
    });
    expect(made.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const { body: changed } = await rig.call("/v1/webhooks/w", { method: "PUT", body: { url: "https://hooks.example/y", run_id: "r" } });
    expect(changed).toMatchObject({ run_id: "r" });
    expect(changed).not.toHaveProperty("secret");
    expect((await rig.call("/v1/webhooks/w", { method: "DELETE" })).body).toEqual({ name: "w", removed: true });
    expect((await rig.call("/v1/webhooks/w", { method: "DELETE" })).body).toEqual({ name: "w", removed: false });
    expect((await rig.call("/v1/webhooks/w/dead")).body).toMatchObject({ code: "webhook_unknown" });
  });

  it("refuses what can be told to be private, unencrypted or no URL, without repeating it", async () => {
    const rig = await startApiRig({ ports: { webhook_hosts: [] } });
    const refusals = {
      "http://hooks.example/": "https_needed",
      "https://10.1.2.3/": "address_refused",
      "https://[::ffff:169.254.169.254]/latest": "address_refused",
      "https://0x7f.1/": "address_refused",
      "https://user:pass@hooks.example/": "webhook_url",
      "ftp://hooks.example/": "request_invalid",
    };
    for (const [url, code] of Object.entries(refusals)) {
      const { status: answered, body } = await rig.call("/v1/webhooks/w", { method: "PUT", body: { url } });
      expect([url, answered, body.code]).toEqual([url, 422, code]);
      expect(JSON.stringify(body)).not.toContain("pass");
    }
  });
});
