// SPDX-License-Identifier: Apache-2.0
import type { Command } from "commander";
import { dirname, join } from "node:path";
import { admissionPolicy } from "../config/load.ts";
import { DEFAULT_KEY_VARIABLE } from "../config/setting-tables.ts";
import type { Settings } from "../config/settings.ts";
import type { AdmissionPolicy } from "../contract/refusals.ts";
import { referenceFiles } from "../references/reference-files.ts";
import { openUrlCache } from "../references/url-cache.ts";
import { ROW_FORMATS, type RowFormat } from "../rollout/formats/detect.ts";
import { readPromptTemplate } from "../rollout/formats/prompt-template.ts";
import type { RowDefaults } from "../rollout/task-row.ts";
import type { TaskSource } from "../rollout/tasks.ts";
import { oneOf, wholeNumber } from "./options.ts";

/** Flags that say how a task file is read. */
export interface TaskFlags {
  format: RowFormat | "auto";
  promptTemplate?: string;
  limit?: number;
  repeats: number;
}

/** What is not said here is the server's to say: which variable of its workers holds the key, and where that key may go. */
function modelForServer({ model: { api_key_env, ...model } }: Settings): RowDefaults["model"] {
  return api_key_env === DEFAULT_KEY_VARIABLE ? model : { ...model, api_key_env };
}

function policyForServer(settings: Settings): AdmissionPolicy {
  const { key_origins: _ofItsWorkers, ...policy } = admissionPolicy(settings);
  return policy;
}

const FORMATS = ["auto", ...ROW_FORMATS] as const;

export function withTaskFlags(command: Command): Command {
  return command
    .option("--format <name>", "how rows are written: auto (as the first one looks), rollcall, gym, gdpval", oneOf(FORMATS), "auto")
    .option("--prompt-template <file>", "prompt of GDPVal rows; {prompt}, {reference_files_str}, {sector}, {occupation} are replaced")
    .option("--limit <n>", "only the first n rows", wholeNumber(1))
    .option("--repeats <n>", "rollouts of each task", wholeNumber(1), 1);
}

/** How a task file is read, by flags and settings; `signal` ends the fetching of its files. Throws RollcallError "template_unreadable", "template_invalid". */
export async function taskSource(
  path: string,
  flags: TaskFlags & { server?: string },
  settings: Settings,
  signal?: AbortSignal,
): Promise<Omit<TaskSource, "runId">> {
  const { format, promptTemplate, limit, repeats } = flags;
  const { max_file_mb, allow_dirs, allow_url_hosts } = settings.references;
  const policy = {
    baseDir: dirname(path),
    allowDirs: allow_dirs,
    allowUrlHosts: allow_url_hosts,
    maxBytes: max_file_mb * 1_000_000,
    ...(signal === undefined ? {} : { signal }),
  };
  return {
    path,
    format,
    repeats,
    defaults: flags.server === undefined ? settings : { ...settings, model: modelForServer(settings) },
    toolGrants: settings.tool_grants,
    policy: flags.server === undefined ? admissionPolicy(settings) : policyForServer(settings),
    referenceFiles: referenceFiles(policy, () => openUrlCache(join(settings.state_dir, "references"))),
    ...(limit === undefined ? {} : { limit }),
    ...(promptTemplate === undefined ? {} : { promptTemplate: await readPromptTemplate(promptTemplate) }),
  };
}
