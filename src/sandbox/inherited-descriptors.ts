// SPDX-License-Identifier: Apache-2.0
import { openSync, readdirSync, readFileSync } from "node:fs";

const O_CLOEXEC = 0o2000000;
let devNull: number | null = null;

/**
 * Descriptors above 2 that a child of this process would inherit: the worker's parent left them open without
 * close-on-exec. An open directory among them would be a way out of any mount namespace.
 */
export function inheritableDescriptors(): number[] {
  return readdirSync("/proc/self/fdinfo")
    .map(Number)
    .filter((fd) => fd > 2 && !closesOnExec(fd));
}

/**
 * Puts /dev/null in place of each of them in the `stdio` of a spawn. Node cannot close them in the child ("ignore"
 * leaves descriptors above 2 as they are).
 */
export function maskInherited<T>(stdio: readonly T[], inherited: readonly number[]): (T | number | "ignore")[] {
  const masked: (T | number | "ignore")[] = [...stdio];
  for (const fd of inherited) {
    if (fd < stdio.length) continue; // ours takes its place
    while (masked.length < fd) masked.push("ignore");
    devNull ??= openSync("/dev/null", "r");
    masked[fd] = devNull;
  }
  return masked;
}

function closesOnExec(fd: number): boolean {
  try {
    const flags = /^flags:\s+(\d+)/mu.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1"))?.[1] ?? "0";
    return (Number.parseInt(flags, 8) & O_CLOEXEC) !== 0;
  } catch {
    return true; // closed meanwhile: it was the one that listed the directory
  }
}
