#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests, with all their set-up: `npm test` on a fresh clone. Arguments go to vitest.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/setup.sh --tests
if [ $# = 0 ]; then
  set -- --project tests --project slow
  echo "not run here, but by npm run test:long:" test/*/*.long.test.ts
fi
exec node node_modules/vitest/vitest.mjs run "$@"
