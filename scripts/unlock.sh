#!/usr/bin/env bash
# Ends the lockout of an address after too many wrong passwords. ./scripts/unlock.sh --help lists
# the options.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh

usage() {
  cat <<'TEXT'
Usage: ./scripts/unlock.sh ADDRESS [--data DIR]
       ./scripts/unlock.sh --list [--data DIR]

Ends the lockout of an address everywhere: in the portal, the console and the API.

  --list        show locked-out addresses
  --data DIR    data directory of a running embedded stack (default: the stack in containers, if .env
                describes one)
  --help        show this help
TEXT
}

if wants_help "$@"; then
  usage
  exit 0
fi
if in_containers "$@"; then
  if [ $# -ne 1 ] || { [[ $1 == -* ]] && [ "$1" != --list ]; }; then
    usage >&2
    exit 2
  fi
  check_docker
  check_management_runs
  in_management unlock "$@"
else
  run_installed unlock "$@"
fi
