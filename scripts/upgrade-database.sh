#!/usr/bin/env bash
# Upgrades the core's database to the PostgreSQL of its release, and goes back.
# ./scripts/upgrade-database.sh --help lists the options.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/install.sh
source scripts/install.sh
# shellcheck source=scripts/release-images.sh
source scripts/release-images.sh

usage() {
  cat <<'TEXT'
Usage: ./scripts/upgrade-database.sh --from RELEASE
       ./scripts/upgrade-database.sh --back RELEASE
       ./scripts/upgrade-database.sh --forget

Upgrades the core's database when the TAK Server release in .env brings another PostgreSQL. The programs of
the old release export it, those of the new one import and verify it. The old database is kept. The core is
stopped meanwhile.

  --from RELEASE   the release that the database was used with, such as 5.7-RELEASE-14; its files must still
                   be in release/RELEASE
  --back RELEASE   go back to that release and the database that was kept; what arrived since the upgrade is
                   no longer shown
  --forget         delete the database that was kept
  --help           show this help
TEXT
}

read_arguments() {
  action='' old=''
  case ${1:-} in
    --help | -h)
      usage
      exit 0
      ;;
    --from | --back)
      [ -n "${2:-}" ] || refuse 2 "$1 needs a release." 'see ./scripts/upgrade-database.sh --help'
      action=${1#--} old=$2
      shift 2
      ;;
    --from=* | --back=*)
      action=${1%%=*} old=${1#*=}
      action=${action#--}
      shift
      ;;
    --forget)
      action=forget
      shift
      ;;
  esac
  if [ -z "$action" ] || [ $# -gt 0 ]; then
    usage >&2
    exit 2
  fi
}

# Runs a step in a container of the core's database, with the image of a release.
database_step() { # RELEASE STEP
  CORE_RELEASE=$1 docker compose run --rm --no-deps -T core-database database "$2" </dev/null 9<&- ||
    refuse 1 "The step '$2' failed with TAK Server $1." 'follow the remedy above, then run this again'
}

# With our current programs over the images of the old release, which may be older.
build_old_images() {
  ask_release_program installed "$old"
  build_images
}

upgrade() {
  [ "$old" != "$current" ] ||
    refuse 2 "The release in .env is $current itself." 'give the release that the database was used with, before setup.sh'
  build_old_images
  printf 'Stopping the core...\n'
  docker compose stop core core-database
  database_step "$old" export
  database_step "$current" import
  printf 'Start the stack:  ./scripts/start.sh\n'
  printf 'To go back:  ./scripts/upgrade-database.sh --back %s\nTo delete the old database, once all is well:  ./scripts/upgrade-database.sh --forget\n' "$old"
}

go_back() {
  build_old_images
  printf 'Stopping the core...\n'
  docker compose stop core core-database
  database_step "$old" back
  CORE_RELEASE=$old docker compose run --rm --no-deps -T -e HOLDFAST_RELEASE_GOES_BACK=yes release </dev/null 9<&- ||
    refuse 1 "Couldn't bring back the files of TAK Server $old." 'follow the remedy above, then run this again'
  if [ "$old" != "$current" ]; then
    replace CORE_RELEASE "$old"
    (write_env "$source_file" "$kind" "$env_file")
  fi
  printf 'This stack uses TAK Server %s again. Start it:  ./scripts/start.sh\n' "$old"
}

read_arguments "$@"
check_docker
find_env
read_settings "$source_file"
current=${values[CORE_RELEASE]:-}
[ -n "$current" ] ||
  refuse 2 'This stack has no TAK Server release, so its database follows Holdfast.' 'use ./scripts/setup.sh with a release archive first'
check_docker_answers
take_turn
case $action in
  from) upgrade ;;
  back) go_back ;;
  forget) database_step "$current" forget ;;
esac
