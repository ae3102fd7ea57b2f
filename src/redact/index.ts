// SPDX-License-Identifier: Apache-2.0
export type { SecretInput } from "./forms.ts";
export { LiveSecrets } from "./live.ts";
export { buildSecretSet, emptySecretSet, REDACTED, type SecretSet } from "./secret-set.ts";
export { isPlainWord, isSecretName, secretsOfEnv, secretsOfUrl, type EnvValue } from "./sources.ts";
export { createRedactStream, findSecrets } from "./stream.ts";
export { redactTail, type TailOptions } from "./tail.ts";
export { redactText, type TextOptions } from "./text.ts";
export { redactValue } from "./value.ts";
