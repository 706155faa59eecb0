#!/usr/bin/env bash
# Verifies or prunes the audit log. ./scripts/audit.sh --help lists the options.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh
if [ -z "${DATABASE_URL:-}" ] && in_containers "$@"; then
  check_docker
  check_management_runs
  in_management audit "$@"
else
  run_installed audit "$@"
fi
