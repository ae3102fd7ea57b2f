// SPDX-License-Identifier: Apache-2.0
// Completes package-lock.json after `npm install` (use `npm run lock`): npm leaves out optional platform packages that it cannot
// resolve or place here, and `npm ci` then refuses the file. Writes one entry per platform for both Codex versions; the digest
// comes from the registry where it is known, and npm checks it on the platform that installs the package. The digests go into
// src/codex/integrity.ts, too, for `rollcall codex install` where there is no lock file.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const PLATFORMS = ["darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64", "win32-arm64", "win32-x64"];
const AT = [
  { codex: "node_modules/@openai/codex", platforms: "node_modules/@openai/codex-" },
  { codex: "node_modules/codex-0.144.4", platforms: "node_modules/codex-0.144.4/node_modules/@openai/codex-" },
];

const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
const integrities = {};
for (const { codex, platforms } of AT) {
  const { version, dev } = lock.packages[codex];
  integrities[version] = {};
  for (const platform of PLATFORMS) {
    const [os, cpu] = platform.split("-");
    const integrity = integrityOf(`@openai/codex@${version}-${platform}`);
    if (integrity !== null) integrities[version][platform] = integrity;
    lock.packages[platforms + platform] = {
      name: "@openai/codex",
      version: `${version}-${platform}`,
      ...(integrity === null ? {} : { integrity }),
      cpu: [cpu],
      ...(dev ? { dev } : {}),
      license: "Apache-2.0",
      optional: true,
      os: [os],
      engines: { node: ">=16" },
    };
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync("package-lock.json", `${JSON.stringify(lock, null, 2)}\n`);
writeFileSync(
  "src/codex/integrity.ts",
  `// SPDX-License-Identifier: Apache-2.0

/** npm's digests of the platform packages, by version and platform, as in package-lock.json: \`npm run lock\` writes both. */
export const CODEX_INTEGRITY: Readonly<Record<string, Readonly<Record<string, string>>>> = ${JSON.stringify(integrities, null, 2)};
`,
);
execFileSync("npx", ["oxfmt", "src/codex/integrity.ts"], { stdio: "inherit" });

function integrityOf(spec) {
  try {
    return execFileSync("npm", ["view", spec, "dist.integrity"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim() || null;
  } catch {
    return null; // not served by this registry
  }
}
