// SPDX-License-Identifier: Apache-2.0
import { codexVersions } from "../support/attempt.ts";
import { standInsUnder } from "./under-codex.ts";

// The packaged version; the newest one: real-codex.long.test.ts.
standInsUnder((await codexVersions())[0]!);
