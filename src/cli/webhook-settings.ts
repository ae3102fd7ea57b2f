// SPDX-License-Identifier: Apache-2.0
import type { Settings } from "../config/settings.ts";
import type { SendSettings } from "../webhooks/send.ts";

/** Pure. */
export function sendSettings({ webhooks }: Pick<Settings, "webhooks">): SendSettings {
  const { timeout_seconds, max_attempts, base_seconds, max_seconds, allow_hosts, concurrency } = webhooks;
  return {
    timeout_ms: timeout_seconds * 1_000,
    max_attempts,
    base_ms: base_seconds * 1_000,
    max_ms: max_seconds * 1_000,
    allow_hosts,
    concurrency,
  };
}
