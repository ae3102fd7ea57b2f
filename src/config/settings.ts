// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import { parseS3Location } from "../artifacts/s3-location.ts";
import { MOST_TIMER_SECONDS } from "../contract/duration.ts";
import { toolGrantSchema } from "../contract/grant.ts";
import { grantRefusals } from "../contract/rules/grants.ts";
import { extraConfigRefusals } from "../contract/rules/extra-config.ts";
import { compactLimitRefusals } from "../contract/rules/settings.ts";
import { setting } from "./setting.ts";
import {
  resourcesSettings,
  modelSettings,
  limiterSettings,
  retrySettings,
  breakerSettings,
  budgetSettings,
  codexSettings,
  sandboxSettings,
  outputsSettings,
  referencesSettings,
  s3Settings,
  queueSettings,
  floorsSettings,
  retentionSettings,
} from "./setting-tables.ts";
import { agentServerSettings, apiSettings, metricsSettings, webhookSettings } from "./server-tables.ts";

/** Scheme, host and port; a path would promise what is not held. */
const keyOrigin = z
  .string()
  .refine(
    (text) => text === "*" || (/^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text),
    'expected an origin, e.g. "https://llm.example:8443" (no path, no final slash), or "*" for any',
  );

/**
 * Every setting: what rollcall.toml may hold, under which variable it may be set, its default, its unit and its reason.
 * docs/settings.md is made from this file.
 */
export const settingsSchema = z
  .strictObject({
    redis_url: setting(z.url({ protocol: /^rediss?$/, error: "expected a redis:// or rediss:// URL" }).optional(), {
      description: "Redis shared by several workers. Absent: a server of its own for each output directory.",
      env: "REDIS_URL",
      defaultText: "embedded",
    }),
    state_dir: setting(z.string().min(1), {
      description: "Where embedded servers keep their data and key; never inside an output directory.",
      env: "ROLLCALL_STATE_DIR",
      defaultText: "$XDG_STATE_HOME/rollcall, else ~/.local/state/rollcall",
    }),
    runtime_dir: setting(z.string().min(1).optional(), {
      description: "Where sockets are; the path must be short.",
      env: "XDG_RUNTIME_DIR",
      defaultText: "a private directory under the system's temporary one",
    }),
    artifacts: setting(
      z
        .string()
        .min(1)
        .refine((place) => !place.startsWith("s3:") || parseS3Location(place) !== null, "expected s3://BUCKET/PREFIX without credentials")
        .optional(),
      {
        description:
          "Where results, evidence and deliverables are kept: `s3://BUCKET/PREFIX` (docs/storage.md) or a directory. With REDIS_URL all workers share it.",
        env: "ROLLCALL_ARTIFACTS",
        defaultText: "artifacts/ in the output directory",
      },
    ),
    artifacts_dir: setting(z.string().min(1).optional(), {
      description: "The same, when it is a directory. Not both.",
      env: "ROLLCALL_ARTIFACTS_DIR",
      defaultText: "none",
    }),
    concurrency: setting(z.int().min(1).max(1_000).default(4), {
      description: "Sessions at once in one process. Each needs about 150 MB.",
    }),
    drain_seconds: setting(z.coerce.number().min(0).max(MOST_TIMER_SECONDS).default(0), {
      description: "How long a worker that is told to stop (SIGTERM) lets its sessions end, in seconds. A second signal stops it at once.",
      env: "ROLLCALL_DRAIN_SECONDS",
    }),
    drain_then: setting(z.enum(["hand_back", "cancel"]).default("hand_back"), {
      description: "What becomes of sessions that still run then: given back, no attempt charged, or ended as cancelled.",
    }),
    taskset: setting(z.string().min(1).default("tasks"), { description: "`task_id.taskset` of rows in the short form." }),
    max_attempts: setting(z.int().min(1).max(100).default(3), { description: "Charged attempts of rows that name no number." }),
    required_tools: setting(z.array(z.string().min(1)).default([]), {
      description: "Tools that sessions of rows that name none must call, e.g. `finish`; GDPVal rows always require that one.",
    }),
    system_prompt: setting(z.string().optional(), {
      description: "Put before each activation's own instructions by the worker.",
      defaultText: "none",
    }),
    codex_bin: setting(z.string().min(1).optional(), {
      description: "Another Codex executable than the packaged one, for sessions that name no version (docs/operations.md).",
      env: "CODEX_BIN",
      defaultText: "packaged",
    }),
    codex_version: setting(
      z
        .string()
        .regex(/^\d+\.\d+\.\d+$/, "expected an exact version, e.g. 0.171.0")
        .optional(),
      {
        description: "Codex of a worker's sessions, and of a run's rows, that name no version. A worker without it refuses to start.",
        defaultText: "the packaged one's (0.171.0)",
      },
    ),
    skills_dir: setting(z.string().min(1).optional(), {
      description: "Directory of skills (NAME/SKILL.md) that a worker copies into each session (docs/codex-options.md).",
      defaultText: "none",
    }),
    allow_providers: setting(z.array(z.enum(["bubblewrap", "host"])).default(["bubblewrap"]), {
      description: "Sandboxes a row may ask for. The configured provider is always allowed.",
    }),
    allow_key_env: setting(z.array(z.string().min(1)).default([]), {
      description:
        "Variables a row may name as its model key, beside model.api_key_env. Otherwise a producer could have any variable used.",
    }),
    key_origins: setting(z.record(z.string(), z.array(keyOrigin)).default({}), {
      description:
        'Where the key of each such variable may be sent, e.g. `{ OPENAI_API_KEY = ["https://llm.example"] }`; workers hold to their own. Otherwise a producer could have it sent to any host.',
      defaultText: "model.base_url's origin",
    }),
    log_level: setting(z.enum(["trace", "debug", "info", "warn", "error", "silent"]).optional(), {
      description: "Log lines go to stderr, as JSON. `run` tells how it goes by itself.",
      env: "ROLLCALL_LOG_LEVEL",
      defaultText: "info; warn in `run`",
    }),
    model: modelSettings.prefault({}),
    codex: codexSettings.prefault({}),
    sandbox: sandboxSettings.prefault({}),
    outputs: outputsSettings.prefault({}),
    references: referencesSettings.prefault({}),
    queue: queueSettings.prefault({}),
    limiter: limiterSettings.prefault({}),
    retry: retrySettings.prefault({}),
    breaker: breakerSettings.prefault({}),
    budget: budgetSettings.prefault({}),
    s3: s3Settings.prefault({}),
    floors: floorsSettings.prefault({}),
    metrics: metricsSettings.prefault({}),
    retention: retentionSettings.prefault({}),
    webhooks: webhookSettings.prefault({}),
    api: apiSettings.prefault({}),
    agent_server: agentServerSettings.prefault({}),
    resources: resourcesSettings.prefault({}),
    tool_grants: setting(z.array(toolGrantSchema).default([]), {
      description: "`[[tool_grants]]` given to every row; a row's own grant of the same name replaces one whole.",
    }),
  })
  .superRefine((settings, context) => {
    for (const field of ["mcp_tool_timeout_seconds", "mcp_startup_timeout_seconds"] as const) {
      const value = settings.codex[field];
      if (value !== undefined && value > settings.codex.timeout_seconds) {
        context.addIssue({
          code: "custom",
          path: ["codex", field],
          message: `${value} is more than codex.timeout_seconds (${settings.codex.timeout_seconds})`,
        });
      }
    }
    if (settings.artifacts !== undefined && settings.artifacts_dir !== undefined) {
      context.addIssue({
        code: "custom",
        path: ["artifacts_dir"],
        message: "artifacts is set too: results have one place, so set one of the two",
      });
    }
    if (settings.queue.lock_renew_ms * 2 > settings.queue.lock_duration_ms) {
      context.addIssue({
        code: "custom",
        path: ["queue", "lock_renew_ms"],
        message: `expected at most half of queue.lock_duration_ms (${settings.queue.lock_duration_ms})`,
      });
    }
    const { extra_config: extra } = settings.codex;
    for (const refused of [...compactLimitRefusals(settings.codex), ...(extra === undefined ? [] : extraConfigRefusals(extra))]) {
      context.addIssue({ code: "custom", path: [refused.path], message: `${refused.message}; accepted: ${refused.accepted}` });
    }
    for (const refused of grantRefusals(settings.tool_grants)) {
      context.addIssue({ code: "custom", path: [refused.path], message: `${refused.message}; accepted: ${refused.accepted}` });
    }
  });

/** All settings, defaults filled in. Holds grant headers in clear: never log it whole. */
export type Settings = Omit<z.infer<typeof settingsSchema>, "artifacts_dir"> & {
  /** ROLLCALL_SECRET_KEY as it is: comma-separated keys, the first seals. Only ever from the environment. */
  secret_key: string | undefined;
};
