#!/usr/bin/env bash
# Frees an address that was locked after too many wrong passwords. ./scripts/unlock.sh --help lists the options.
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

Frees an address that may not try a password now, at every door of the portal, the monitor and the API.

  --list        show the addresses that are locked
  --data DIR    the directory of a running embedded stack; without it the stack in containers, where .env describes one
  --help        show this text
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
