#!/bin/bash
# Makes a certificate of the CA: makeCert.sh ca|server|client|dbclient NAME. Made up for the tests.

. ./cert-metadata.sh
kind=$1 name=$2
case $kind in
  server) extensions=server ;;
  client | dbclient) extensions=client ;;
  ca) extensions=v3_ca ;;
  *)
    echo 'Usage: ./makeCert.sh ca|server|client|dbclient NAME' >&2
    exit 255
    ;;
esac
mkdir -p "$DIR" && cd "$DIR" || exit 1
if [ ! -e ca.pem ] || [ -z "$name" ]; then
  echo 'It takes a CA and a name.' >&2
  exit 255
fi

config=../config.cfg password=$PASS
[ "$kind" != ca ] || password=$CAPASS
if [ "$kind" = server ]; then
  config=config-$name.cfg
  field=DNS
  [[ ! $name =~ ^[0-9.]+$ ]] || field=IP
  { cat ../config.cfg && echo "subjectAltName = $field:$name"; } >"$config"
fi
openssl req -new -sha256 -newkey rsa:2048 -config ../config.cfg -subj "${SUBJBASE}CN=$name" -keyout "$name.key" -passout "pass:$password" -out "$name.csr" || exit 1
openssl x509 -req -sha256 -days 730 -in "$name.csr" -CA ca.pem -CAkey ca-do-not-share.key -passin "pass:$CAPASS" \
  -set_serial "0x$(openssl rand -hex 8)" -extfile "$config" -extensions "$extensions" -out "$name.pem" || exit 1
openssl x509 -in "$name.pem" -addtrust clientAuth -addtrust serverAuth -setalias "$name" -out "$name-trusted.pem"
cat ca.pem >>"$name.pem"
cat ca-trusted.pem >>"$name-trusted.pem"

store=$name
[ "$kind" != ca ] || store=$name-signing
openssl pkcs12 -export -in "$name.pem" -inkey "$name.key" -passin "pass:$password" -name "$name" -out "$store.p12" -passout "pass:$password"
if command -v keytool >/dev/null; then
  keytool -importkeystore -noprompt -srckeystore "$store.p12" -srcstoretype PKCS12 -srcstorepass "$password" \
    -destkeystore "$store.jks" -deststorepass "$password" -destkeypass "$password" -alias "$name"
fi
if [ "$kind" = ca ]; then
  openssl pkcs12 -export -nokeys -in "$name-trusted.pem" -caname "$name" -out "truststore-$name.p12" -passout "pass:$CAPASS"
  openssl ca -config ../config.cfg -gencrl -keyfile "$name.key" -key "$CAPASS" -cert "$name.pem" -out "$name.crl"
  read -r answer
  if [[ $answer == [yY] ]]; then
    cp "$name.pem" ca.pem
    cp "$name.key" ca-do-not-share.key
    cp "$name-trusted.pem" ca-trusted.pem
  fi
fi
chmod og-rwx "$name.key"
