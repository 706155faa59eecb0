#!/usr/bin/env bash
# Stops an embedded stack: ./scripts/stop.sh --data DIR
set -euo pipefail
home=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
unset NODE_OPTIONS
node=$home/node_modules/node-linux-$([ "$(uname -m)" = aarch64 ] && echo arm64 || echo x64)/bin/node
if [ ! -x "$node" ] || [ ! -f "$home/dist/stop.js" ]; then
  echo 'The programs of Holdfast are not installed here, so nothing can be looked up or stopped.' >&2
  echo '  Remedy: install them with ./scripts/start.sh --help, then stop again; or end the supervisor named in DIR/stack.json' >&2
  exit 1
fi
exec "$node" "$home/dist/stop.js" "$@"
