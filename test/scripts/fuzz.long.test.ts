// SPDX-License-Identifier: Apache-2.0
import { it } from "vitest";
import { expectFound } from "./planted-fault.ts";

it.each(["redactor", "stream"] as const)("finds a fault planted in the %s within seconds, and the same case again [R42]", (plant) =>
  expectFound(plant),
);
