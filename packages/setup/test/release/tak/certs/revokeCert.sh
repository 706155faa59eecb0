#!/bin/bash
# Revokes a certificate and writes the list anew: revokeCert.sh CERTIFICATE CA-KEY CA-CERTIFICATE, without extensions. It opens
# the key of the CA with PASS. Made up for the tests.

. ./cert-metadata.sh
if [ $# -lt 3 ]; then
  echo 'Usage: ./revokeCert.sh CERTIFICATE CA-KEY CA-CERTIFICATE' >&2
  exit 1
fi
mkdir -p "$DIR" && cd "$DIR" || exit 1
touch crl_index.txt crl_index.txt.attr
sed '/^$/d' "$1.pem" >"$1-revoke.pem"
openssl ca -config ../config.cfg -revoke "$1-revoke.pem" -keyfile "$2.key" -key "$PASS" -cert "$3.pem"
openssl ca -config ../config.cfg -gencrl -keyfile "$2.key" -key "$PASS" -cert "$3.pem" -out "$3.crl"
rm -f "$1-revoke.pem"
