#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job, from nothing: set-up, then a batch of real Codex sessions (examples/quickstart.ts).
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/setup.sh
exec node dist/examples/quickstart.js "$@"
