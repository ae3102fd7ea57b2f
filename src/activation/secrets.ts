// SPDX-License-Identifier: Apache-2.0
import type { SessionActivation } from "../contract/activation.ts";
import { isPlainWord, secretsOfEnv, secretsOfUrl, type SecretInput } from "../redact/index.ts";

/**
 * Everything of an activation that must not be seen again: header values, cookies, stdio env values, secret sandbox
 * variables, the model's key, and what a URL carries in its user info and query.
 */
export function secretsOf(activation: SessionActivation, modelKey: string): SecretInput[] {
  return [
    ...activation.tool_grants.flatMap((grant) => {
      if (grant.type === "direct_http") {
        return [...named(grant.headers), ...named(grant.cookies), ...secretsOfUrl(grant.base_url)];
      }
      const { connection } = grant;
      return connection.transport === "stdio"
        ? named(connection.env).filter(({ value }) => !isPlainWord(value))
        : [...named(connection.headers), ...secretsOfUrl(connection.url)];
    }),
    ...secretsOfEnv(activation.sandbox.env),
    ...(activation.model.base_url === undefined ? [] : secretsOfUrl(activation.model.base_url)),
    { name: "OPENAI_API_KEY", value: modelKey },
  ].filter(({ value }) => value !== "");
}

function named(values: Readonly<Record<string, string>>): SecretInput[] {
  return Object.entries(values).map(([name, value]) => ({ name, value }));
}
