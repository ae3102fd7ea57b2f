// SPDX-License-Identifier: Apache-2.0

/** What a run does when its breaker would open. stop: it does not try again by itself. off: it never opens. */
export const BREAKER_MODES = ["auto", "stop", "off"] as const;
export type BreakerMode = (typeof BREAKER_MODES)[number];
