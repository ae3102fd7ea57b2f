// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
export function schemaCommand(): Command {
  return new Command("schema");
}
