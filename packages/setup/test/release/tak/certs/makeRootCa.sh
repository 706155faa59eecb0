#!/bin/bash
# Makes the CA, its copies, truststores and an empty list of revoked certificates. Made up for the tests.

. ./cert-metadata.sh
name=''
[ "$1" != --ca-name ] || name=$2
[ ${#name} -ge 5 ] || name=$(date +%N)

mkdir -p "$DIR" && cd "$DIR" || exit 1
if [ -e ca.pem ]; then
  echo 'There is a ca.pem already: nothing was made.' >&2
  exit 255
fi

openssl req -new -x509 -sha256 -days 3652 -newkey rsa:2048 -extensions v3_ca -config ../config.cfg -subj "${SUBJBASE}CN=$name" \
  -keyout ca-do-not-share.key -passout "pass:$CAPASS" -out ca.pem || exit 1
openssl x509 -in ca.pem -addtrust clientAuth -addtrust serverAuth -setalias "$name" -out ca-trusted.pem
for copy in ca.pem ca-trusted.pem ca-do-not-share.key; do cp "$copy" "root-$copy"; done
openssl pkcs12 -export -nokeys -in ca-trusted.pem -caname "$name" -out truststore-root.p12 -passout "pass:$CAPASS"
if command -v keytool >/dev/null; then
  for store in truststore-root.jks fed-truststore.jks; do
    keytool -importcert -noprompt -trustcacerts -alias "$name" -file ca.pem -keystore "$store" -storepass "$CAPASS"
  done
fi
touch crl_index.txt crl_index.txt.attr
openssl ca -config ../config.cfg -gencrl -keyfile ca-do-not-share.key -key "$CAPASS" -cert ca.pem -out ca.crl
chmod og-rwx ca-do-not-share.key root-ca-do-not-share.key
