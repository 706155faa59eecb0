#!/usr/bin/env bash
# Makes a backup of a running stack. ./scripts/backup.sh --help lists the options.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh

usage() {
  cat <<'TEXT'
Usage: ./scripts/backup.sh --output PLACE --passphrase-file FILE [--without-history]

Makes a backup of the running stack in containers: one encrypted file. How to restore it: docs/backup.md.
For an embedded stack: ./scripts/backup.sh --data DIR --help

  --output PLACE          a directory, or a new file
  --passphrase-file FILE  encrypt with the passphrase in the first line of FILE
  --recipient KEY         encrypt for an age public key (age1...) instead
  --without-history       leave out the history of CoT and chat messages
  --help                  show this help
TEXT
}

read_arguments() {
  output='' key_file='' recipient='' options=()
  while [ $# -gt 0 ]; do
    case $1 in
      --output | --passphrase-file | --recipient)
        [ -n "${2:-}" ] || refuse 2 "$1 needs a value." 'see ./scripts/backup.sh --help'
        take_value "$1" "$2"
        shift
        ;;
      --output=* | --passphrase-file=* | --recipient=*) take_value "${1%%=*}" "${1#*=}" ;;
      --without-history) options+=("$1") ;;
      *) refuse 2 "Unknown option: $1." 'see ./scripts/backup.sh --help' ;;
    esac
    shift
  done
  [ -n "$output" ] || refuse 2 '--output is missing.' 'give a directory or a new file: --output PLACE'
  [[ $output != s3://* ]] || refuse 2 "This script writes to a directory or file." "for $output set BACKUP_TARGET in .env, then run the backup on the page Backups"
  [ -n "$key_file$recipient" ] || refuse 2 'No key given.' 'give --passphrase-file FILE or --recipient age1...'
  [[ $output == /* ]] || output=$called_from/$output
  [ ! -d "$output" ] || output=${output%/}/holdfast-$(date -u +%Y%m%dT%H%M%SZ).tar.zst.age
  if [ -e "$output" ] || [ -L "$output" ]; then refuse 1 "$output already exists." 'choose another file with --output FILE'; fi
}

take_value() { # OPTION VALUE
  case $1 in
    --output) output=$2 ;;
    --recipient) recipient=$2 ;;
    --passphrase-file)
      key_file=$2
      [[ $key_file == /* ]] || key_file=$called_from/$key_file
      [ -r "$key_file" ] || refuse 1 "Couldn't read $key_file." 'give a file whose first line is the passphrase'
      ;;
  esac
}

# The key goes through the standard input, so that no process list shows it.
print_key() {
  if [ -n "$recipient" ]; then printf '%s\n' "$recipient"; else head -n 1 "$key_file"; fi
}

make_backup() {
  local partial
  partial=$(dirname "$output")/.$(basename "$output").partial
  rm -f "$partial"
  umask 077
  # shellcheck disable=SC2064 # expand now
  trap "rm -f '$partial'" EXIT
  trap 'exit 130' INT TERM
  print_key | docker compose exec -T backup node /app/dist/container-backup.js take "${options[@]}" >"$partial" ||
    refuse 1 "Couldn't make the backup. Nothing of it is left." 'fix what the lines above report, then run it again'
  sync "$partial" || refuse 1 "Couldn't write $partial to the disk." 'check free disk space (df -h), then run it again'
  mv -n "$partial" "$output"
  [ ! -e "$partial" ] || refuse 1 "$output already exists." 'choose another file with --output FILE'
  trap - EXIT
  printf 'Backup %s. Keep it and its passphrase on another machine.\n' "$output" >&2
}

if ! in_containers "$@"; then
  # The copy makes much garbage of a short life, which would take 50 MB more.
  export MALLOC_ARENA_MAX=1
  node_flags=(--max-semi-space-size=2)
  run_installed backup "$@"
fi
if wants_help "$@"; then
  usage
  exit 0
fi
read_arguments "$@"
check_docker
check_docker_answers
[ -n "$(docker compose ps --quiet --status running backup 2>/dev/null)" ] ||
  refuse 1 'The backup container is not running.' 'start the stack with ./scripts/start.sh. To see why it stopped: docker compose logs --tail 20 backup'
make_backup
