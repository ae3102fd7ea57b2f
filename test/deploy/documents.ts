// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse, parseAllDocuments } from "yaml";

type Json = any; // oxlint-disable-line no-explicit-any -- tests say what they expect

export function textOf(path: string): string {
  return readFileSync(pathOf(path), "utf8");
}

export function pathOf(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}

/** docker-compose.yml with its merge keys resolved, as compose itself reads it. */
export function composeFile(): Json {
  return parse(textOf("docker-compose.yml"), { merge: true });
}

export function kustomization(): Json {
  return parse(textOf("deploy/kubernetes/kustomization.yaml"));
}

/** Every object of the manifests that kustomization.yaml names. */
export function manifests(): Json[] {
  return (kustomization().resources as string[]).flatMap((file) =>
    parseAllDocuments(textOf(`deploy/kubernetes/${file}`)).map((document) => document.toJS()),
  );
}

/** What runs in the cluster: the pod and its one container, by the object's name. */
export function pods(): { name: string; pod: Json; container: Json }[] {
  return manifests()
    .filter(({ kind }) => kind === "Deployment" || kind === "StatefulSet")
    .map(({ metadata, spec }) => ({ name: metadata.name, pod: spec.template.spec, container: spec.template.spec.containers[0] }));
}

export const UNITS = ["deploy/systemd/rollcall-worker@.service", "deploy/systemd/rollcall-api.service"];

/** A unit's directives, each with all its values in order. */
export function unit(path: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of textOf(path).split("\n")) {
    const [, name, value] = /^([A-Z][A-Za-z]+)=(.*)$/.exec(line) ?? [];
    if (name !== undefined) found.set(name, [...(found.get(name) ?? []), value!]);
  }
  return found;
}

/** The variables that a unit sets. */
export function unitEnvironment(path: string): Map<string, string> {
  const words = (unit(path).get("Environment") ?? []).flatMap((line) => line.split(" "));
  return new Map(words.map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]));
}
