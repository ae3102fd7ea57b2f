// SPDX-License-Identifier: Apache-2.0
import { Histogram, type Registry } from "prom-client";
import { closed } from "./closed.ts";

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
const CLASSES = new Set(["1xx", "2xx", "3xx", "4xx", "5xx"]);

/** One request that was answered. */
export interface AnsweredRequest {
  method: string;
  /** The pattern of the route that served it, e.g. `/v1/runs/:run_id`; null = none did. Never the path itself. */
  route: string | null;
  status: number;
  ms: number;
}

/** Requests of one API process. The route of a request is one of the server's own patterns, whatever was asked for. */
export function httpMetrics(registry: Registry): (request: AnsweredRequest) => void {
  const requests = new Histogram({
    name: "rollcall_http_request_duration_seconds",
    help: "Requests until their answer began. Those that wait for something (?wait=, claims) take as long as they waited.",
    labelNames: ["method", "route", "status"],
    buckets: SECONDS,
    registers: [registry],
  });
  return ({ method, route, status, ms }) => {
    const labels = { method: closed(METHODS, method), route: route ?? "none", status: closed(CLASSES, `${Math.floor(status / 100)}xx`) };
    requests.observe(labels, ms / 1_000);
  };
}
