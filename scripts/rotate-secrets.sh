#!/usr/bin/env bash
# Gives the secrets of the stack new values, and proves that it works with them. ./scripts/rotate-secrets.sh --help lists them.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh

# As packages/stack/secrets.ts has them, which a test holds equal.
readonly ROTATED=(CORE_DB_PASSWORD CORE_READER_PASSWORD APP_DB_PASSWORD IDENTITY_DB_PASSWORD LDAP_BIND_PASSWORD IDENTITY_TOKEN
  SESSION_KEY METRICS_TOKEN FLOWS_DB_PASSWORD FLOWS_TOKEN FLOWS_PASSWORD VIDEO_PUBLISH_PASSWORD VIDEO_READ_PASSWORD)

usage() {
  cat <<'TEXT'
Usage: ./scripts/rotate-secrets.sh [NAME...]
       ./scripts/rotate-secrets.sh --data DIR [NAME...]      an embedded stack, which must be stopped

Gives new random values to the secrets NAME..., or to all of these that are set:

  CORE_DB_PASSWORD CORE_READER_PASSWORD APP_DB_PASSWORD IDENTITY_DB_PASSWORD   the roles of the databases
  LDAP_BIND_PASSWORD IDENTITY_TOKEN        our own parts at the directory and the identity provider
  SESSION_KEY                              ends every session and every API token
  METRICS_TOKEN                            whoever reads the metrics needs the new one
  FLOWS_DB_PASSWORD FLOWS_TOKEN            flows that use the database take the new password from their environment
  FLOWS_PASSWORD                           the sign-in at the flow engine of an embedded stack
  VIDEO_PUBLISH_PASSWORD VIDEO_READ_PASSWORD   cameras and players need the new one

Then the containers are made anew, which takes a minute or two, and the probe proves the stack. What .env was before is kept
beside it until then; a rotation that was interrupted is finished by ./scripts/start.sh, or by calling this again.

Never rotated: AUDIT_KEY (with another one no record of the audit log is valid), IDENTITY_SECRET_KEY (the tokens of the identity
provider would be lost), FLOWS_CREDENTIAL_KEY (so would the credentials in flows). CORE_WEBADMIN_PASSWORD:
./scripts/reset-password.sh. IDENTITY_BOOTSTRAP_TOKEN: only by its name and alone, for it brings IDENTITY_TOKEN into force.
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
      [ $# -eq 1 ] || refuse 2 'IDENTITY_BOOTSTRAP_TOKEN is rotated alone: it brings IDENTITY_TOKEN into force.' 'name it alone'
    else
      is_rotated "$name" || refuse 2 "$name is not rotated here." 'see ./scripts/rotate-secrets.sh --help, which says why'
    fi
    [ -n "${values[$name]:-}" ] || refuse 1 "$name is not set in .env." 'leave it out, or set it first'
  done
}

# Whose part stands elsewhere, what .env says of it is not in force.
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

# Both are whole at every moment: until .env is replaced nothing has happened, afterwards any start carries it on.
rotate() {
  local name before
  before=$env_file$BEFORE_ROTATION$(date -u +%Y%m%dT%H%M%SZ)
  umask 077
  draft=$(mktemp "$env_file.XXXXXX" 2>/dev/null) || refuse 1 "Nothing can be written beside $env_file." 'run this as its owner, on a disk with room'
  trap 'rm -f "$draft"' EXIT
  { cp -p "$env_file" "$draft" && chmod 600 "$draft" && sync "$draft" && mv -f "$draft" "$before"; } 2>/dev/null ||
    refuse 1 "$env_file could not be copied; nothing was changed." 'see that the disk has room, then run this again'
  for name in "${chosen[@]}"; do
    new_secret
    replace "$name" "$secret"
  done
  (write_env "$env_file" own "$env_file")
  printf 'New values in %s for %s\nWhat it was before is in %s until the stack has proven itself.\n' "$env_file" "$(names_wanted)" "$before"
  [[ " ${chosen[*]} " != *' SESSION_KEY '* ]] || printf 'Everybody has to sign in again, and API tokens are to be made anew.\n'
}

# A copy that is the same as .env: the crash was before anything had changed.
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
  printf 'An earlier rotation is not complete yet; it is finished now, and no other one begun.\n'
else
  choose_names "$@"
  [ ${#chosen[@]} -gt 0 ] || refuse 1 'No secret that could be rotated is set in .env.' 'see ./scripts/rotate-secrets.sh --help'
  rotate
fi
if ! ./scripts/start.sh --no-dns-check 9<&-; then
  refuse 1 'The rotation is not complete: the stack has not proven itself with the new secrets.' \
    "put right what start.sh says and call ./scripts/start.sh again; to go back: mv '$(kept_rotations | tail -n 1)' '$env_file' and ./scripts/start.sh"
fi
