// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { serveOnLoopback } from "../../examples/stand-ins/loopback.ts";
import { codexPlatform } from "../../src/codex/package-trees.ts";
import { placeFakeCodex } from "./fake-codex-binary.ts";
import { tempDir } from "./temp-dir.ts";

/** A package that the registry has: published as `version`, its binary says that it is `says`, the registry that its digest is `claims`. */
export interface PublishedCodex {
  version: string;
  says?: string;
  claims?: string;
}

/** An npm registry on loopback with small Codex packages of this platform. `env` has npm use it, with a cache of its own. */
export async function codexRegistry(
  ...published: PublishedCodex[]
): Promise<{ env: Record<string, string>; integrities: Record<string, string>; fetched: () => number }> {
  const root = tempDir();
  const tarballs = new Map<string, Buffer>();
  for (const { version, says = version } of published) {
    const tree = join(root, version, "package", "vendor", codexPlatform()!.triple);
    placeFakeCodex(join(tree, "bin"), "exit 9\n", says);
    writeFileSync(join(tree, "codex-package.json"), "{}");
    mkdirSync(join(tree, "codex-path"));
    const manifest = { name: "@openai/codex", version: publishedAs(version), files: ["vendor"] };
    writeFileSync(join(root, version, "package", "package.json"), JSON.stringify(manifest));
    execFileSync("tar", ["-czf", join(root, `${version}.tgz`), "-C", join(root, version), "package"]);
    tarballs.set(version, readFileSync(join(root, `${version}.tgz`)));
  }
  const integrityOf = (bytes: Buffer): string => `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  let fetched = 0;
  const server = await serveOnLoopback((request, response) => {
    const version = /([\d.]+)\.tgz$/.exec(request.url ?? "")?.[1];
    if (version !== undefined) {
      fetched += 1;
      response.end(tarballs.get(version));
      return;
    }
    const versions = [...tarballs].map(([name, bytes]) => [
      publishedAs(name),
      {
        name: "@openai/codex",
        version: publishedAs(name),
        dist: {
          integrity: published.find(({ version }) => version === name)?.claims ?? integrityOf(bytes),
          tarball: `${server.origin}/${name}.tgz`,
        },
      },
    ]);
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ name: "@openai/codex", "dist-tags": {}, versions: Object.fromEntries(versions) }));
  });
  onTestFinished(() => server.close());
  return {
    env: { npm_config_registry: server.origin, npm_config_cache: join(root, "cache") },
    integrities: Object.fromEntries([...tarballs].map(([version, bytes]) => [version, integrityOf(bytes)])),
    fetched: () => fetched,
  };
}

function publishedAs(version: string): string {
  return `${version}-${codexPlatform()!.id}`;
}
