// SPDX-License-Identifier: Apache-2.0
import { BlockList, isIP } from "node:net";

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4"); // those of IPv4 written as IPv6 count, too
LOOPBACK.addAddress("::1", "ipv6");

/** Whether who listens there is reached from this host alone. Of other names than localhost nobody knows it: false. Pure. */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  return family === 0 ? host.toLowerCase() === "localhost" : LOOPBACK.check(host, family === 6 ? "ipv6" : "ipv4");
}
