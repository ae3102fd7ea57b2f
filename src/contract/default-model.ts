// SPDX-License-Identifier: Apache-2.0
import type { SessionActivation } from "./activation.ts";

/** The model that a configuration names. */
export interface DefaultModel {
  name?: string | undefined;
  base_url?: string | undefined;
}

/**
 * An activation that names no model server goes to the configured one: its prompt is sent to no host that nobody named. A model's name
 * without a server's is a name at that server. Pure.
 */
export function withDefaultModel(activation: SessionActivation, { name, base_url }: DefaultModel): SessionActivation {
  const { model } = activation;
  if (model.base_url !== undefined || base_url === undefined) return activation;
  return { ...activation, model: { ...model, base_url, ...((model.name ?? name) === undefined ? {} : { name: model.name ?? name }) } };
}
