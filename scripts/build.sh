#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds dist/ if a source is newer than what was built last. Exits as the build does.
set -euo pipefail
cd "$(dirname "$0")/.."
stamp=dist/.built
if [ -f "$stamp" ] && [ -z "$(find src web workers examples bench scripts package.json tsconfig.json tsconfig.build.json -newer "$stamp" -print -quit)" ]; then
  exit 0
fi
started=$(mktemp)
trap 'rm -f "$started"' EXIT
npm run --silent build
touch -r "$started" "$stamp" # what changed while it was built is newer
