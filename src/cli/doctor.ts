// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
export function doctorCommand(_set: (code: number) => void): Command {
  return new Command("doctor");
}
