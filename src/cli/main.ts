#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The rest is loaded only where it can be: an older Node fails at whatever it lacks, and the modules are some hundred files at once.
import { notStartable } from "./startable.ts";

const problem = notStartable(process.versions.node, process.argv);
if (problem === null) await import("./program.ts");
else {
  process.stderr.write(`rollcall: ${problem}\n`);
  process.exitCode = 2;
}
