// SPDX-License-Identifier: Apache-2.0
import { leaves } from "./load.ts";
import { settingMeta } from "./setting.ts";
import { settingsSchema } from "./settings.ts";

/** docs/settings.md: every setting with its default, variable and reason. */
export function settingsPage(): string {
  const defaults = settingsSchema.parse({ state_dir: "x" }) as Record<string, unknown>;
  const rows = [...leaves(settingsSchema.shape, [])].map(({ path, schema }) => {
    const meta = settingMeta(schema);
    if (meta === undefined) throw new Error(`the setting ${path.join(".")} has no description`);
    const value = path.reduce<unknown>((inner, key) => (inner as Record<string, unknown>)[key], defaults);
    return `| \`${path.join(".")}\` | ${meta.defaultText ?? `\`${JSON.stringify(value)}\``} | ${meta.env ?? ""} | ${meta.description} |`;
  });
  return `# Settings

Made from src/config/; a test fails when the two differ (\`npx vitest run test/config -u\` writes it again).

A setting comes from, the last one winning: its default, \`rollcall.toml\` (\`--config FILE\`), its variable, a flag. \`a.b\` is \`b\` in the table
\`[a]\`. Unknown names are refused. What a row of the task file says itself wins over all of them.

Only from the environment:

- \`ROLLCALL_SECRET_KEY\`: the deployment's keys, separated by commas; the first one seals, all of them open. Needed with REDIS_URL; an
  embedded server makes its own.
- \`REDIS_PASSWORD\`: for a REDIS_URL that holds none.
- \`ROLLCALL_API_KEY\`: one key of the API, with all rights: for \`serve\`, and for commands with \`--server\`.
- the variable that \`model.api_key_env\` names, and those of \`allow_key_env\`: model keys.

Each of these, and REDIS_URL, may be in a file instead: \`NAME_FILE\` is its path (\`ROLLCALL_SECRET_KEY_FILE=/run/secrets/secret_key\`). The entry
points in \`dist/workers/\` take the path of \`rollcall.toml\` from \`ROLLCALL_CONFIG\`.

| setting | default | variable | what and why |
|---|---|---|---|
${rows.join("\n")}
`;
}
