#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real S3 server for the tests: Ceph's gateway with one monitor and one storage daemon (Debian, Ubuntu; 60 MB). Without it
# they are skipped, except in CI.
set -euo pipefail
if [ "$(command -v radosgw ceph-mon ceph-osd | wc -l)" = 3 ]; then exit 0; fi
echo "setup: installing Ceph's S3 gateway"
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
as_root apt-get update -qq >/dev/null
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends radosgw ceph-mon ceph-osd >/dev/null
