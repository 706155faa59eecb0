#!/usr/bin/env bash
# Upgrades Holdfast with a way back. ./scripts/upgrade.sh --help lists the options.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
home=$PWD
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh
readonly CONTINUE=42
unset NODE_OPTIONS

# Runs the program that no step of an upgrade moves.
updater() { # ARGUMENTS
  cd "$called_from"
  exec "$home/.upgrade/updater/node" "$home/.upgrade/updater/dist/upgrade.js" "$@" --home "$home"
}

if wants_help "$@" && in_containers "$@"; then
  # shellcheck source=scripts/upgrade-containers.sh
  source scripts/upgrade-containers.sh
  usage_of_upgrade
  exit 0
fi
[ -w . ] || refuse 1 "Couldn't upgrade: this user can't write to $home." 'run this as the owner of the directory'
mkdir -p .upgrade
exec 7>.upgrade/lock
flock -n 7 || refuse 1 'Another upgrade of this installation is running.' 'wait until it has ended'
if [ ! -f .upgrade/journal.json ] && in_containers "$@"; then
  # shellcheck source=scripts/upgrade-containers.sh
  source scripts/upgrade-containers.sh
  upgrade_containers "$@"
  exit 0
fi
if [ "${1:-}" = recover ] && [ ! -f .upgrade/journal.json ]; then exit 0; fi
if [ -f .upgrade/journal.json ]; then
  [ "${1:-}" != recover ] || updater "$@"
  (updater recover) || exit
fi
# shellcheck source=scripts/install.sh
source scripts/install.sh
prepare_holdfast
cd "$called_from"
code=0
"$home/$NODE" "$home/dist/upgrade.js" "$@" || code=$?
[ "$code" -eq "$CONTINUE" ] || exit "$code"
updater continue
