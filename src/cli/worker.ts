// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
export function workerCommand(): Command {
  return new Command("worker");
}
