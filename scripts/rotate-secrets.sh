#!/usr/bin/env bash
# Rotates the secrets of the stack and checks that it works. ./scripts/rotate-secrets.sh --help
# lists them.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh

# Same as in packages/stack/secrets.ts (a test compares them).
readonly ROTATED=(CORE_DB_PASSWORD CORE_READER_PASSWORD APP_DB_PASSWORD IDENTITY_DB_PASSWORD LDAP_BIND_PASSWORD IDENTITY_TOKEN
  SESSION_KEY METRICS_TOKEN FLOWS_DB_PASSWORD FLOWS_TOKEN FLOWS_PASSWORD VIDEO_PUBLISH_PASSWORD VIDEO_READ_PASSWORD
  BACKUP_TOKEN NATS_PASSWORD)

usage() {
  cat <<'TEXT'
Usage: ./scripts/rotate-secrets.sh [NAME...]
       ./scripts/rotate-secrets.sh --data DIR [NAME...]      for an embedded stack, which must be stopped

Gives new random values to the named secrets, or to all of these that are set:

  CORE_DB_PASSWORD CORE_READER_PASSWORD APP_DB_PASSWORD IDENTITY_DB_PASSWORD   database roles
  LDAP_BIND_PASSWORD IDENTITY_TOKEN        our access to the directory and the identity provider
  SESSION_KEY                              ends all sessions and API tokens
  METRICS_TOKEN                            your metrics collector needs the new one
  FLOWS_DB_PASSWORD FLOWS_TOKEN            flows read the new password from their environment
  FLOWS_PASSWORD                           sign-in to the flow engine of an embedded stack
  NATS_PASSWORD                            core nodes reconnect
  VIDEO_PUBLISH_PASSWORD VIDEO_READ_PASSWORD   cameras and players need the new ones

Then recreates the containers (a minute or two) and runs the connection check. Keeps a copy of the old .env
until the check passes. To finish an interrupted rotation, run ./scripts/start.sh or this script again.

Never rotated: AUDIT_KEY (would invalidate the audit log), IDENTITY_SECRET_KEY (would invalidate the identity
provider's tokens), FLOWS_CREDENTIAL_KEY (would lose the credentials in flows).
CORE_WEBADMIN_PASSWORD: use ./scripts/reset-password.sh.
IDENTITY_BOOTSTRAP_TOKEN: only when named, and alone, because it activates IDENTITY_TOKEN.
TEXT
}

is_rotated() { # NAME
  local each
  for each in "${ROTATED[@]}"; do
    [ "$each" != "$1" ] || return 0
  done
  return 1
}

check_names() { # NAMES
  local name
  for name in "$@"; do
    if [ "$name" = IDENTITY_BOOTSTRAP_TOKEN ]; then
      [ $# -eq 1 ] || refuse 2 "IDENTITY_BOOTSTRAP_TOKEN can't be rotated with other secrets: it activates IDENTITY_TOKEN." 'rotate it alone: ./scripts/rotate-secrets.sh IDENTITY_BOOTSTRAP_TOKEN'
    else
      is_rotated "$name" || refuse 2 "$name can't be rotated." 'see ./scripts/rotate-secrets.sh --help for the reason'
    fi
    [ -n "${values[$name]:-}" ] || refuse 1 "$name is not set in .env." 'leave it out, or set it in .env first'
  done
}

# True if the service is external, so that the value in .env is not used.
is_elsewhere() { # NAME
  case $1 in
    APP_DB_PASSWORD) [ -n "${values[DATABASE_URL]:-}" ] ;;
    CORE_DB_PASSWORD | CORE_READER_PASSWORD) [ -n "${values[CORE_DATABASE_URL]:-}" ] ;;
    *) return 1 ;;
  esac
}

choose_names() { # NAMES
  local name
  chosen=()
  if [ $# -gt 0 ]; then
    chosen=("$@")
    return
  fi
  for name in "${ROTATED[@]}"; do
    if [ -n "${values[$name]:-}" ] && ! is_elsewhere "$name"; then chosen+=("$name"); fi
  done
}

# Each file is complete at all times. A crash before .env is replaced changes nothing; after that,
# any start continues the rotation.
rotate() {
  local name before
  before=$env_file$BEFORE_ROTATION$(date -u +%Y%m%dT%H%M%SZ)
  umask 077
  draft=$(mktemp "$env_file.XXXXXX" 2>/dev/null) || refuse 1 "Couldn't write a file next to $env_file." 'run this as its owner, and check free disk space (df -h .)'
  trap 'rm -f "$draft"' EXIT
  { cp -p "$env_file" "$draft" && chmod 600 "$draft" && sync "$draft" && mv -f "$draft" "$before"; } 2>/dev/null ||
    refuse 1 "Couldn't copy $env_file. Nothing was changed." 'check free disk space (df -h .), then run this again'
  for name in "${chosen[@]}"; do
    new_secret
    replace "$name" "$secret"
  done
  (write_env "$env_file" own "$env_file")
  printf 'New values in %s for %s\nThe old values are in %s until the connection check passes.\n' "$env_file" "$(names_wanted)" "$before"
  [[ " ${chosen[*]} " != *' SESSION_KEY '* ]] || printf 'Everyone must sign in again, and API tokens must be recreated.\n'
}

# Deletes copies equal to .env: that rotation crashed before it changed anything.
forget_unbegun() {
  local each
  while IFS= read -r each; do
    ! cmp -s "$each" "$env_file" || rm -f -- "$each"
  done < <(kept_rotations)
}

if wants_help "$@"; then
  usage
  exit 0
fi
if ! in_containers "$@"; then
  run_installed rotate-secrets "$@"
fi
check_docker
check_names "$@"
check_docker_answers
take_turn
forget_unbegun
if [ -n "$(kept_rotations)" ]; then
  printf 'An earlier rotation is incomplete. Finishing it now; no new rotation was started.\n'
else
  choose_names "$@"
  [ ${#chosen[@]} -gt 0 ] || refuse 1 '.env has no secrets that can be rotated.' 'see ./scripts/rotate-secrets.sh --help'
  rotate
fi
if ! ./scripts/start.sh --no-dns-check 9<&-; then
  refuse 1 'The rotation is incomplete: the stack failed to start with the new secrets.' \
    "fix what start.sh reports, then run ./scripts/start.sh again. To go back: mv '$(kept_rotations | tail -n 1)' '$env_file' and ./scripts/start.sh"
fi
