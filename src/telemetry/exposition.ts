// SPDX-License-Identifier: Apache-2.0
import type { Registry } from "prom-client";

/** What a scraper gets. */
export interface Exposition {
  /** Prometheus' text format, and its content type. */
  render(): Promise<{ type: string; text: string }>;
}

/** `before`: what must be read anew for each scrape. */
export function expositionOf(registry: Registry, before: () => Promise<void> = () => Promise.resolve()): Exposition {
  return {
    async render() {
      await before();
      return { type: registry.contentType, text: await registry.metrics() };
    },
  };
}
