// SPDX-License-Identifier: Apache-2.0
import type { Scenario } from "../scenario.ts";
import { codeModes } from "./code-mode.ts";
import { compaction } from "./compaction.ts";
import { faults } from "./faults.ts";
import { startup } from "./startup.ts";
import { stops } from "./stops.ts";
import { subagents } from "./subagents.ts";
import { tools } from "./tools.ts";

export const SCENARIOS: readonly Scenario[] = [...startup, ...tools, ...codeModes, ...subagents, ...compaction, ...faults, ...stops];
