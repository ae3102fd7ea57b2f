#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All tests, with all their set-up: `npm test` on a fresh clone.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/setup.sh
exec node node_modules/vitest/vitest.mjs run "$@"
