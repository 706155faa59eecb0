#!/usr/bin/env bash
# Renews the CA of an embedded stack that is stopped. ./scripts/renew-ca.sh --help lists the options.
set -euo pipefail
home=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
unset NODE_OPTIONS
node=$home/node_modules/node-linux-$([ "$(uname -m)" = aarch64 ] && echo arm64 || echo x64)/bin/node
if [ ! -x "$node" ] || [ ! -f "$home/dist/renew-ca.js" ]; then
  echo 'The programs of Holdfast are not installed here, so nothing can be renewed.' >&2
  echo '  Remedy: install them with ./scripts/start.sh --help, then try again' >&2
  exit 1
fi
exec "$node" "$home/dist/renew-ca.js" "$@"
