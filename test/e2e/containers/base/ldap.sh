#!/bin/sh
# The LDAP outpost, and its health check.
exec node --no-warnings /opt/stand-in/authentik.mjs "ldap${1:+-$1}"
