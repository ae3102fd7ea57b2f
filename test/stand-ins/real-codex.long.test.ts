// SPDX-License-Identifier: Apache-2.0
import { codexVersions } from "../support/attempt.ts";
import { standInsUnder } from "./under-codex.ts";

for (const version of (await codexVersions()).slice(1)) standInsUnder(version);
