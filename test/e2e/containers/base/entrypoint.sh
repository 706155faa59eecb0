#!/bin/bash
# Starts Node-RED as the public image does.
# shellcheck disable=SC2086 # words of their own, as in the public image
trap 'kill -TERM "$child"; wait "$child"' TERM
/usr/local/bin/node $NODE_OPTIONS node_modules/node-red/red.js --userDir /data $FLOWS "$@" &
child=$!
wait "$child"
