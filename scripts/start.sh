#!/usr/bin/env bash
# Starts Holdfast in containers, or without them (--embedded). ./scripts/start.sh --help lists the
# options.
set -euo pipefail
called_from=$PWD
unset NODE_OPTIONS
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
is_embedded=no node_flags=()
for argument in "$@"; do
  case $argument in
    --embedded) is_embedded=yes ;;
    --restore | --restore=*)
      # A restore makes much garbage of a short life, which would take 90 MB more.
      export MALLOC_ARENA_MAX=1
      node_flags=(--max-semi-space-size=2)
      ;;
  esac
done
if [ "$is_embedded" = no ]; then
  # shellcheck source=scripts/docker.sh
  source scripts/docker.sh
  # shellcheck source=scripts/programs.sh
  source scripts/programs.sh
  # shellcheck source=scripts/start-containers.sh
  source scripts/start-containers.sh
  if [ -f .upgrade/containers ] && [ -z "${HOLDFAST_UPGRADE:-}" ]; then
    refuse 1 'An upgrade was interrupted.' 'finish it first: ./scripts/upgrade.sh recover'
  fi
  start_containers "$@"
  exit 0
fi
# An interrupted upgrade left the data or the programs half changed.
if [ -f .upgrade/journal.json ] && [ -z "${HOLDFAST_UPGRADE:-}" ]; then
  scripts/upgrade.sh recover --leave-stopped || [ ! -f .upgrade/journal.json ] || exit 1
  home=$PWD
  cd "$called_from"
  exec "$home/scripts/start.sh" "$@"
fi
# shellcheck source=scripts/install.sh
source scripts/install.sh
prepare_holdfast
home=$PWD
cd "$called_from"
# After --detach, the stack must not keep file descriptors of the caller open, except its output.
for descriptor in "/proc/$$/fd/"*; do
  number=${descriptor##*/}
  if [ "$number" -gt 2 ] && [ "$number" -ne 255 ]; then eval "exec $number>&-"; fi
done
exec "$home/$NODE" ${node_flags[@]+"${node_flags[@]}"} "$home/dist/start.js" "$@"
