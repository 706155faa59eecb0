#!/bin/sh
# authentik's own command: server, worker, healthcheck.
exec node --no-warnings /opt/stand-in/authentik.mjs "$@"
