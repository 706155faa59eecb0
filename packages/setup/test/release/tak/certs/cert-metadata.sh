#!/bin/bash
# What every certificate says of its owner, from the environment. Made up for the tests.
# shellcheck disable=SC2034 # read by the scripts that source this

COUNTRY=${COUNTRY:-US}
ORGANIZATION=${ORGANIZATION:-TAK}
CAPASS=${CAPASS:-atakatak}
PASS=${PASS:-$CAPASS}

if [ -z "$STATE" ] || [ -z "$CITY" ] || [ -z "$ORGANIZATIONAL_UNIT" ]; then
  echo 'STATE, CITY and ORGANIZATIONAL_UNIT have to be set before certificates are made.' >&2
  exit 255
fi
DIR=files
SUBJBASE="/C=$COUNTRY/ST=$STATE/L=$CITY/O=$ORGANIZATION/OU=$ORGANIZATIONAL_UNIT/"
