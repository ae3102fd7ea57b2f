// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";

/** Where to listen, as HOST:PORT; an IPv6 address in brackets. */
export const addressSchema = z.string().regex(/^(\[[0-9A-Fa-f:.]+\]|[^\s:]+):\d{1,5}$/, "expected HOST:PORT, e.g. 127.0.0.1:8090");

/** The same host, so many ports further; port 0 is any free one, and stays. Pure. */
export function portsFurther(address: string, count: number): string {
  const { port } = hostAndPort(address);
  return port === 0 ? address : address.replace(/\d+$/, String(port + count));
}

/** Of one that fits {@link addressSchema}. Pure. */
export function hostAndPort(address: string): { host: string; port: number } {
  const [, host = "", port = ""] = /^\[?(.*?)\]?:(\d+)$/.exec(address) ?? [];
  return { host, port: Number(port) };
}
