// SPDX-License-Identifier: Apache-2.0
export { redactError } from "./error.ts";
export type { SecretInput } from "./forms.ts";
export { LiveSecrets } from "./live.ts";
export { buildSecretSet, emptySecretSet, REDACTED, type SecretSet } from "./secret-set.ts";
export { isPlainWord, isSecretName, secretsOfEnv, secretsOfUrl } from "./sources.ts";
export { createRedactStream, findSecrets, holdsSecret } from "./stream.ts";
export { redactTail } from "./tail.ts";
export { redactText } from "./text.ts";
export { redactValue } from "./value.ts";
