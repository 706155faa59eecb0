#!/usr/bin/env bash
# Connects simulated clients in a channel of their own, and reports. ./scripts/simulate.sh --help
# lists the options.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh

run_installed simulate "$@"
