#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything a fresh clone needs: npm packages as locked, a Redis (or Valkey) server, the build. Safe to run again.
# With --tests also what some tests need: a python3 (one of the examples), promtool (metrics and alert rules), a Chromium (the pages),
# libfaketime (clocks that jump).
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*"; }

node -e 'const [a,b]=process.versions.node.split(".").map(Number); if (a<20||(a===20&&b<19)) { console.error(`setup: Node ${process.versions.node} is too old: Rollcall needs 20.19 or newer`); process.exit(1); }'

# The lock file's digest is kept beside what was installed, so that an unchanged tree is not installed again.
stamp=node_modules/.rollcall-lock
lock=$(node -e 'console.log(require("crypto").createHash("sha256").update(require("fs").readFileSync("package-lock.json")).digest("hex"))')
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$lock" ]; then
  say "installing npm packages (about 1 GB: two Codex versions)"
  npm ci
  printf '%s' "$lock" >"$stamp"
fi

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo -n "$@"; else return 1; fi
}

# For packages that would start a server of their own; a policy file keeps them from doing so.
apt_install_stopped() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null &&
    as_root sh -c '[ -e /usr/sbin/policy-rc.d ] || { printf "#!/bin/sh\nexit 101\n" >/usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d; touch /usr/sbin/policy-rc.d.rollcall; }
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null; status=$?
      if [ -e /usr/sbin/policy-rc.d.rollcall ]; then rm -f /usr/sbin/policy-rc.d /usr/sbin/policy-rc.d.rollcall; fi; exit $status' sh "$1"
}

install_redis() {
  if command -v apt-get >/dev/null; then apt_install_stopped redis-server
  elif command -v dnf >/dev/null; then as_root dnf install -y -q valkey || as_root dnf install -y -q redis
  elif command -v apk >/dev/null; then as_root apk add -q valkey || as_root apk add -q redis
  elif command -v pacman >/dev/null; then as_root pacman -S --noconfirm --needed valkey
  elif command -v zypper >/dev/null; then as_root zypper -nq install redis
  elif command -v brew >/dev/null; then brew install -q redis
  else return 1
  fi
}

if ! command -v redis-server >/dev/null && ! command -v valkey-server >/dev/null; then
  say "no redis-server and no valkey-server on PATH: installing one through the system's package manager"
  install_redis || {
    say "could not install it (not root, no password-less sudo, or no known package manager)."
    say "install redis-server or valkey-server by hand (Debian, Ubuntu: sudo apt-get install redis-server), or set REDIS_URL"
    exit 1
  }
fi

# Debian's python3-minimal lacks modules that the example imports.
has_python() { python3 -c 'import hashlib, json, sqlite3, urllib.request' 2>/dev/null; }

install_python() {
  if command -v apt-get >/dev/null; then
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null &&
      as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 >/dev/null
  elif command -v dnf >/dev/null; then as_root dnf install -y -q python3
  elif command -v apk >/dev/null; then as_root apk add -q python3
  elif command -v pacman >/dev/null; then as_root pacman -S --noconfirm --needed python
  elif command -v zypper >/dev/null; then as_root zypper -nq install python3
  elif command -v brew >/dev/null; then brew install -q python3
  else return 1
  fi
}

if [ "${1:-}" = --tests ] && ! has_python; then
  say "no python3 with its standard library on PATH: installing it through the system's package manager"
  install_python || say "could not install it: the test of examples/orchestrator.py will fail. Install it by hand (Debian, Ubuntu: sudo apt-get install python3)"
fi

install_promtool() {
  if command -v apt-get >/dev/null; then apt_install_stopped prometheus
  elif command -v dnf >/dev/null; then as_root dnf install -y -q golang-github-prometheus
  elif command -v apk >/dev/null; then as_root apk add -q prometheus
  elif command -v pacman >/dev/null; then as_root pacman -S --noconfirm --needed prometheus
  elif command -v brew >/dev/null; then brew install -q prometheus
  else return 1
  fi
}

install_chromium() {
  if command -v apt-get >/dev/null; then
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >/dev/null &&
      as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
  elif command -v dnf >/dev/null; then as_root dnf install -y -q chromium dejavu-sans-fonts
  elif command -v apk >/dev/null; then as_root apk add -q chromium font-dejavu
  elif command -v pacman >/dev/null; then as_root pacman -S --noconfirm --needed chromium ttf-dejavu
  elif command -v zypper >/dev/null; then as_root zypper -nq install chromium dejavu-fonts
  else return 1
  fi
}

install_faketime() {
  if command -v apt-get >/dev/null; then apt_install_stopped faketime
  elif command -v dnf >/dev/null; then as_root dnf install -y -q libfaketime
  elif command -v pacman >/dev/null; then as_root pacman -S --noconfirm --needed libfaketime
  elif command -v zypper >/dev/null; then as_root zypper -nq install libfaketime
  else return 1
  fi
}

if [ "${1:-}" = --tests ] && ! command -v promtool >/dev/null; then
  say "no promtool on PATH: installing it through the system's package manager (22 MB)"
  install_promtool || say "could not install it: the tests of metrics and alert rules will fail. Install it by hand (Debian, Ubuntu: sudo apt-get install prometheus)"
fi

if [ "${1:-}" = --tests ] && ! ls /usr/lib*/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1; then
  say "no libfaketime: installing it through the system's package manager"
  install_faketime || say "could not install it: clock jumps will not be tested. Install it by hand (Debian, Ubuntu: sudo apt-get install faketime)"
fi

if [ "${1:-}" = --tests ] && ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null && ! command -v google-chrome >/dev/null; then
  say "no Chromium on PATH: installing it through the system's package manager (about 300 MB)"
  install_chromium || say "could not install it: the test of the pages will fail. Install it by hand (Debian: sudo apt-get install chromium)"
fi

if [ ! -f dist/.built ]; then say "building"; fi
bash scripts/build.sh
