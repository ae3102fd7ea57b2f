// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contentDigest, differingFields } from "../../src/activation/content.ts";
import { openActivation, sealActivation, sealedWith, withoutSecrets, type SealedActivation } from "../../src/activation/seal.ts";
import { shortSecretWarnings } from "../../src/activation/short-secrets.ts";
import { parseSecretKeys } from "../../src/activation/secret-keys.ts";
import { activationSchema, type SessionActivation } from "../../src/contract/activation.ts";

const newKey = (): string => randomBytes(32).toString("base64");
const keys = parseSecretKeys(newKey());

const TOKEN = 'FAKE-a"b\\c d%20é';
/** One secret in each place that may hold one. */
function everywhere(token = TOKEN): SessionActivation {
  return activationSchema.parse({
    activation_id: "act-1",
    run_id: "run-1",
    episode_id: { rollout_id: "r1" },
    task_id: { taskset: "t", task_id: "1" },
    input: "do it",
    tool_grants: [
      {
        type: "mcp",
        name: "http",
        required: true,
        connection: {
          transport: "streamable_http",
          url: `http://127.0.0.1/mcp?k=${encodeURIComponent(token)}`,
          headers: { Authorization: `Bearer ${token}` },
        },
      },
      { type: "mcp", name: "stdio", required: false, connection: { transport: "stdio", command: "serve", env: { ANY: token } } },
      {
        type: "direct_http",
        name: "direct",
        required: false,
        base_url: `http://user:${encodeURIComponent(token)}@127.0.0.1/`,
        headers: { "X-Tok": token },
        cookies: { session: token },
      },
    ],
    sandbox: {
      env: {
        API_TOKEN: token,
        MARKED: { value: token, secret: true },
        CI_TOKEN: "true",
        LANG: "C.UTF-8",
        OPEN_KEY: { value: "open", secret: false },
      },
      files: [{ path: "a", url: `https://files.invalid/a?signature=${encodeURIComponent(token)}` }],
    },
    model: { api_key: token, base_url: `http://127.0.0.1/v1?key=${encodeURIComponent(token)}` },
  });
}

function connectionOf(grant: unknown): Record<string, unknown> {
  return (grant as { connection: Record<string, unknown> }).connection;
}

describe("keys", () => {
  it("are 32 bytes in base64 each, the first seals, all open", () => {
    const [oldKey, newerKey] = [newKey(), newKey()];
    const sealed = sealActivation(everywhere(), parseSecretKeys(oldKey));
    expect(openActivation(sealed, parseSecretKeys(`${newerKey}, ${oldKey}`))).toEqual(everywhere());
    expect(sealedWith(sealActivation(everywhere(), parseSecretKeys(`${newerKey},${oldKey}`)))).toEqual([parseSecretKeys(newerKey)[0].id]);
  });

  it.each(["", "short", `${newKey()},`, randomBytes(31).toString("base64"), `${newKey()}x`, `*${newKey()}`])(
    "that are not usable are refused without being shown (%#)",
    (list) => {
      const refused = expect.objectContaining({ code: "secret_key_invalid" });
      expect(() => parseSecretKeys(list)).toThrow(refused);
      try {
        parseSecretKeys(list);
      } catch (error) {
        if (list.length > 10) expect((error as Error).message).not.toContain(list.slice(0, 10));
      }
    },
  );
});

describe("sealing", () => {
  it("leaves no secret in clear in any place, and opens to the same activation [C8]", () => {
    const sealed = sealActivation(everywhere(), keys);
    const text = JSON.stringify(sealed);
    for (const form of [TOKEN, JSON.stringify(TOKEN).slice(1, -1), encodeURIComponent(TOKEN), "FAKE-a"]) expect(text).not.toContain(form);
    expect(JSON.stringify(everywhere())).toContain("FAKE-a"); // the search finds what is there
    expect(openActivation(JSON.parse(text) as SealedActivation, keys)).toEqual(everywhere());
  });

  it("leaves what is no secret readable", () => {
    const sealed = sealActivation(everywhere(), keys) as unknown as SessionActivation;
    expect(sealed.sandbox.env).toMatchObject({ CI_TOKEN: "true", LANG: "C.UTF-8", OPEN_KEY: { value: "open", secret: false } });
    expect(
      sealActivation(
        {
          ...everywhere(),
          tool_grants: [],
          sandbox: { ...everywhere().sandbox, env: {}, files: [] },
          model: { base_url: "http://127.0.0.1/{capture_key}/v1" },
        },
        keys,
      )["model"],
    ).toEqual({
      base_url: "http://127.0.0.1/{capture_key}/v1",
    });
  });

  it("brings back any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 3_000 }), (secret) => {
        const activation = { ...everywhere(), model: { api_key: secret } };
        expect(openActivation(sealActivation(activation, keys), keys)).toEqual(activation);
      }),
      { numRuns: 50 },
    );
  });

  it("is bound to the activation and the field", () => {
    const sealed = sealActivation(everywhere(), keys);
    expect(() => openActivation({ ...sealed, activation_id: "act-2" }, keys)).toThrow(expect.objectContaining({ code: "seal_broken" }));
    const model = sealed["model"] as Record<string, unknown>;
    expect(() => openActivation({ ...sealed, model: { ...model, api_key: model["base_url"] } }, keys)).toThrow(
      expect.objectContaining({ code: "seal_broken" }),
    );
  });

  it.each<[string, (activation: SessionActivation) => void]>([
    [
      "a grant's URL",
      ({ tool_grants: [one] }) => void Object.assign(one!, { connection: { ...connectionOf(one), url: "http://evil/mcp" } }),
    ],
    ["its transport", ({ tool_grants: [one] }) => void Object.assign(connectionOf(one), { transport: "sse" })],
    ["a header's name", ({ tool_grants: [one] }) => void Object.assign(connectionOf(one)["headers"] as object, { "X-Debug": "1" })],
    ["a command", ({ tool_grants: [, two] }) => void Object.assign(connectionOf(two), { command: "/bin/evil" })],
    ["an argument", ({ tool_grants: [, two] }) => void Object.assign(connectionOf(two), { args: ["-c", "evil"] })],
    ["the base URL of direct tools", ({ tool_grants: [, , three] }) => void Object.assign(three!, { base_url: "http://evil/" })],
    ["the model's URL", ({ model }) => void Object.assign(model, { base_url: "http://evil/v1" })],
    ["the model's URL, taken away", ({ model }) => void delete model.base_url],
  ])("is bound to where it is sent: with %s changed in Redis nothing is opened [fault C2]", (_, change) => {
    const plain = everywhere();
    (plain.tool_grants[0] as { connection: { url: string } }).connection.url = "http://127.0.0.1/mcp";
    for (const activation of [everywhere(), plain]) {
      const sealed = sealActivation(activation, keys);
      change(sealed as unknown as SessionActivation);
      expect(() => openActivation(sealed, keys)).toThrow(expect.objectContaining({ code: "seal_broken" }));
    }
  });

  it("names the key that is missing", () => {
    const sealed = sealActivation(everywhere(), keys);
    expect(() => openActivation(sealed, parseSecretKeys(newKey()))).toThrow(
      expect.objectContaining({ code: "secret_key_missing", message: expect.stringContaining(keys[0].id) }),
    );
  });
});

it("secrets that are too short to be redacted are warned of, without their values [fault C4]", () => {
  const warnings = shortSecretWarnings(everywhere("q7"));
  expect(warnings).toContainEqual(expect.stringMatching(/^tool_grants\[2\]\.headers\.X-Tok has 2 characters: .* not redacted/));
  expect(warnings.join()).not.toContain("q7");
  expect(shortSecretWarnings(everywhere())).toEqual([]);
});

describe("content", () => {
  const sealed = (token?: string): SealedActivation => sealActivation(everywhere(token), keys);

  it("is the same whatever the order of fields, the trace and the values of secrets [fault B8]", () => {
    const reversed = Object.fromEntries(Object.entries(everywhere()).reverse());
    expect(contentDigest(reversed)).toBe(contentDigest(everywhere()));
    expect(contentDigest({ ...everywhere(), traceparent: "00-1-2-01" })).toBe(contentDigest(everywhere()));
    expect(contentDigest(everywhere("other"))).toBe(contentDigest(everywhere()));
    expect(differingFields(sealed(), { ...everywhere("other"), input: "else", extra: 1 })).toEqual(["input", "extra"]);
  });

  it("differs by where a URL with a secret leads, and by whether there is a secret [fault B8]", () => {
    const moved = { ...everywhere(), model: { ...everywhere().model, base_url: `http://127.0.0.2/v1?k=${encodeURIComponent(TOKEN)}` } };
    expect(contentDigest(moved)).not.toBe(contentDigest(everywhere()));
    expect(differingFields(sealed(), moved)).toContain("model.base_url");
    const { api_key: _, ...model } = everywhere().model;
    expect(contentDigest({ ...everywhere(), model })).not.toBe(contentDigest(everywhere()));
    expect(differingFields(sealed(), { ...everywhere(), model })).toEqual(["model.api_key"]);
  });

  it("can still be compared after the secrets were deleted", () => {
    const stripped = withoutSecrets(sealed());
    expect(JSON.stringify(stripped)).not.toMatch(/ciphertext|nonce|"tag"/);
    expect(differingFields(stripped, { ...everywhere(), input: "else" })).toEqual(["input"]);
    expect(() => openActivation(stripped, keys)).toThrow(expect.objectContaining({ code: "seal_broken" }));
  });
});
