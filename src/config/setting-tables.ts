// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import { reasoningEffortSchema } from "../contract/activation.ts";
import { days, milliseconds, seconds } from "../contract/duration.ts";
import { BREAKER_MODES } from "../queue/breaker-mode.ts";
import { PROTOCOLS } from "../resources/server.ts";
import { setting } from "./setting.ts";

/** The tables of rollcall.toml; what stands outside of them is in settings.ts. */

export const DEFAULT_KEY_VARIABLE = "OPENAI_API_KEY";

export const modelSettings = z.strictObject({
  name: setting(z.string().min(1).optional(), {
    description: "Model for rows that name none. Absent: Codex's own default.",
    defaultText: "Codex's",
  }),
  base_url: setting(z.url({ protocol: /^https?$/, error: "expected an absolute http or https URL" }).optional(), {
    description: "Responses API for rows that name none; `{capture_key}` is replaced by the attempt's capture key.",
    env: "ROLLCALL_MODEL_BASE_URL",
    defaultText: "OpenAI's",
  }),
  api_key_env: setting(
    z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "expected the name of a variable")
      .default(DEFAULT_KEY_VARIABLE),
    {
      description: "Name of the worker's variable that holds the model key. The key itself is never a setting.",
    },
  ),
});

export const limiterSettings = z.strictObject({
  max_concurrent: setting(z.int().min(1).max(100_000).optional(), {
    description: "Sessions at once at one model server (its URL's host and port), over all workers and runs.",
    defaultText: "as many as it takes: fewer after it says that it is too many",
  }),
  grow_seconds: setting(seconds.default(30), {
    description:
      "After a model server said that it has too many: one session more is let in per this time without another such answer, in seconds.",
  }),
});

export const retrySettings = z.strictObject({
  base_seconds: setting(seconds.default(5), {
    description:
      "Pause before another attempt: at random between the half of this and the whole, doubled per charged attempt; also of all sessions after a busy model server.",
  }),
  max_seconds: setting(seconds.default(300), {
    description: "Longest such pause, in seconds. A model server that names a time is waited for, up to an hour.",
  }),
});

export const breakerSettings = z.strictObject({
  mode: setting(z.enum(BREAKER_MODES).default("auto"), {
    description:
      "When different tasks of a run fail alike in a row: `auto` pauses it and tries with one, `stop` ends it, `off` goes on failing. `run --breaker` sets it too.",
  }),
  after: setting(z.int().min(0).max(10_000).default(5), {
    description: "How many different tasks; only failures of machines and model servers count, any success begins anew. 0: never.",
  }),
  base_seconds: setting(seconds.default(60), { description: "Before one task is tried, in seconds; doubled for each that fails too." }),
  max_seconds: setting(seconds.default(900), { description: "Longest time between two tries, in seconds." }),
});

export const budgetSettings = z.strictObject({
  max_tokens: setting(z.int().min(1).optional(), {
    description:
      "A run starts nothing more once its attempts have used so many tokens, in and out; what runs ends (docs/operations.md). A flag of `run` sets it too, like the next two.",
    defaultText: "no limit",
  }),
  max_model_calls: setting(z.int().min(1).optional(), { description: "The same for answered model calls.", defaultText: "no limit" }),
  max_hours: setting(z.number().positive().max(87_600).optional(), {
    description: "The same for the time of all starts of the run together, in hours.",
    defaultText: "no limit",
  }),
});

export const codexSettings = z.strictObject({
  timeout_seconds: setting(seconds.max(604_800).default(600), {
    description: "Wall clock of one attempt, in seconds. Upstream's default; office tasks usually need 3600.",
  }),
  mcp_startup_timeout_seconds: setting(seconds.optional(), {
    description: "How long a tool server may take to connect, in seconds.",
    defaultText: "Codex's",
  }),
  mcp_tool_timeout_seconds: setting(seconds.optional(), {
    description:
      "Limit of one tool call, in seconds; at most timeout_seconds. Must exceed the slowest call: the server goes on working after it.",
    defaultText: "Codex's (300)",
  }),
  idle_seconds: setting(seconds.max(604_800).optional(), {
    description: "A turn in which Codex prints nothing this long is ended, in seconds. Must exceed the slowest tool call and model answer.",
    defaultText: "off",
  }),
  session_close_timeout_seconds: setting(seconds.max(604_800).default(60), {
    description: "Bound of each phase after Codex (stopping, reading stderr, collecting), in seconds.",
  }),
  reasoning_effort: setting(reasoningEffortSchema.optional(), {
    description: "For rows that name none: none, minimal, low, medium, high, xhigh or max.",
    defaultText: "Codex's",
  }),
  subagents: setting(z.enum(["off", "on"]).default("off"), {
    description: "Whether models that know how get agents of their own, for rows that do not say (docs/codex-options.md).",
  }),
  tools: setting(z.enum(["direct", "catalogue"]).default("direct"), {
    description:
      "`direct`: every model sees the granted tools in its first request. `catalogue`: as Codex' model catalogue has it, in code mode or behind a tool search.",
  }),
  model_context_window: setting(z.int().positive().optional(), {
    description: "How many tokens the model takes, for a model that Codex does not know.",
    defaultText: "Codex's",
  }),
  model_auto_compact_token_limit: setting(z.int().positive().optional(), {
    description: "From so many tokens on, Codex sums up the conversation; at most 90 % of model_context_window.",
    defaultText: "Codex's",
  }),
  extra_config: setting(z.record(z.string(), z.json()).optional(), {
    description:
      "More of Codex's config.toml, as a table; a row's own replaces it. Keys that Rollcall sets itself are refused (docs/codex-options.md). Not for secrets.",
    defaultText: "none",
  }),
  unknown_version: setting(z.enum(["refuse", "try"]).default("refuse"), {
    description:
      "What this worker does with a Codex version that Rollcall has no profile of: refuses it, or reads it as the newest that it knows, with a gap in each session's record.",
  }),
});

export const sandboxSettings = z.strictObject({
  provider: setting(z.enum(["bubblewrap", "host"]).default("bubblewrap"), {
    description: "`host` isolates nothing: for development on a machine without bubblewrap.",
  }),
  memory_mb: setting(z.int().positive().optional(), {
    description:
      "Memory of one sandbox, in MB, where the worker may make control groups (`rollcall doctor` says it). Codex alone takes up to 80; what lies in /dev/shm counts.",
    defaultText: "no limit",
  }),
  cpus: setting(z.number().positive().optional(), {
    description: "CPUs of one sandbox, e.g. 0.5, where the worker may make control groups.",
    defaultText: "no limit",
  }),
  pids: setting(z.int().positive().default(512), {
    description:
      "Processes and threads of one sandbox, where the worker may make control groups, or each sandbox has a user of its own (a root worker). Codex itself has up to 35.",
  }),
  disk_mb: setting(z.int().positive().optional(), {
    description:
      "Largest single file that a sandbox may write, in MB. It may write many: what all files take together is held by no limit but `floors.disk_mb`.",
    defaultText: "no limit",
  }),
  create_seconds: setting(seconds.max(3_600).default(60), {
    description:
      "How long each step of making a sandbox may take, in seconds: itself, placing files, bubblewrap's start. One that hangs fails the attempt (`sandbox_failed`).",
  }),
});

export const outputsSettings = z.strictObject({
  paths: setting(z.array(z.string().min(1)).default([]), {
    description: "Globs, relative to the workdir, that are collected from rows that name none.",
  }),
  max_file_mb: setting(z.number().positive().default(100), { description: "Larger files are left out, with a gap. In MB." }),
  max_total_mb: setting(z.number().positive().default(500), { description: "Limit of all collected files of one attempt, in MB." }),
});

export const referencesSettings = z.strictObject({
  max_file_mb: setting(z.number().positive().default(200), {
    description: "Largest file that a GDPVal row may name, in MB.",
  }),
  allow_dirs: setting(z.array(z.string().min(1)).default([]), {
    description: "Directories of this machine whose files such rows may name, beside that of the task file.",
  }),
  allow_url_hosts: setting(z.array(z.string().min(1)).default([]), {
    description:
      "Hosts (`host` or `host:port`) whose URLs such rows may name although they are not public or not https. Otherwise a row could have this machine ask servers that only its network reaches.",
  }),
});

export const s3Settings = z.strictObject({
  endpoint: setting(
    z
      .url({ protocol: /^https?$/, error: "expected an absolute http or https URL" })
      .refine((url) => new URL(url).username === "" && new URL(url).password === "", "credentials do not belong here")
      .optional(),
    {
      description: "Address of the S3 server. Credentials come from the AWS SDK's usual places, never from a setting.",
      env: "AWS_ENDPOINT_URL_S3",
      defaultText: "Amazon's",
    },
  ),
  region: setting(z.string().min(1).optional(), {
    description: "Region of the bucket.",
    env: "AWS_REGION",
    defaultText: "the AWS profile's; us-east-1 with s3.endpoint",
  }),
  force_path_style: setting(z.boolean().optional(), {
    description: "The bucket's name in the path instead of in the host name.",
    defaultText: "true with s3.endpoint",
  }),
});

export const queueSettings = z.strictObject({
  lock_duration_ms: setting(milliseconds(1_000).default(60_000), {
    description: "A claim not renewed this long is lost, in ms. A minute: a short loss of Redis must not end long sessions.",
  }),
  lock_renew_ms: setting(milliseconds(100).default(20_000), {
    description: "How often a claim is renewed, in ms. A third of the lock, so that two renewals may fail.",
  }),
  stalled_interval_ms: setting(milliseconds(500).default(15_000), {
    description: "How often lost claims are looked for, in ms.",
  }),
  no_capable_worker_seconds: setting(seconds.default(600), {
    description: "What no live worker could run for so long (Codex version, sandbox, key) fails, in seconds, and says what is missing.",
  }),
  no_worker_deadline_seconds: setting(seconds.optional(), {
    description:
      "What has waited so long while no worker lived fails (`no_worker`), in seconds. Off: a run that is left alone must survive a night without workers.",
    defaultText: "off",
  }),
  max_result_bytes: setting(z.int().min(0).default(16_000), {
    description:
      "A larger result is put into its results queue without its large parts, with the address and the sha256 of the whole in the artifact store (docs/results.md), in bytes of JSON.",
  }),
});

export const floorsSettings = z.strictObject({
  disk_mb: setting(z.number().min(0).default(1_024), {
    description:
      "A worker takes no session while less is free where it keeps state, artifacts and temporary files, in MB. 0: not looked at.",
  }),
  memory_mb: setting(z.number().min(0).default(256), {
    description: "The same for memory, in MB. A session needs about 150.",
  }),
  pids: setting(z.int().min(0).default(256), { description: "The same for processes that may still be started." }),
});

export const resourcesSettings = z.strictObject({
  url: setting(z.url({ protocol: /^https?$/, error: "expected an absolute http or https URL" }).optional(), {
    description:
      "Resources server of NeMo Gym that seeds each rollout and scores it (docs/resources-servers.md); `run --resources-server`. May be a private address: only whoever runs the command names it.",
    env: "ROLLCALL_RESOURCES_SERVER",
    defaultText: "none",
  }),
  name: setting(
    z
      .string()
      .regex(/^[A-Za-z0-9_-]+$/, "expected [A-Za-z0-9_-]+")
      .default("resources"),
    {
      description: "Name of its tool server where its own metadata give none.",
    },
  ),
  protocol: setting(z.enum(PROTOCOLS).default("session"), {
    description:
      "`session`: seeded, verified and closed under an id, as by environment servers. `row`: the whole row is sent, as by agents.",
  }),
  tool_transports: setting(z.array(z.enum(["mcp", "direct_http"])).default(["mcp"]), {
    description: "How sessions reach its tools: `mcp`, or empty for none. `direct_http` is refused: Codex cannot use it.",
  }),
  max_sessions: setting(z.int().min(1).max(100_000).default(32), {
    description: "Sessions open at once at one resources server, over all workers and runs: it may hold a sandbox for each.",
  }),
  max_failures: setting(z.int().min(1).max(100).default(3), {
    description: "Failed attempts of one rollout that count; each next one has a new session.",
  }),
  verify_tries: setting(z.int().min(1).max(100).default(3), {
    description: "Tries of one verification; then the rollout stays, unverified. `rollcall verify` does it again.",
  }),
  seed_timeout_seconds: setting(seconds.max(86_400).default(600), {
    description: "How long a seed may take, in seconds: it fetches files.",
  }),
  verify_timeout_seconds: setting(seconds.max(86_400).default(1_800), {
    description: "How long a verification may take, in seconds: it asks judges.",
  }),
  close_timeout_seconds: setting(seconds.max(86_400).default(60), { description: "How long a close may take, in seconds." }),
  unreachable_seconds: setting(seconds.default(900), {
    description: "So long a server that cannot be connected to is waited for, in seconds; nothing was sent, so it does not count before.",
  }),
  max_answer_mb: setting(z.number().positive().max(64).default(16), { description: "Largest answer, in MB." }),
});

export const retentionSettings = z.strictObject({
  ended_jobs_days: setting(days.default(7), {
    description: "How long ended jobs stay in Redis, in days. At least as long as anything may be delivered again.",
  }),
  unread_results_days: setting(days.default(30), {
    description:
      "How long `serve` leaves a result that nobody takes in its results queue, in days since its end; it warns before. The artifact store keeps it.",
  }),
  dead_webhooks_days: setting(days.default(30), {
    description: "How long what could not be pushed to a webhook can be replayed, in days. The artifact store keeps the result.",
  }),
});
