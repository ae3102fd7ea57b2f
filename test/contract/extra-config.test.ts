// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { extraConfigRefusals, FREE_FEATURES, PROTECTED_KEYS, protectedKeysIn } from "../../src/contract/rules/extra-config.ts";
import { codexConfig } from "../../src/codex/config.ts";
import { configInput, httpGrant } from "../codex/config-input.ts";
import { planServers } from "../../src/activation/plan.ts";
import { renderConfig } from "../../src/codex/render-config.ts";
import { PROFILED_VERSIONS, profileFor } from "../../src/codex/profile.ts";

const told = (extra: Record<string, unknown>): string[] => extraConfigRefusals(extra).map(({ code, path }) => `${code} ${path}`);

describe("further Codex settings", () => {
  it("may hold what Rollcall does not set, also beside its own keys of a table", () => {
    expect(
      told({ model_verbosity: "low", features: { unified_exec: false }, tools: { view_image: false }, a: { b: [1, { c: true }] } }),
    ).toEqual([]);
  });

  it.each(Object.keys(PROTECTED_KEYS))("are refused when they set %s", (key) => {
    const extra = key.split(".").reduceRight<unknown>((inner, segment) => ({ [segment]: inner }), "x") as Record<string, unknown>;
    expect(told(extra)).toEqual([`extra_config_protected codex.extra_config.${key}`]);
  });

  it("are refused when they leave no room for a table of Rollcall's, and say what to set instead", () => {
    expect(told({ features: false }).length).toBeGreaterThan(3);
    const [refused] = extraConfigRefusals({ mcp_servers: { office: { url: "http://x" } } });
    expect(refused).toMatchObject({ message: "Codex's mcp_servers is set by Rollcall", accepted: "leave it out, and set tool_grants" });
  });

  it("are refused where config.toml cannot carry them, and where they are too many", () => {
    expect(told({ a: { b: null }, c: ["x\u007f"], "d\0": 1 })).toEqual([
      "extra_config_invalid codex.extra_config.a.b",
      "control_character codex.extra_config.c[0]",
      "control_character codex.extra_config",
    ]);
    expect(told({ a: "x".repeat(64_000) })).toEqual(["extra_config_invalid codex.extra_config"]);
  });

  it.each([
    "memories",
    "memory_tool",
    "collab",
    "multi_agent_v2",
    "code_mode_only",
    "unbounded_connection_retries",
    "sleep_tool",
    "rollout_budget",
    "non_prefixed_mcp_tool_names",
    "apps",
    "codex_hooks",
    "a_feature_to_come",
  ])("are refused when they set the feature %s, also as a table, and say which may be set", (name) => {
    for (const value of [true, false, { enabled: true }]) {
      expect(told({ features: { [name]: value, unified_exec: true } })).toEqual([
        `extra_config_protected codex.extra_config.features.${name}`,
      ]);
    }
    const [refused] = extraConfigRefusals({ features: { a_feature_to_come: true } });
    expect(refused?.accepted).toContain("unified_exec");
  });

  it("are refused when they define agents, or name a catalogue, and say what to set instead", () => {
    expect(told({ agents: { reviewer: { config_file: "/workspace/a.toml" } }, model_catalog_json: "/workspace/b.json" })).toEqual([
      "extra_config_protected codex.extra_config.model_catalog_json",
      "extra_config_protected codex.extra_config.agents",
    ]);
    expect(extraConfigRefusals({ agents: { enabled: true } })[0]?.accepted).toBe("leave it out, and set codex.subagents");
  });

  it("that mean a table by a dot reach Codex as one key, which it does not know", () => {
    const text = renderConfig(codexConfig(configInput({ codex: { extra_config: { "features.memories": true } } })));
    expect(text).toContain('"features.memories" = true');
    expect(text).toContain("[features]\nmemories = false");
  });

  it.each(PROFILED_VERSIONS)("are protected in every key that Rollcall writes for Codex %s", (version) => {
    const profile = profileFor(version);
    const { servers } = planServers([httpGrant("office", "http://127.0.0.1:1/mcp")], { startupSeconds: 1, toolSeconds: 1 }, profile);
    const fields = {
      instructions: "x",
      model: { name: "m" },
      codex: { reasoning_effort: "low" as const, model_context_window: 100, model_auto_compact_token_limit: 90 },
    };
    const written = codexConfig(configInput(fields, { servers, profile }));
    const leaves = Object.entries(written).flatMap(([key, value]) =>
      Object.hasOwn(PROTECTED_KEYS, key)
        ? [{ [key]: value }]
        : Object.entries(value as object).map(([inner, one]) => ({ [key]: { [inner]: one as unknown } })),
    );
    expect(leaves.length).toBeGreaterThan(15);
    for (const leaf of leaves) expect([leaf, protectedKeysIn(leaf).length]).toEqual([leaf, 1]);
    for (const name of Object.keys(written["features"] as object)) expect(Object.keys(PROTECTED_KEYS)).toContain(`features.${name}`);
  });

  it("are told in the documentation with every protected key, and every feature that may be set", () => {
    const docs = readFileSync(new URL("../../docs/codex-options.md", import.meta.url), "utf8");
    const free = /Of `features`, these may be set: ([^]*?)\. Every/.exec(docs)?.[1] ?? "";
    expect([...free.matchAll(/`([^`]+)`/g)].map(([, key]) => key)).toEqual(FREE_FEATURES);
    const listed = /refused by name \(`extra_config_protected`\): ([^]*)\.\n/.exec(docs)?.[1] ?? "";
    expect([...listed.matchAll(/`([^`]+)`/g)].map(([, key]) => key)).toEqual(Object.keys(PROTECTED_KEYS).sort());
  });
});
