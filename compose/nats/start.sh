#!/bin/sh
# Starts NATS once the first core node has issued its certificate, and reloads it when another one
# takes its place.
set -eu
certificate=/certificate

until [ -r "$certificate/server.pem" ] && [ -r "$certificate/server.key" ]; do
  [ -n "${waited:-}" ] || echo 'NATS waits for its certificate, which the first core node issues.'
  waited=yes
  sleep 1
done

# The password has only letters, digits and . _ -
cat >/tmp/nats.conf <<END
server_name: holdfast
host: "0.0.0.0"
port: 4222
http: "127.0.0.1:8222"
tls { cert_file: "$certificate/server.pem", key_file: "$certificate/server.key", timeout: 5 }
authorization { user: "core", password: "$NATS_PASSWORD", timeout: 5 }
max_payload: 1MB
ping_interval: "5s"
END

sum() { cksum <"$certificate/server.pem"; }

watch() { # PROCESS
  shown=$(sum)
  while sleep 60; do
    now=$(sum) || continue
    [ "$now" = "$shown" ] || kill -HUP "$1"
    shown=$now
  done
}

watch $$ &
unset NATS_PASSWORD
exec nats-server -c /tmp/nats.conf
