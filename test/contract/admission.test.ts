// SPDX-License-Identifier: Apache-2.0
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { activationSchema } from "../../src/contract/activation.ts";
import { admit, type AdmissionPolicy, type Refusal } from "../../src/contract/refusals.ts";

const POLICY: AdmissionPolicy = { allow_providers: ["bubblewrap"], allow_key_env: ["OPENAI_API_KEY"] };

type Json = Record<string, unknown>;

function activation(fields: Json = {}): Json {
  return {
    activation_id: "act-1",
    run_id: "run-1",
    episode_id: { rollout_id: "r1" },
    task_id: { taskset: "office", task_id: "t1" },
    input: "Write a report",
    ...fields,
  };
}

function mcp(name: string, fields: Json = {}, connection: Json = {}): Json {
  return {
    type: "mcp",
    name,
    required: true,
    connection: {
      transport: "streamable_http",
      url: "http://127.0.0.1:9/mcp",
      headers: { Authorization: "Bearer FAKE-token" },
      ...connection,
    },
    ...fields,
  };
}

function stdio(fields: Json = {}): Json {
  return { type: "mcp", name: "local", required: true, connection: { transport: "stdio", command: "node", ...fields } };
}

function direct(required: boolean): Json {
  return { type: "direct_http", name: "gym.direct_http", required, base_url: "http://127.0.0.1:9" };
}

function refusals(fields: Json): Refusal[] {
  const admission = admit(activation(fields), POLICY);
  return admission.accepted ? [] : admission.refusals;
}

const told = (fields: Json): string[] => refusals(fields).map(({ code, path }) => `${code} ${path}`);

describe("an activation", () => {
  test("is accepted as it is, with its defaults filled in", () => {
    const admission = admit(activation({ tool_grants: [mcp("office")] }), POLICY);
    expect(admission).toMatchObject({
      accepted: true,
      activation: {
        max_attempts: 3,
        priority: "normal",
        reply_to: "results",
        codex: { timeout_seconds: 600, session_close_timeout_seconds: 60 },
      },
    });
  });

  test.each([null, undefined, 1, "text", [], [activation()], true])("must be an object: %j", (raw) => {
    expect(admit(raw, POLICY)).toMatchObject({ accepted: false, refusals: [{ code: "invalid_field", path: "" }] });
  });

  test("names each missing field", () => {
    const admission = admit({}, POLICY);
    expect(admission.accepted ? [] : admission.refusals.map(({ code, path }) => `${code} ${path}`)).toEqual(
      ["activation_id", "run_id", "episode_id", "task_id", "input"].map((field) => `missing_field ${field}`),
    );
  });

  test("names each unknown field, wherever it is", () => {
    expect(
      told({
        temperature: 1,
        codex: { model: "x" },
        tool_grants: [mcp("office", { headers: {} }, { header: {} })],
        input: [{ role: "user", content: "x", name: "n" }],
      }),
    ).toEqual([
      "unknown_field input[0].name",
      "unknown_field tool_grants[0].connection.header",
      "unknown_field tool_grants[0].headers",
      "unknown_field codex.model",
      "unknown_field temperature",
    ]);
  });

  test("with many faults is told all of them at once [R57]", () => {
    const found = refusals({
      activation_id: "1",
      episode_id: { rollout_id: "x-a1" },
      input: " ",
      instructions: "a\0b",
      tool_grants: [
        mcp("a.b"),
        mcp("ok", {}, { url: "ftp://x" }),
        mcp("ok2", {}, { headers: { "bad name": "x" } }),
        direct(true),
        mcp("ok2"),
      ],
      codex: {
        timeout_seconds: 10,
        mcp_tool_timeout_seconds: 11,
        model_context_window: 100,
        model_auto_compact_token_limit: 91,
      },
      sandbox: { provider: "host", files: [{ path: "../x" }], env: { PATH: "x" } },
      model: { base_url: "nowhere", api_key_env: "HOME" },
      max_attempts: 0,
      reply_to: "elsewhere",
      extra: 1,
    });
    expect(found.map(({ code, path }) => `${code} ${path}`).sort()).toEqual(
      [
        "invalid_field activation_id",
        "invalid_field episode_id.rollout_id",
        "input_empty input",
        "control_character instructions",
        "grant_name_unusable tool_grants[0].name",
        "invalid_field tool_grants[1].connection.url",
        "grant_header_invalid tool_grants[2].connection.headers",
        "grant_required_direct_http tool_grants[3]",
        "grant_name_duplicate tool_grants[4].name",
        "timeout_out_of_range codex.mcp_tool_timeout_seconds",
        "compact_limit_out_of_range codex.model_auto_compact_token_limit",
        "provider_not_allowed sandbox.provider",
        "file_source sandbox.files[0]",
        "invalid_field sandbox.files[0].path",
        "invalid_field sandbox.env.PATH",
        "invalid_field model.base_url",
        "key_env_not_allowed model.api_key_env",
        "invalid_field max_attempts",
        "invalid_field reply_to",
        "unknown_field extra",
      ].sort(),
    );
  });

  test("is refused in words: a stable code, a path, what is wrong and what would do [R57]", () => {
    for (const refusal of refusals({
      tool_grants: [direct(true), mcp("a.b")],
      codex: { timeout_seconds: -1 },
      extra: 1,
      max_attempts: "3",
    })) {
      expect(refusal).toEqual({
        code: expect.stringMatching(/^[a-z][a-z_]*$/),
        path: expect.any(String),
        message: expect.stringMatching(/./),
        accepted: expect.stringMatching(/./),
      });
      expect(refusal.accepted).not.toContain("undefined");
    }
  });

  test("whatever it is, the answer is an answer and never an exception", () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withNullPrototype: true, withObjectString: true }), (raw) => {
        expect(typeof admit(raw, POLICY).accepted).toBe("boolean");
      }),
    );
    const names = Object.keys(activationSchema.shape);
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), fc.jsonValue()), (fields) => {
        const admission = admit(activation(fields), POLICY);
        if (!admission.accepted) expect(admission.refusals.length).toBeGreaterThan(0);
        else expect(activationSchema.safeParse(admission.activation).success).toBe(true);
      }),
    );
  });
});

describe("grants", () => {
  test("a required direct_http grant is refused [R25]", () => {
    expect(told({ tool_grants: [direct(true)] })).toEqual(["grant_required_direct_http tool_grants[0]"]);
  });

  test("a check before the session is accepted for an mcp grant, and refused where nobody would make it", () => {
    const check = { preflight: true, expected_tools: ["finish"] };
    expect(told({ tool_grants: [mcp("x", check)] })).toEqual([]);
    expect(told({ tool_grants: [{ ...direct(false), ...check }] })).toEqual([
      "invalid_field tool_grants[0].expected_tools",
      "invalid_field tool_grants[0].preflight",
    ]);
  });

  test("an optional direct_http grant is accepted, to be left out later [R26]", () => {
    expect(told({ tool_grants: [direct(false)] })).toEqual([]);
  });

  test("a required grant named a.b is refused, an optional one is accepted [R27 R28]", () => {
    expect(told({ tool_grants: [mcp("a.b")] })).toEqual(["grant_name_unusable tool_grants[0].name"]);
    expect(told({ tool_grants: [mcp("a.b", { required: false })] })).toEqual([]);
  });

  test.each(["Sales DX", "ai.exa/exa", "名前", "", "__proto__", "a b", "a\n", "é", "-", "constructor", "a-b", "x".repeat(200), "a_b"])(
    "the name %j: required only where Codex can use it, optional always [B4]",
    (name) => {
      const usable = /^[A-Za-z0-9_-]+$/.test(name) && name !== "__proto__";
      expect(told({ tool_grants: [mcp(name)] })).toEqual(usable ? [] : ["grant_name_unusable tool_grants[0].name"]);
      expect(told({ tool_grants: [mcp(name, { required: false })] })).toEqual([]);
    },
  );

  test("names that Codex folds into one another are two names [B4]", () => {
    expect(told({ tool_grants: [mcp("a-b"), mcp("a_b")] })).toEqual([]);
  });

  test("two grants of one name are refused, of whatever kind [R50]", () => {
    expect(told({ tool_grants: [mcp("x"), mcp("y"), mcp("x", { required: false }), { ...direct(false), name: "y" }] })).toEqual([
      "grant_name_duplicate tool_grants[2].name",
      "grant_name_duplicate tool_grants[3].name",
    ]);
  });

  test("tool_accesses is another name for tool_grants; both together are refused", () => {
    const admission = admit(activation({ tool_accesses: [mcp("office")] }), POLICY);
    expect(admission).toMatchObject({ accepted: true, activation: { tool_grants: [{ name: "office" }] } });
    expect(told({ tool_accesses: [mcp("a.b")] })).toEqual(["grant_name_unusable tool_grants[0].name"]);
    expect(told({ tool_accesses: [], tool_grants: [] })).toEqual(["invalid_field tool_accesses"]);
  });

  test.each([
    "",
    "office",
    "/mcp",
    "//x/mcp",
    "ftp://x",
    "file:///etc/passwd",
    "javascript:1",
    "http://",
    "http://a b/",
    " http://x",
    "http://x\n",
    "http://x\0",
    "ws://x",
  ])("the URL %j is refused", (url) =>
    expect(told({ tool_grants: [mcp("office", {}, { url })] })).toEqual(["invalid_field tool_grants[0].connection.url"]),
  );

  test.each(["http://127.0.0.1:9", "https://例え.jp/x?y=z#f", "HTTP://X", "http://[::1]:9/mcp", "http://user:pw@x/"])(
    "the URL %j is accepted",
    (url) => expect(told({ tool_grants: [mcp("office", {}, { url })] })).toEqual([]),
  );

  test.each(["", "a b", "a:b", "a\r\nb", "é", "a\0", "(x)"])("the header name %j is refused [B6]", (name) =>
    expect(told({ tool_grants: [mcp("office", {}, { headers: { [name]: "x" } })] })).toEqual([
      "grant_header_invalid tool_grants[0].connection.headers",
    ]),
  );

  test.each(["a\nb", "a\rb", "a\0", "é", "\u007f", "😀", "\ud800"])("the header value %j is refused, without showing it [B8]", (value) => {
    const found = refusals({ tool_grants: [mcp("office", {}, { headers: { "X-Token": `FAKE${value}` } })] });
    expect(found.map(({ code, path }) => `${code} ${path}`)).toEqual(["grant_header_invalid tool_grants[0].connection.headers.X-Token"]);
    expect(JSON.stringify(found)).not.toContain("FAKE");
  });

  test.each(["", 'a "quoted" \\ \t b', "x".repeat(100_000), "F:\\new\\tmp", "'''"])("the header value %j is accepted", (value) =>
    expect(told({ tool_grants: [mcp("office", {}, { headers: { "X-Token": value } })] })).toEqual([]),
  );

  test.each<[fields: Json, path: string]>([
    [{ command: "no\0de" }, "command"],
    [{ args: ["ok", "a\u007f"] }, "args[1]"],
    [{ env: { TOKEN: "a\0" } }, "env.TOKEN"],
    [{ cwd: "/a\0" }, "cwd"],
    [{ args: ["\ud800"] }, "args[0]"],
  ])("text that a stdio grant cannot carry is refused: %j [B8]", (fields, path) => {
    expect(told({ tool_grants: [stdio(fields)] })).toEqual([`control_character tool_grants[0].connection.${path}`]);
  });

  test("a stdio grant needs a command and real variable names", () => {
    expect(told({ tool_grants: [stdio()] })).toEqual([]);
    expect(told({ tool_grants: [stdio({ command: "" })] })).toEqual(["invalid_field tool_grants[0].connection.command"]);
    expect(told({ tool_grants: [stdio({ env: { "A-B": "x" } })] })).toEqual(["invalid_field tool_grants[0].connection.env"]);
  });

  test.each<[what: string, fields: Json[], messages: string[]]>([
    ["a second of its name", [mcp("x"), mcp("x")], ['the grant "x" has the same name as tool_grants[0]. Accepted: a name of its own']],
    [
      "a check that nobody makes",
      [{ ...direct(false), preflight: true }],
      ['only "mcp" grants are checked. Accepted: leave the field out'],
    ],
    [
      "a variable's name",
      [stdio({ env: { [`A-${"B".repeat(100)}`]: "x" } })],
      [`"A-${"B".repeat(78)}" is not a variable name. Accepted: [A-Za-z_][A-Za-z0-9_]*`],
    ],
    [
      "a header's name",
      [mcp("x", {}, { headers: { [`A ${"B".repeat(100)}`]: "x" } })],
      [`"A ${"B".repeat(78)}" is not an HTTP header name. Accepted: an HTTP token (RFC 9110)`],
    ],
    [
      "a header's value",
      [mcp("x", {}, { headers: { ["B".repeat(100)]: "\0" } })],
      ["the value holds a character that HTTP forbids or Codex drops. Accepted: visible ASCII, blanks and tabs"],
    ],
    [
      "a long name of a grant",
      [mcp(`a.${"b".repeat(100)}`)],
      [
        `the grant "a.${"b".repeat(78)}" is required and has a name that Codex cannot use. Accepted: letters, digits, underscore and hyphen ([A-Za-z0-9_-]+), or required: false to have it left out`,
      ],
    ],
  ])("says what is wrong with %s and what would do, and never more than 80 characters of a name [R57]", (_what, grants, messages) => {
    const found = refusals({ tool_grants: grants });
    expect(found.map(({ message, accepted }) => `${message}. Accepted: ${accepted}`)).toEqual(messages);
    for (const { path } of found) expect(path.length).toBeLessThan(125);
  });

  test("a variable's name that Codex's configuration cannot carry is refused as a name", () => {
    expect(told({ tool_grants: [stdio({ env: { "A\0": "x" } })] })).toEqual([
      "invalid_field tool_grants[0].connection.env",
      "control_character tool_grants[0].connection.env (a name)",
    ]);
  });

  test("a fault in one grant hides nothing in the others", () => {
    expect(
      told({ tool_grants: [{ type: "mcp" }, mcp("a.b"), mcp("x", {}, { url: "no" }), mcp("x")] }).filter((line) => !line.includes("[0]")),
    ).toEqual(["invalid_field tool_grants[2].connection.url", "grant_name_unusable tool_grants[1].name"]);
  });
});

describe("time limits", () => {
  test.each<[value: unknown, accepted: boolean]>([
    [undefined, true],
    [0.001, true],
    [1, true],
    [599.9, true],
    [600, true],
    [600.1, false],
    [0, false],
    [-0, false],
    [-1, false],
    [Number.NaN, false],
    [Number.POSITIVE_INFINITY, false],
    [Number.NEGATIVE_INFINITY, false],
    ["60", false],
    [null, false],
    [[60], false],
    [1e308, false],
  ])("mcp_tool_timeout_seconds and mcp_startup_timeout_seconds: %s under a limit of 600 s [R29 R30]", (value, accepted) => {
    for (const field of ["mcp_tool_timeout_seconds", "mcp_startup_timeout_seconds"]) {
      const found = refusals({ codex: { [field]: value } });
      expect(found.map(({ path }) => path)).toEqual(accepted ? [] : [`codex.${field}`]);
    }
  });

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 604_801, "600"])("timeout_seconds %s is refused [R30]", (value) =>
    expect(told({ codex: { timeout_seconds: value } })).toEqual(["invalid_field codex.timeout_seconds"]),
  );

  test("the limit counts as given, and as its default", () => {
    expect(told({ codex: { timeout_seconds: 30, mcp_tool_timeout_seconds: 30 } })).toEqual([]);
    expect(told({ codex: { timeout_seconds: 30, mcp_tool_timeout_seconds: 31 } })).toEqual([
      "timeout_out_of_range codex.mcp_tool_timeout_seconds",
    ]);
    expect(told({ codex: { timeout_seconds: 900, mcp_tool_timeout_seconds: 601 } })).toEqual([]);
  });

  test.each([
    [1_000, 900, true],
    [1_000, 901, false],
    [999, 899, true],
    [999, 900, false],
  ])("with a window of %i tokens, compacting at %i is accepted: %s", (model_context_window, model_auto_compact_token_limit, accepted) =>
    expect(told({ codex: { model_context_window, model_auto_compact_token_limit } })).toEqual(
      accepted ? [] : ["compact_limit_out_of_range codex.model_auto_compact_token_limit"],
    ),
  );

  test("efforts that models have are taken, and the one that is none is refused, with what to take instead", () => {
    for (const reasoning_effort of ["none", "low", "max"]) expect(refusals({ codex: { reasoning_effort } })).toEqual([]);
    const [refused] = refusals({ codex: { reasoning_effort: "ultra" } });
    expect(refused).toMatchObject({ code: "invalid_field", path: "codex.reasoning_effort", accepted: expect.stringContaining('"max"') });
    expect(refused?.message).toBe('"ultra" is no effort of its own: it has the model delegate to agents unasked; "max" is the highest');
    expect(refusals({ codex: { reasoning_effort: "huge" } })[0]?.message).not.toContain("ultra");
  });
});

describe("the prompt", () => {
  test("of 1,048,576 characters is accepted; of one more it is refused, naming both lengths [A2]", () => {
    expect(told({ input: "x".repeat(1_048_576) })).toEqual([]);
    expect(refusals({ input: "x".repeat(1_048_577) })).toMatchObject([
      {
        code: "input_too_long",
        path: "input",
        message: expect.stringMatching(/1048577.*1048576/),
        accepted: expect.stringContaining("sandbox.files"),
      },
    ]);
    expect(
      told({
        input: [
          {
            role: "user",
            content: [
              { type: "input_text", text: "x".repeat(1_000_000) },
              { type: "input_text", text: "x".repeat(48_577) },
            ],
          },
        ],
      }),
    ).toEqual(["input_too_long input"]);
  });

  test("is counted in characters, not in UTF-16 units, as Codex counts [A2]", () => {
    expect(told({ input: "😀".repeat(1_048_576) })).toEqual([]);
    expect(told({ input: "😀".repeat(1_048_577) })).toEqual(["input_too_long input"]);
  });

  test.each(["", " ", "\n\t", "\u00a0"])("%j says nothing and is refused", (input) => {
    expect(told({ input })).toEqual(["input_empty input"]);
    expect(told({ input: [{ role: "user", content: input }] })).toEqual(["input_empty input"]);
  });

  test.each<[roles: string[], accepted: boolean]>([
    [["user"], true],
    [["system", "user"], true],
    [["developer", "user"], true],
    [[], false],
    [["user", "user"], false],
    [["user", "system"], false],
    [["system"], false],
    [["system", "developer", "user"], false],
  ])("roles %j are accepted: %s", (roles, accepted) => {
    const found = told({ input: roles.map((role) => ({ role, content: "x" })) });
    if (accepted) expect(found).toEqual([]);
    else expect(found).toContain("input_shape input");
  });

  test("takes text parts only", () => {
    expect(told({ input: [{ role: "user", content: [{ type: "input_image", image_url: "x" }] }] })).not.toEqual([]);
    expect(told({ input: [{ role: "assistant", content: "x" }] })).not.toEqual([]);
  });

  test("may hold control characters, but no half characters; instructions neither NUL nor DEL [B8]", () => {
    expect(told({ input: "a\0\u007f\r\u001b" })).toEqual([]);
    expect(told({ input: "a\ud800" })).toEqual(["control_character input"]);
    expect(told({ instructions: "a\u007f" })).toEqual(["control_character instructions"]);
    expect(
      told({
        input: [
          { role: "system", content: "a\0" },
          { role: "user", content: "x" },
        ],
      }),
    ).toEqual(["control_character input[0].content"]);
  });
});

describe("keys that change objects", () => {
  test("__proto__ is refused as a key anywhere, and pollutes nothing [B4]", () => {
    const raw = JSON.parse(
      JSON.stringify(activation()).replace(
        /}$/,
        ',"__proto__":{"max_attempts":99},"metadata":{"__proto__":"x"},"tool_grants":[{"__proto__":{}}]}',
      ),
    ) as unknown;
    const admission = admit(raw, POLICY);
    expect(admission.accepted ? [] : admission.refusals.map(({ code, path }) => `${code} ${path}`)).toEqual([
      "unsafe_key __proto__",
      "unsafe_key metadata.__proto__",
      "unsafe_key tool_grants[0].__proto__",
    ]);
    expect(({} as Json)["max_attempts"]).toBeUndefined();
  });

  test("constructor and toString are ordinary names", () => {
    expect(
      told({ metadata: { constructor: "a", toString: "b", hasOwnProperty: "c" }, tool_grants: [mcp("constructor"), mcp("toString")] }),
    ).toEqual([]);
    expect(told({ constructor: 1 })).toEqual(["unknown_field constructor"]);
  });

  test("a million unknown fields are refused before they are walked, and of some only the first are told [fault C6]", () => {
    const many = (count: number): Json => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]));
    const huge = many(1_000_000);
    for (const fields of [huge, { metadata: huge }, { input: Array.from({ length: 1_000_000 }, () => []) }]) {
      expect(refusals(fields)).toMatchObject([
        { code: "invalid_field", path: "", message: expect.stringContaining("more than 100000 values") },
      ]);
    }
    const told = refusals(many(90_000));
    expect(told).toHaveLength(51);
    expect(told.at(-1)!.message).toContain("89950 more");
    expect(refusals({ ["x".repeat(100_000)]: 1 })[0]!.path).toHaveLength(80);
  });

  test("nesting without end is refused, not an overflow", () => {
    let deep: unknown = "x";
    for (let level = 0; level < 100_000; level++) deep = [deep];
    expect(told({ metadata: deep })).not.toEqual([]);
  });
});

describe("what the workers' configuration allows", () => {
  test("decides on providers and key variables", () => {
    expect(told({ sandbox: { provider: "bubblewrap" }, model: { api_key_env: "OPENAI_API_KEY" } })).toEqual([]);
    expect(told({ sandbox: { provider: "host" }, model: { api_key_env: "AWS_SECRET_ACCESS_KEY" } })).toEqual([
      "provider_not_allowed sandbox.provider",
      "key_env_not_allowed model.api_key_env",
    ]);
  });

  test("a worker's key goes to allowed origins only; a key of one's own goes anywhere [fault C1]", () => {
    const policy = { ...POLICY, key_origins: { OPENAI_API_KEY: ["https://llm.example"] } };
    const toldOf = (model: Record<string, unknown>): string[] => {
      const admission = admit(activation({ model }), policy);
      return admission.accepted
        ? []
        : admission.refusals.map(({ code, path, message, accepted }) => `${code} ${path}: ${message} ${accepted}`);
    };
    const api_key_env = "OPENAI_API_KEY";
    expect(toldOf({ api_key_env, base_url: "https://llm.example/{capture_key}/v1" })).toEqual([]);
    expect(toldOf({ api_key: "FAKE-key", base_url: "https://evil.example/v1" })).toEqual([]);
    for (const base_url of [
      "https://evil.example/v1",
      "http://llm.example/v1", // in clear
      "https://llm.example:8443/v1",
      "https://llm.example@evil.example/v1",
      "https://llm.example.evil.example/v1",
    ])
      expect(toldOf({ api_key_env, base_url }), base_url).toEqual([
        expect.stringMatching(/^key_origin_not_allowed model\.base_url: the key in OPENAI_API_KEY .* key_origins\.OPENAI_API_KEY/),
      ]);
  });

  test("a key is given in one way", () => {
    expect(told({ model: { api_key_env: "OPENAI_API_KEY", api_key: "FAKE-key" } })).toEqual(["model_key_ambiguous model.api_key"]);
    const found = refusals({ model: { api_key: "FAKE key\n" } });
    expect(found.map(({ path }) => path)).toEqual(["model.api_key"]);
    expect(JSON.stringify(found)).not.toContain("FAKE");
  });

  test.each(["http://127.0.0.1:8000/v1", "http://x/ng-rollout/{capture_key}/v1"])("the model address %j is accepted", (base_url) =>
    expect(told({ model: { base_url } })).toEqual([]),
  );
  test.each(["", "x", "ftp://x", "http://a b", "file:///x"])("the model address %j is refused", (base_url) =>
    expect(told({ model: { base_url } })).toEqual(["invalid_field model.base_url"]),
  );
});

test.each<[fields: Json, path: string]>([
  [{ sandbox: { image: "x" } }, "sandbox.image"],
  [{ sandbox: { workdir: "/root" } }, "sandbox.workdir"],
  [{ sandbox: { network: { mode: "none" } } }, "sandbox.network.mode"],
  [{ sandbox: { files: [{ path: "a", url: "http://x" }] } }, "sandbox.files[0].url"],
  [{ sandbox_access: {} }, "sandbox_access"],
])("a field that nothing serves yet is refused as such: %j", (fields, path) => {
  expect(told(fields)).toEqual([`not_supported_yet ${path}`]);
});

test.each<[files: Json[], told: string[]]>([
  [
    [
      { path: "a", content: "" },
      { path: "b/c", content_base64: "AA==", executable: true },
    ],
    [],
  ],
  [[{ path: "a" }], ["file_source sandbox.files[0]"]],
  [[{ path: "a", content: "x", content_base64: "AA==" }], ["file_source sandbox.files[0]"]],
  [[{ path: "a", content: "x", sha256: "0".repeat(64) }], ["file_source sandbox.files[0].sha256"]],
  [[{ path: "a", content: "x", sha256: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" }], []],
  [[{ path: "a", artifact: "x" }], ["invalid_field sandbox.files[0].artifact"]],
  [[{ path: "a", artifact: `sha256:${"0".repeat(64)}` }], []],
  [[{ path: "a", artifact: `sha256:${"0".repeat(64)}`, sha256: "1".repeat(64) }], ["file_source sandbox.files[0].sha256"]],
  [[{ path: "a/../../b", content: "x" }], ["invalid_field sandbox.files[0].path"]],
  [[{ path: "a\0", content: "x" }], ["invalid_field sandbox.files[0].path"]],
  [[{ path: "a", content_base64: "not base64!" }], ["invalid_field sandbox.files[0].content_base64"]],
  [[{ path: "a", content: "x", sha256: "ABC" }], ["invalid_field sandbox.files[0].sha256"]],
])("files to place: %j", (files, expected) => {
  expect(told({ sandbox: { files } })).toEqual(expected);
});
