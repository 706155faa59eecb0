#!/bin/sh
# Starts the flow engine in its container. Its secrets reach it by descriptor 3: whatever stands in
# its environment, every flow can read.
set -eu

exec 3<<END
${FLOWS_TOKEN:-}
${FLOWS_CREDENTIAL_KEY:-}
${FLOWS_PASSWORD:-}
END
unset FLOWS_TOKEN FLOWS_CREDENTIAL_KEY FLOWS_PASSWORD
export HOLDFAST_FLOWS_SECRETS=3
exec node "${NODE_RED_HOME:-/usr/src/node-red/node_modules/node-red}/red.js" --settings "$(dirname "$0")/settings.js"
