#!/usr/bin/env bash
# Prints one page with all that is needed to restore the stack elsewhere.
# ./scripts/emergency-sheet.sh --help lists the options.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh

usage() {
  cat <<'TEXT'
Usage: ./scripts/emergency-sheet.sh [--data DIR]

Prints one page to keep where you find it without the server: address, where backups are, how to get
their key, and the command that restores one. It never contains the key itself.

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
  if [ $# -ne 0 ]; then
    usage >&2
    exit 2
  fi
  check_docker
  check_management_runs
  in_management emergency-sheet
else
  run_installed emergency-sheet "$@"
fi
