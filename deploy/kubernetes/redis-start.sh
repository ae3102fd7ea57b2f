#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Starts Valkey or Redis for Rollcall: one user, who may use its keys and channels only. The configuration comes on stdin and has the
# password's hash, so that neither is in the arguments or on a disk.
set -eu
file=${REDIS_PASSWORD_FILE:-/run/secrets/redis_password}
hash=$(tr -d '\r\n' <"$file" | sha256sum | cut -d ' ' -f 1)
[ -s "$file" ] || { echo "$file is empty: expected the password of the user rollcall" >&2; exit 1; }
server=$(command -v valkey-server || command -v redis-server)

exec "$server" - <<EOC
dir ${REDIS_DATA_DIR:-/data}
port ${REDIS_PORT:-6379}
bind * -::*
# Every change is on disk before it is acknowledged, and nothing is thrown away when memory is short.
appendonly yes
appendfsync always
save ""
maxmemory ${REDIS_MAXMEMORY:-768mb}
maxmemory-policy noeviction
user default off
user rollcall on #$hash ~{rollcall}:* &{rollcall}:* +@all -@admin -@dangerous +info +client|list
EOC
