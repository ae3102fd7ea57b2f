// SPDX-License-Identifier: Apache-2.0
import { isUsableServerName, type McpGrant, type ToolGrant } from "../grant.ts";
import { configTextRefusals, refusal, type Refusal } from "./refusal.ts";

/** What is wrong with the grants; a hole stands for one that did not parse. */
export function grantRefusals(grants: readonly (ToolGrant | undefined)[]): Refusal[] {
  const found: Refusal[] = [];
  const firstOfName = new Map<string, number>();
  for (const [index, grant] of grants.entries()) {
    if (grant === undefined) continue;
    const path = `tool_grants[${index}]`;
    const first = firstOfName.get(grant.name);
    if (first === undefined) firstOfName.set(grant.name, index);
    else
      found.push(
        refusal("grant_name_duplicate", `${path}.name`, `${named(grant)} has the same name as tool_grants[${first}]`, "a name of its own"),
      );
    if (grant.type === "direct_http") {
      found.push(...checkRefusals(grant, path));
      if (grant.required) {
        found.push(
          refusal(
            "grant_required_direct_http",
            path,
            `${named(grant)} is a required direct_http grant, which Codex cannot use`,
            'type "mcp", or required: false to have it left out',
          ),
        );
      }
      continue;
    }
    if (grant.required && !isUsableServerName(grant.name)) {
      found.push(
        refusal(
          "grant_name_unusable",
          `${path}.name`,
          `${named(grant)} is required and has a name that Codex cannot use`,
          "letters, digits, underscore and hyphen ([A-Za-z0-9_-]+), or required: false to have it left out",
        ),
      );
    }
    found.push(...connectionRefusals(grant.connection, `${path}.connection`));
  }
  return found;
}

/** Where the worker cannot connect for Codex, it must not look as if it had. */
function checkRefusals(grant: ToolGrant, path: string): Refusal[] {
  const fields = (["expected_tools", "preflight"] as const).filter((field) => grant[field] !== undefined);
  return fields.map((field) => refusal("invalid_field", `${path}.${field}`, `only "mcp" grants are checked`, "leave the field out"));
}

function connectionRefusals(connection: McpGrant["connection"], path: string): Refusal[] {
  if (connection.transport === "stdio") {
    const texts: [string, string][] = [
      ["command", connection.command],
      ...connection.args.map((arg, index): [string, string] => [`args[${index}]`, arg]),
      ...Object.entries(connection.env).flatMap(([name, value]): [string, string][] => [
        [`env (a name)`, name],
        [`env.${name}`, value],
      ]),
      ...(connection.cwd === null ? [] : [["cwd", connection.cwd] as [string, string]]),
    ];
    const badNames = Object.keys(connection.env).filter((name) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
    return [
      ...badNames.map((name) =>
        refusal("invalid_field", `${path}.env`, `${JSON.stringify(name.slice(0, 80))} is not a variable name`, "[A-Za-z_][A-Za-z0-9_]*"),
      ),
      ...texts.flatMap(([field, text]) => configTextRefusals(`${path}.${field}`, text)),
    ];
  }
  return Object.entries(connection.headers).flatMap(([name, value]) => {
    const found: Refusal[] = [];
    // Codex 0.144.4 drops a header with a bad name or value without a word; the server then answers 401.
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)) {
      found.push(
        refusal(
          "grant_header_invalid",
          `${path}.headers`,
          `${JSON.stringify(name.slice(0, 80))} is not an HTTP header name`,
          "an HTTP token (RFC 9110)",
        ),
      );
    }
    if (!/^[\t\x20-\x7e]*$/.test(value)) {
      found.push(
        refusal(
          "grant_header_invalid",
          `${path}.headers.${name.slice(0, 80)}`,
          "the value holds a character that HTTP forbids or Codex drops",
          "visible ASCII, blanks and tabs",
        ),
      );
    }
    return found;
  });
}

function named(grant: ToolGrant): string {
  return `the grant ${JSON.stringify(grant.name.slice(0, 80))}`;
}
