#!/usr/bin/env bash
# Verifies or prunes the audit log. ./scripts/audit.sh --help lists the options.
set -euo pipefail
home=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
unset NODE_OPTIONS
node=$home/node_modules/node-linux-$([ "$(uname -m)" = aarch64 ] && echo arm64 || echo x64)/bin/node
if [ ! -x "$node" ] || [ ! -f "$home/dist/audit.js" ]; then
  echo 'The programs of Holdfast are not installed here, so nothing can be looked at.' >&2
  echo '  Remedy: install them with ./scripts/start.sh --help, then try again' >&2
  exit 1
fi
exec "$node" "$home/dist/audit.js" "$@"
