// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";
import { addressSchema } from "./address.ts";
import { seconds } from "../contract/duration.ts";
import { setting } from "./setting.ts";

/** Tables of rollcall.toml for what processes serve and send over HTTP. */

export const apiSettings = z.strictObject({
  host: setting(z.string().min(1).default("127.0.0.1"), {
    description: "Where `serve` listens. On another address than loopback it needs a key of your choice, and TLS in front of it.",
    env: "ROLLCALL_API_HOST",
  }),
  port: setting(z.coerce.number().int().min(0).max(65_535).default(8_080), { description: "0: a free one.", env: "ROLLCALL_API_PORT" }),
  hosts: setting(z.array(z.string().min(1)).default(["localhost", "127.0.0.1", "::1"]), {
    description: "Names under which it may be called (the Host header), beside `api.host`; `*`: any.",
  }),
  keys_file: setting(z.string().min(1).optional(), {
    description:
      "Keys that may call: lines of NAME SCOPE[,SCOPE] sha256:HEX [runs=PREFIX] (scopes: read, enqueue, admin; with a prefix: only runs whose ids begin so). Read again when it changes.",
    env: "ROLLCALL_API_KEYS_FILE",
    defaultText: "none: ROLLCALL_API_KEY, else a key made in the state directory",
  }),
  max_body_mb: setting(z.number().positive().default(64), { description: "Largest request, in MB." }),
  max_file_mb: setting(z.number().positive().default(1_000), {
    description: "Largest file that may be put for activations to name, in MB.",
  }),
  requests_per_second: setting(z.int().min(1).default(200), { description: "Of one key in one process." }),
  max_waiting: setting(z.int().min(1).default(2_000), {
    description: "Requests that wait for a result or follow events, at once in one process.",
  }),
  sign_in_hours: setting(z.number().positive().max(8_760).default(12), {
    description: "A browser stays signed in so long: about a working day.",
  }),
  secure_cookies: setting(z.boolean().default(false), {
    description:
      "Browsers send their sign-in back over https only. Without it that holds for sign-ins that came over https, also where a proxy says so (X-Forwarded-Proto).",
  }),
});

export const agentServerSettings = z.strictObject({
  address: setting(addressSchema.optional(), {
    description:
      "Where `serve` also serves the agent-session protocol of NeMo Gym (docs/agent-server.md), as HOST:PORT. It asks for no key: whoever reaches it can run sessions.",
    env: "ROLLCALL_AGENT_SERVER",
    defaultText: "off",
  }),
  session_hours: setting(z.number().positive().max(8_760).default(168), {
    description: "How long a session is kept in Redis after its last change, in hours. Must exceed its wait for a worker and its run.",
  }),
  close_retry_window_seconds: setting(seconds.max(604_800).default(300), {
    description: "How long a close is answered again as it was, in seconds, counted from the end of its cleanup. Upstream's default.",
  }),
  agent_outcome: setting(z.enum(["metadata", "502"]).default("metadata"), {
    description:
      "How a failure within the turn is answered: `metadata`: 200 with status `failed` and `metadata.ng_agent_outcome`, as newer environment servers read it; `502` for older ones.",
  }),
  max_body_mb: setting(z.number().positive().max(8).default(8), { description: "Largest request, in MB." }),
});

export const metricsSettings = z.strictObject({
  address: setting(addressSchema.optional(), {
    description:
      "Where a worker serves its `/metrics`, as HOST:PORT (docs/metrics.md); of `serve --workers N` each next one takes the next port. It asks for a key. `serve` itself has `/metrics` beside its API in any case.",
    env: "ROLLCALL_METRICS",
    defaultText: "off",
  }),
  result_queues: setting(z.array(z.string().min(1)).max(100).default(["results"]), {
    description: "Results queues that metrics tell apart by name; producers may name any number of others, which are added up.",
  }),
});

export const webhookSettings = z.strictObject({
  allow_hosts: setting(z.array(z.string().min(1)).default([]), {
    description:
      "Hosts (NAME or ADDRESS, also with :PORT) that results may be pushed to although they are not public, or without TLS. All others must be https, at public addresses.",
  }),
  timeout_seconds: setting(seconds.max(300).default(20), { description: "How long a receiver may take to answer, in seconds." }),
  max_attempts: setting(z.int().min(1).max(100).default(12), {
    description: "Tries of one delivery before it is a dead letter. With the pauses of the defaults: about a day and a half.",
  }),
  base_seconds: setting(seconds.default(5), {
    description: "Pause after the first failed try: at random between the half of this and the whole, four times as long after each other.",
  }),
  max_seconds: setting(seconds.default(21_600), {
    description: "Longest such pause, in seconds. A receiver that names a time (Retry-After) is waited for, up to a day.",
  }),
  concurrency: setting(z.int().min(1).max(100).default(4), { description: "Requests at once to one receiver, over all servers." }),
});
