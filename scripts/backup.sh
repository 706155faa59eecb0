#!/usr/bin/env bash
# Makes a backup of a running stack. ./scripts/backup.sh --help lists the options.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh
if ! wants_help "$@" && in_containers "$@"; then
  refuse 1 'This release backs up embedded stacks only.' 'for an embedded stack: ./scripts/backup.sh --data DIR'
fi
# The copy makes much garbage of a short life, which would take 50 MB more.
export MALLOC_ARENA_MAX=1
node_flags=(--max-semi-space-size=2)
run_installed backup "$@"
