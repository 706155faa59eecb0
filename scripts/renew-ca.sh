#!/usr/bin/env bash
# Renews the CA of a stack that is stopped. ./scripts/renew-ca.sh --help lists the options.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh

usage() {
  cat <<'TEXT'
Usage: ./scripts/renew-ca.sh [--new-key] [--data DIR]

Renews the CA of a stack that is stopped; docs/certificates.md says when and what follows. In containers it is for the light
stack alone: the CA of a TAK Server release stays what it is.

  --new-key     a new CA: every device must enroll again. Without it the CA keeps its key and name, and the certificates of
                all devices go on working
  --data DIR    the directory of an embedded stack; without it the stack in containers, where .env describes one
  --help        show this text
TEXT
}

refuse_production() {
  refuse 1 'The CA of a TAK Server release is not renewed here: the server, its devices and what the vendor'\''s scripts made hold it in several keystores.' \
    'plan a new CA as a new enrollment of every device: keep a backup, remove certs/files/ca* from the volume core-data while the stack is stopped, and ./scripts/start.sh makes another one'
}

if wants_help "$@"; then
  usage
  exit 0
fi
if ! in_containers "$@"; then
  run_installed renew-ca "$@"
fi
for argument in "$@"; do
  [ "$argument" = --new-key ] || {
    usage >&2
    exit 2
  }
done
[[ :${values[COMPOSE_FILE]}: == */compose.light.yaml:* ]] || refuse_production
check_docker
check_docker_answers
[ -z "$(docker compose ps --quiet --status running core management 2>/dev/null)" ] ||
  refuse 1 'The stack runs, and its core holds the CA.' 'stop it with ./scripts/stop.sh, then try again'
docker compose run --rm --no-deps -T --entrypoint node core /app/dist/renew-ca.js --core-files /var/lib/holdfast/core "$@" </dev/null
