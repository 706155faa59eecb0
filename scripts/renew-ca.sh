#!/usr/bin/env bash
# Renews the CA of a stopped stack. ./scripts/renew-ca.sh --help lists the options.
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

Renews the CA of a stopped stack. When to do it and what follows: docs/certificates.md.
In containers, only the light stack supports this.

  --new-key     create a new CA: every device must enroll again. Without this option the CA keeps its key
                and name, and device certificates keep working
  --data DIR    data directory of an embedded stack (default: the stack in containers, if .env describes one)
  --help        show this help
TEXT
}

refuse_production() {
  refuse 1 "This script can't renew the CA of a TAK Server release: several keystores of the server and its devices hold it." \
    'plan for every device to enroll again. Make a backup, stop the stack, remove certs/files/ca* from the volume core-data; then ./scripts/start.sh creates a new CA'
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
! docker compose ps --services --status running 2>/dev/null | grep -E '^(core|management)(-[0-9])?$' >/dev/null ||
  refuse 1 "Can't renew the CA while the stack is running." 'stop it with ./scripts/stop.sh, then try again'
docker compose run --rm --no-deps -T --entrypoint node core /app/dist/renew-ca.js --core-files /var/lib/holdfast/core "$@" </dev/null
