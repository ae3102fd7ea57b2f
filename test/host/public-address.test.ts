// SPDX-License-Identifier: Apache-2.0
import { expect, it } from "vitest";
import { isAllowedHost, isPublicAddress } from "../../src/host/public-address.ts";

const PRIVATE =
  "0.0.0.0 10.0.0.1 100.64.0.1 127.0.0.1 127.1.2.3 169.254.169.254 172.16.0.1 172.31.255.255 192.0.2.1 192.168.1.1 198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 " +
  ":: ::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::a00:1 2002:a00:1:: 2001:db8::1 fc00::1 fd00:ec2::254 fe80::1 ff02::1 not-an-address";

it.each(PRIVATE.split(" "))("%s is no public address", (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

it.each(["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8"])("%s is a public address", (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

it("allows a host by its whole name or address, with or without its port", () => {
  const allowed = ["hooks.internal", "127.0.0.1:9000", "::1"];
  for (const url of ["http://hooks.internal:81/x", "https://HOOKS.internal", "http://127.0.0.1:9000", "http://[::1]:5"])
    expect(isAllowedHost(new URL(url), allowed), url).toBe(true);
  for (const url of ["http://a.hooks.internal", "http://hooks.internal.evil", "http://127.0.0.1:9001", "http://127.0.0.1"])
    expect(isAllowedHost(new URL(url), allowed), url).toBe(false);
});
