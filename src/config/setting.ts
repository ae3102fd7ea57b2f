// SPDX-License-Identifier: Apache-2.0
import { z } from "zod";

/** What the documentation says about one setting. */
export interface SettingMeta {
  /** What it is, its unit, and why the default is what it is. */
  description: string;
  /** The variable that sets it too; it wins over the file. */
  env?: string;
  /** Shown instead of the value when the default is worked out. */
  defaultText?: string;
}

const documented = z.registry<SettingMeta>();

/** Documents a setting where it is declared. */
export function setting<S extends z.ZodType>(schema: S, meta: SettingMeta): S {
  documented.add(schema, meta);
  return schema;
}

/** The documentation of one setting; undefined for a table of settings. */
export function settingMeta(schema: z.ZodType): SettingMeta | undefined {
  return documented.get(schema);
}
