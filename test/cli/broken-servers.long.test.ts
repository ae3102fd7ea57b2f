// SPDX-License-Identifier: Apache-2.0
import { codexVersions } from "../support/attempt.ts";
import { describeBrokenServers } from "../support/broken-servers-suite.ts";

// The default's are in the slow test.
for (const version of (await codexVersions()).slice(1))
  describeBrokenServers(
    `servers that are down, under Codex ${version.name}, are told by their cause, with no piece of a token in results, artifacts, logs and Redis [R8 R9 R10 R12 R13 R14 R20 R37]`,
    version,
  );
