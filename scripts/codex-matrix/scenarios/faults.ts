// SPDX-License-Identifier: Apache-2.0
import { say, step, withFault, type Script } from "../../../examples/stand-ins/script.ts";
import { finish, ONE, report, work, type ByVersion, type Scenario } from "../scenario.ts";

type Fault = Parameters<typeof withFault>[1];

const error = (fields: Record<string, unknown>): string => JSON.stringify({ error: { message: "no", ...fields } });
const status = (code: number, body: string, more: object = {}): Fault => ({ kind: "status", status: code, body, ...more });

/** The fault strikes after one good answer. */
const after = (fault: Fault): Script => ({ steps: [step(report()), withFault(step(finish()), fault), step(say("Done."))] });

/** A fault of the model server; what it strikes is not repeated unless the scenario says so. */
function fault(name: string, what: Fault, ends: ByVersion<string>, more: Partial<Scenario> = {}): Scenario {
  const may = ["model_call_outcome_unknown", "partial_model_usage_unavailable"] as const;
  return { name: `model server: ${name}`, kinds: ONE, script: after(what), ends, may, ...more };
}

/** The model server is too busy in the first attempt; the second is not charged. */
function busy(name: string, what: Fault, ends: ByVersion<string> = "rate_limited > completed"): Scenario {
  return fault(name, { ...what, attempt: 0 }, ends, { model_server: "its own" });
}

const provider = (cause: string): string => `failed ${cause} model_provider`;
const slow = { slow: true, codex: { timeout_seconds: 90 } } as const;
const lost = provider("stream_lost");

export const faults: readonly Scenario[] = [
  fault("gone at the first call", status(500, ""), lost, { ...slow, model_server: "gone at the first call" }),
  fault("gone after one answer", status(500, ""), lost, { ...slow, script: work(), model_server: "gone after one answer" }),
  fault("away for 10 s", status(500, ""), "completed", { ...slow, script: work(), model_server: "away for 10 s" }),
  fault("closes without an answer", { kind: "close" }, lost, slow),
  fault("500", status(500, error({})), provider("turn_failed"), slow),
  fault("502, a web page", status(502, "<html>bad gateway</html>"), provider("turn_failed"), slow),
  fault("503", status(503, error({})), provider("turn_failed"), slow),
  fault("one 500", status(500, error({}), { times: 1 }), "completed"),
  busy("503 overloaded", status(503, error({ code: "server_is_overloaded" }))),
  busy("429", status(429, error({ message: "Rate limit reached" }))),
  busy("429 with Retry-After: 1", status(429, error({ message: "Rate limit reached" }), { headers: { "retry-after": "1" } })),
  fault(
    "429 quota",
    status(429, error({ code: "insufficient_quota" }), { attempt: 0 }),
    {
      else: provider("quota_exhausted"),
      "0.144.4": "rate_limited > completed", // the code is lost
    },
    { model_server: "its own" },
  ),
  fault("429 usage limit", status(429, error({ type: "usage_limit_reached" })), provider("quota_exhausted"), { model_server: "its own" }),
  fault("401", status(401, error({ code: "invalid_api_key" })), `${provider("model_key_refused")} final`),
  fault(
    "404 no such model",
    status(404, error({ code: "model_not_found", message: "The model does not exist" })),
    `${provider("model_not_found")} final`,
  ),
  fault("400", status(400, error({})), "failed turn_failed agent"),
  fault(
    "400 for a tool's name",
    status(400, error({ message: "Invalid 'tools[8].name': string too long.", param: "tools[8].name", code: "string_above_max_length" })),
    "failed model_tool_refused grant final",
  ),
  fault("400 context length", status(400, error({ code: "context_length_exceeded" })), "incomplete context_overflow limit"),
  fault(
    "response.failed: context length",
    { kind: "failed", code: "context_length_exceeded", message: "too long" },
    "incomplete context_overflow limit",
  ),
  fault("response.failed: quota", { kind: "failed", code: "insufficient_quota", message: "no money" }, provider("quota_exhausted")),
  fault("response.failed: server error", { kind: "failed", code: "server_error", message: "exploded" }, lost),
  busy("response.failed: rate limit", {
    kind: "failed",
    code: "rate_limit_exceeded",
    message: "Rate limit reached. Please try again in 0.3s.",
  }),
  fault("cut, always", { kind: "cut" }, lost),
  fault("cut, once", { kind: "cut", times: 1 }, "completed"),
  fault("cut after a whole call, once", { kind: "cut", times: 1, after: [finish()] }, "completed"),
  fault("cut in the first attempt", { kind: "cut", attempt: 0 }, "stream_lost > completed", { max_attempts: 2 }),
  fault("output limit", { kind: "incomplete", after: [say("half")] }, "incomplete max_output_tokens limit"),
  {
    name: "model server: answers with nothing",
    kinds: ONE,
    script: {
      steps: [
        {
          reply: [],
          usage: { input_tokens: 0, cached_input_tokens: 0, cache_write_input_tokens: 0, output_tokens: 0, reasoning_output_tokens: 0 },
        },
      ],
    },
    ends: "completed model_provider",
    gaps: ["model_answer_empty"],
    last_answer: { else: "told", "0.144.4": "untold" },
    may: ["cached_token_usage_unavailable", "reasoning_token_usage_unavailable", "partial_model_usage_unavailable"],
  },
];
