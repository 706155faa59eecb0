#!/usr/bin/env bash
# Stops an embedded stack: ./scripts/stop.sh --data DIR
set -euo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
node=$home/node_modules/node-linux-$([ "$(uname -m)" = aarch64 ] && echo arm64 || echo x64)/bin/node
if [ ! -x "$node" ] || [ ! -f "$home/dist/stop.js" ]; then
  echo 'Holdfast is not installed here, so nothing of it runs. Remedy: start it with ./scripts/start.sh --embedded' >&2
  exit 1
fi
exec "$node" "$home/dist/stop.js" "$@"
