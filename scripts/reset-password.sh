#!/usr/bin/env bash
# Sets the password of a user when nobody can sign in. ./scripts/reset-password.sh --help lists the options.
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

Sets the password of USER (default webadmin), who is signed out everywhere. Asks for it twice without showing it; without a
terminal it is the first line of the standard input. Management, the identity provider and our own database must run.

  --generate    make one, and print it once
  --data DIR    the directory of a running embedded stack; without it the stack in containers, where .env describes one
  --help        this text
TEXT
}

read_arguments() {
  user='' generate=no
  while [ $# -gt 0 ]; do
    case $1 in
      --generate) generate=yes ;;
      -*) refuse 2 "reset-password.sh does not know $1." 'see ./scripts/reset-password.sh --help' ;;
      *)
        [ -z "$user" ] || refuse 2 'One user at a time; a password is no argument, it is asked for.' 'see ./scripts/reset-password.sh --help'
        user=$1
        [ -n "$user" ] || refuse 2 'The name of the user is empty.' 'name the user, or nobody for webadmin'
        ;;
    esac
    shift
  done
  user=${user:-webadmin}
}

# Leaves it in `password`, of which no command line ever knows.
read_password() {
  local again
  password='' again=''
  if [ "$generate" = yes ]; then
    new_secret
    password=$secret
  elif [ -t 0 ]; then
    IFS= read -rs -p "New password of $user: " password || refuse 1 'No password was typed; nothing was changed.' 'try again'
    printf '\n' >&2
    IFS= read -rs -p 'The same once more: ' again || :
    printf '\n' >&2
    [ "$password" = "$again" ] || refuse 1 'The two are not the same; nothing was changed.' 'try again'
  else
    IFS= read -r password 2>/dev/null || [ -n "$password" ] || refuse 1 'No password came on the standard input.' 'call this on a terminal, or with --generate'
  fi
}

# As Compose and Holdfast both read it again.
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

# First into .env: were it last, a crash in between would have the next start set the old one again.
write_settings() {
  take_turn
  kept=$(mktemp "$env_file.XXXXXX" 2>/dev/null) || refuse 1 "Nothing can be written beside $env_file." 'run this as its owner, on a disk with room'
  trap 'rm -f "$kept"' EXIT
  cp -p "$env_file" "$kept" 2>/dev/null || refuse 1 "$env_file could not be copied; nothing was changed." 'see that the disk has room, then run this again'
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
    printf 'CORE_WEBADMIN_PASSWORD in .env is the new one; ./scripts/start.sh gives it to management, too.\n' >&2
fi
[ "$generate" = no ] || printf '%s\n' "$password"
