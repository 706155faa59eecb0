#!/usr/bin/env bash
# Makes a backup of a running stack, proves one, and restores parts of it. --help lists the options.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh

usage() {
  cat <<'TEXT'
Usage: ./scripts/backup.sh --output PLACE --passphrase-file FILE [--without-history] [--no-proof]
       ./scripts/backup.sh prove ARCHIVE --passphrase-file FILE
       ./scripts/backup.sh show ARCHIVE --passphrase-file FILE [PART]
       ./scripts/backup.sh restore ARCHIVE --passphrase-file FILE PART [NAME...] [--yes]

Makes a backup of the running stack in containers: one encrypted file. How to restore it: docs/backup.md.
For an embedded stack: ./scripts/backup.sh --data DIR --help

  --output PLACE          a directory, or a new file
  --passphrase-file FILE  encrypt with the passphrase in the first line of FILE, or open an archive with it
  --recipient KEY         encrypt for an age public key (age1...) instead
  --identity-file FILE    the age identity that opens an archive for a recipient
  --without-history       leave out the history of CoT and chat messages
  --no-proof              don't restore the backup into a scratch instance afterwards
  prove                   restore an archive into a scratch instance, and write how far it is proven to ARCHIVE.json
  show, restore           show what an archive holds; bring accounts, missions or files back into a light stack
  PART, NAME, --yes       as for an embedded stack: docs/backup.md
  --help                  show this help
TEXT
}

read_arguments() {
  verb=take output='' key_file='' identity_file='' recipient='' archive='' options=() proof=yes
  case ${1:-} in
    prove | show | restore)
      verb=$1
      shift
      read_archive_arguments "$@"
      return
      ;;
  esac
  while [ $# -gt 0 ]; do
    case $1 in
      --output | --passphrase-file | --recipient)
        [ -n "${2:-}" ] || refuse 2 "$1 needs a value." 'see ./scripts/backup.sh --help'
        take_value "$1" "$2"
        shift
        ;;
      --output=* | --passphrase-file=* | --recipient=*) take_value "${1%%=*}" "${1#*=}" ;;
      --without-history) options+=("$1") ;;
      --no-proof) proof=no ;;
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

# What comes after the archive is for the program in the container.
read_archive_arguments() {
  while [ $# -gt 0 ]; do
    case $1 in
      --passphrase-file | --identity-file)
        [ -n "${2:-}" ] || refuse 2 "$1 needs a value." 'see ./scripts/backup.sh --help'
        take_value "$1" "$2"
        shift
        ;;
      --passphrase-file=* | --identity-file=*) take_value "${1%%=*}" "${1#*=}" ;;
      *) if [ -z "$archive" ] && [[ $1 != -* ]]; then archive=$1; else options+=("$1"); fi ;;
    esac
    shift
  done
  [ -n "$archive" ] || refuse 2 'The archive is missing.' 'see ./scripts/backup.sh --help'
  [[ $archive == /* ]] || archive=$called_from/$archive
  { [ -f "$archive" ] && [ -r "$archive" ]; } || refuse 1 "Couldn't read $archive." 'give the archive of a backup'
  [ -n "$key_file$identity_file" ] || refuse 2 'No key given.' 'give --passphrase-file FILE or --identity-file FILE'
  [ "$verb" = prove ] || return 0
  [ ${#options[@]} -eq 0 ] || refuse 2 "Unknown option: ${options[0]}." 'see ./scripts/backup.sh --help'
  [ -r "$archive.json" ] || refuse 1 "Couldn't read $archive.json, which says how the archive was written." 'copy it beside the archive'
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
    --identity-file)
      identity_file=$2
      [[ $identity_file == /* ]] || identity_file=$called_from/$identity_file
      [ -r "$identity_file" ] || refuse 1 "Couldn't read $identity_file." 'give the file that age-keygen wrote'
      ;;
  esac
}

# The key goes through the standard input, so that no process list shows it.
print_key() {
  if [ -n "$recipient" ]; then
    printf '%s\n' "$recipient"
  elif [ -n "$identity_file" ]; then
    grep -m 1 '^AGE-SECRET-KEY-' "$identity_file" || printf '\n'
  else
    head -n 1 "$key_file" | tr -d '\n'
    printf '\n'
  fi
}

in_backup() { # ARGUMENTS OF THE PROGRAM
  docker compose exec -T backup node /app/dist/container-backup.js "$@"
}

make_backup() {
  local partial facts
  partial=$(dirname "$output")/.$(basename "$output").partial
  rm -f "$partial"
  umask 077
  # shellcheck disable=SC2064 # expand now
  trap "rm -f '$partial' '$partial.json'" EXIT
  trap 'exit 130' INT TERM
  print_key | in_backup take "$(basename "$output")" ${options[@]+"${options[@]}"} >"$partial" ||
    refuse 1 "Couldn't make the backup. Nothing of it is left." 'fix what the lines above report, then run it again'
  # After the archive comes a line with its facts.
  facts=$(tail -n 1 "$partial")
  truncate -s "-$((${#facts} + 2))" "$partial"
  { printf '%s\n' "$facts" >"$partial.json" && sync "$partial" "$partial.json"; } ||
    refuse 1 "Couldn't write $partial to the disk." 'check free disk space (df -h), then run it again'
  [ -e "$output" ] || mv "$partial.json" "$output.json"
  mv -n "$partial" "$output"
  [ ! -e "$partial" ] || refuse 1 "$output already exists." 'choose another file with --output FILE'
  trap - EXIT
  find_env
  read_settings "$source_file"
  printf 'Backup %s. Keep it and its passphrase on another machine%s.\n' "$output" \
    "${values[CORE_RELEASE]:+, with the archive of TAK Server ${values[CORE_RELEASE]}}" >&2
  archive=$output
  if [ "$proof" = yes ] && [ "${values[BACKUP_PROOF]:-always}" != off ]; then
    prove_archive
    return
  fi
  printf 'Not proven: nothing was read back. To prove it: ./scripts/backup.sh prove %q %s FILE\n' "$output" \
    "--${recipient:+identity}${key_file:+passphrase}-file" >&2
}

# By the means of the backup service: from its first byte on this disk to a scratch instance.
prove_archive() {
  local facts code=0
  facts=$({ print_key && tr -d '\n' <"$archive.json" && printf '\n' && cat "$archive"; } | in_backup prove) || code=$?
  if [ -n "$facts" ]; then
    { printf '%s\n' "$facts" >"$archive.json.new" && mv "$archive.json.new" "$archive.json"; } ||
      refuse 1 "Couldn't write $archive.json." 'check free disk space (df -h)'
  fi
  [ "$code" -eq 0 ] || exit 1
}

# An upgrade stops the stack and replaces these programs. It sees a backup by the lock of this file.
refuse_during_upgrade() {
  exec 8<scripts/backup.sh
  flock --shared 8
  [ ! -e .upgrade/lock ] || flock --shared --wait 10 .upgrade/lock true ||
    refuse 1 'An upgrade of this installation is running.' 'wait until it has ended, then run this again'
}

wants_help "$@" || refuse_during_upgrade
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
case $verb in
  take) make_backup ;;
  prove) prove_archive ;;
  *) { print_key && cat "$archive"; } | in_backup "$verb" "$(basename "$archive")" ${options[@]+"${options[@]}"} ;;
esac
