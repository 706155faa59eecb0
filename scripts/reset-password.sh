#!/usr/bin/env bash
# Sets a user's password from the terminal. ./scripts/reset-password.sh --help lists the options.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh

usage() {
  cat <<'TEXT'
Usage: ./scripts/reset-password.sh [USER] [--generate] [--data DIR]

Sets a new password for USER (default webadmin) and ends all their sessions. Prompts twice, hidden.
Without a terminal, reads the password from the first line of standard input.
Management, the identity provider and the Holdfast database must be running.

  --generate    generate a password and print it once
  --data DIR    data directory of a running embedded stack (default: the stack in containers, if .env
                describes one)
  --help        show this help
TEXT
}

read_arguments() {
  user='' generate=no
  while [ $# -gt 0 ]; do
    case $1 in
      --generate) generate=yes ;;
      -*) refuse 2 "Unknown option: $1." 'see ./scripts/reset-password.sh --help' ;;
      *)
        [ -z "$user" ] || refuse 2 'Too many arguments: name one user. The script prompts for the password.' 'see ./scripts/reset-password.sh --help'
        user=$1
        [ -n "$user" ] || refuse 2 'The username is empty.' 'name a user, or leave it out for webadmin'
        ;;
    esac
    shift
  done
  user=${user:-webadmin}
}

# Sets `password`. It never appears on a command line.
read_password() {
  local again
  password='' again=''
  if [ "$generate" = yes ]; then
    new_secret
    password=$secret
  elif [ -t 0 ]; then
    IFS= read -rs -p "New password for $user: " password || refuse 1 'No password entered. Nothing was changed.' 'try again'
    printf '\n' >&2
    IFS= read -rs -p 'Repeat the password: ' again || :
    printf '\n' >&2
    [ "$password" = "$again" ] || refuse 1 "The passwords don't match. Nothing was changed." 'try again'
  else
    IFS= read -r password 2>/dev/null || [ -n "$password" ] || refuse 1 'No password on standard input.' 'run this in a terminal, or with --generate'
  fi
}

# Quotes a value so that Compose and Holdfast read it back unchanged.
quoted() { # VALUE
  local text=$1
  if [[ $text =~ ^[A-Za-z0-9._~+/=:@%^,-]+$ ]]; then
    printf '%s' "$text"
  elif [[ $text != *[\'\\]* ]]; then
    printf "'%s'" "$text"
  else
    text=${text//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"' "${text//\$/\\\$}"
  fi
}

# Written to .env first: otherwise, after a crash in between, the next start would restore the old
# password.
write_settings() {
  take_turn
  kept=$(mktemp "$env_file.XXXXXX" 2>/dev/null) || refuse 1 "Couldn't write a file next to $env_file." 'run this as its owner, and check free disk space (df -h .)'
  trap 'rm -f "$kept"' EXIT
  cp -p "$env_file" "$kept" 2>/dev/null || refuse 1 "Couldn't copy $env_file. Nothing was changed." 'check free disk space (df -h .), then run this again'
  replace CORE_WEBADMIN_PASSWORD "$(quoted "$password")"
  (write_env "$env_file" own "$env_file")
  trap 'mv -f "$kept" "$env_file"' EXIT
}

set_password() {
  local flags=()
  [ -z "$kept" ] || flags=(--settings-written)
  printf '%s\n' "$password" | in_management reset-password "$user" "${flags[@]}" || exit 1
}

if wants_help "$@"; then
  usage
  exit 0
fi
if ! in_containers "$@"; then
  run_installed reset-password "$@"
fi
read_arguments "$@"
check_docker
check_management_runs
read_password
kept=''
[ "${user,,}" != webadmin ] || write_settings
set_password
if [ -n "$kept" ]; then
  trap - EXIT
  rm -f "$kept"
  docker compose up -d --no-deps --no-build --wait --wait-timeout 120 management >/dev/null 2>&1 ||
    printf 'The new CORE_WEBADMIN_PASSWORD is in .env. Run ./scripts/start.sh to pass it to management.\n' >&2
fi
[ "$generate" = no ] || printf '%s\n' "$password"
