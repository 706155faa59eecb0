#!/usr/bin/env bash
# Prepares the stack in containers: from a release archive the images, and .env with an address, a mode, the layers and a random
# value for every secret. What is set already is never changed, but for the release, which is the record of this script alone.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/install.sh
source scripts/install.sh
# shellcheck source=scripts/release-images.sh
source scripts/release-images.sh

readonly SECRETS=(CORE_DB_PASSWORD CORE_READER_PASSWORD APP_DB_PASSWORD IDENTITY_DB_PASSWORD IDENTITY_SECRET_KEY
  IDENTITY_TOKEN LDAP_BIND_PASSWORD CORE_WEBADMIN_PASSWORD AUDIT_KEY SESSION_KEY FLOWS_DB_PASSWORD FLOWS_TOKEN
  FLOWS_CREDENTIAL_KEY FLOWS_PASSWORD VIDEO_PUBLISH_PASSWORD VIDEO_READ_PASSWORD)
readonly SECRETS_OF_PRODUCTION=(IDENTITY_BOOTSTRAP_TOKEN IDENTITY_ADMIN_PASSWORD)
readonly LIGHT_LAYER=compose/compose.light.yaml

usage() {
  cat <<'TEXT'
Usage: ./scripts/setup.sh ARCHIVE [--address NAME] [--mode subdomain|direct]
       ./scripts/setup.sh
       ./scripts/setup.sh --light [--address NAME] [--mode subdomain|direct]

Prepares the stack in containers: builds its images and writes .env. Run again it adds what is missing and changes nothing
that is set; with the archive of a newer release it is the upgrade to it.

  ARCHIVE          the release of TAK Server as it is downloaded: takserver-docker-<version>.zip
                   without it: the release of .env again, after an upgrade of Holdfast
  --light          our own core and identity provider: the whole stack without a TAK Server release
  --address NAME   name or address that phones use to reach this server (SERVER_ADDRESS); needed the first time
  --mode MODE      subdomain: public certificates, a host name for each part (the default for a name)
                   direct: the stack's own CA on one name or address (the default for an address)
  --help           this text
TEXT
}

# --- What is asked for

read_arguments() {
  light=no archive='' address='' mode=''
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h)
        usage
        exit 0
        ;;
      --light) light=yes ;;
      --address | --mode)
        [ -n "${2:-}" ] || refuse 2 "$1 has no value." 'see ./scripts/setup.sh --help'
        if [ "$1" = --address ]; then address=$2; else mode=$2; fi
        shift
        ;;
      --address=*) address=${1#*=} ;;
      --mode=*) mode=${1#*=} ;;
      -*) refuse 2 "There is no option $1." 'see ./scripts/setup.sh --help' ;;
      *)
        [ -z "$archive" ] || refuse 2 "There are two archives: $archive and $1." 'give one'
        archive=$1
        ;;
    esac
    shift
  done
  case $mode in
    '' | subdomain | direct) ;;
    *) refuse 2 "There is no mode $mode." 'give --mode subdomain or --mode direct' ;;
  esac
  [ -z "$archive" ] || read_archive
}

read_archive() {
  [ "$light" = no ] || refuse 2 'The light stack has its own core, and takes no archive.' 'give --light or the archive'
  [[ $archive == /* ]] || archive=$called_from/$archive
  [ -f "$archive" ] || refuse 2 "There is no file $archive." 'name the archive that was downloaded: takserver-docker-<version>.zip'
  [ -r "$archive" ] || refuse 1 "$archive cannot be read by this account." 'run this as its owner'
  archive=$(readlink -f "$archive")
}

# Light or production: what .env says already, or else the arguments.
choose_stack() {
  local set=${values[CORE_RELEASE]:-} layers=:${values[COMPOSE_FILE]:-}:
  if [ "$light" = yes ]; then
    [ -z "$set" ] ||
      refuse 1 "This stack was set up from TAK Server $set, which the light stack has no place for." \
        'leave --light out, or set up a light stack in another clone of Holdfast'
  elif [[ $layers == *:"$LIGHT_LAYER":* ]]; then
    if [ -n "$archive" ]; then
      refuse 1 'This stack was set up as a light one; its people and certificates would not be those of a TAK Server.' \
        'set up production in another clone of Holdfast'
    fi
    refuse 2 'This stack was set up as a light one.' './scripts/setup.sh --light'
  elif [ -z "$archive$set" ]; then
    refuse 2 'There is no release archive given, and none in .env.' \
      'give the archive, ./scripts/setup.sh takserver-docker-<version>.zip --address NAME, or --light for our own core'
  fi
}

# --- The settings as they shall be

is_address() {
  local octet='(0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])'
  [[ $1 =~ ^$octet(\.$octet){3}$ ]]
}

# As isHostName of the product: labels, the last of which is no number.
is_host_name() {
  local label='[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
  [[ ${#1} -le 253 && $1 =~ ^($label\.)*$label$ && ! ${1##*.} =~ ^[0-9]+$ ]]
}

choose_address() {
  local set=${values[SERVER_ADDRESS]:-}
  if [ -n "$set" ]; then
    [ -z "$address" ] || [ "$address" = "$set" ] ||
      refuse 1 "SERVER_ADDRESS is $set already, and nothing that is set is changed here." 'leave --address out, or change the line in .env'
    address=$set
  fi
  [ -n "$address" ] ||
    refuse 2 'SERVER_ADDRESS is not set: how do phones reach this server?' 'give its name, such as --address cot.example.org'
  is_address "$address" || is_host_name "$address" ||
    refuse 2 "'$address' is no host name and no IPv4 address, on which the stack is published." \
      'give the name alone, such as --address cot.example.org'
  [ -n "$set" ] || want SERVER_ADDRESS "$address"
}

choose_mode() {
  local set=${values[DEPLOY_MODE]:-}
  case $set in
    '' | subdomain | direct) ;;
    *) refuse 1 "DEPLOY_MODE is $set in .env, which is no mode." 'write DEPLOY_MODE=subdomain or DEPLOY_MODE=direct' ;;
  esac
  if [ -n "$set" ]; then
    [ -z "$mode" ] || [ "$mode" = "$set" ] ||
      refuse 1 "DEPLOY_MODE is $set already, and nothing that is set is changed here." \
        'leave --mode out, or change DEPLOY_MODE and COMPOSE_FILE in .env together'
    mode=$set
  elif [ -z "$mode" ]; then
    if is_address "$address"; then mode=direct; else mode=subdomain; fi
  fi
  if [ "$mode" = subdomain ] && { is_address "$address" || [[ $address != *.* ]]; }; then
    refuse 2 "Public certificates need a public name, and $address is none." 'give another --address, or --mode direct'
  fi
  [ -n "$set" ] || want DEPLOY_MODE "$mode"
}

choose_layers() {
  local set=${values[COMPOSE_FILE]:-}
  if [ -z "$set" ]; then
    set=compose/compose.yaml
    [ "$light" = no ] || set+=:$LIGHT_LAYER
    want COMPOSE_FILE "$set"
    return
  fi
  [ "$light" = no ] || [[ :$set: == */compose.light.yaml:* ]] ||
    refuse 1 'COMPOSE_FILE lacks compose/compose.light.yaml.' 'add it behind compose/compose.yaml in COMPOSE_FILE'
}

# A TAK Server counts its retention in seconds. Days there would delete what is older than half a minute.
choose_retention_unit() {
  local set=${values[CORE_RETENTION_UNIT]:-}
  [ "$light" = no ] || return 0
  case $set in
    '') want CORE_RETENTION_UNIT seconds ;;
    seconds) ;;
    *) refuse 1 "CORE_RETENTION_UNIT is $set in .env, and a TAK Server counts seconds." 'write CORE_RETENTION_UNIT=seconds' ;;
  esac
}

choose_secrets() {
  local name
  for name in "${SECRETS[@]}"; do want_secret "$name"; done
  [ "$light" = no ] || return 0
  for name in "${SECRETS_OF_PRODUCTION[@]}"; do want_secret "$name"; done
}

# --- The release

prepare_release() {
  local current=${values[CORE_RELEASE]:-}
  check_engine
  check_memory
  take_releases
  trap undo_release EXIT
  if [ -n "$archive" ]; then
    inspect_archive "$archive" "$current"
  else
    ask_release_program installed "$current"
  fi
  if [ "${release[unpacked]}" = no ] || ! images_are_here; then check_disk "${release[bytes]}"; fi
  say_login
  [ -z "$archive" ] || unpack_archive "$archive"
  build_images
  settle_release
  [ "$current" = "${release[version]}" ] || replace CORE_RELEASE "${release[version]}"
}

images_are_here() {
  docker image inspect "localhost/holdfast-core:${release[version]}" "localhost/holdfast-core-database:${release[version]}" >/dev/null 2>&1
}

# What is mounted is read by accounts of the containers, whatever umask it was unpacked with.
open_mounted_files() {
  local place
  for place in compose/caddy compose/video compose/identity compose/flows/settings.js; do
    [ ! -e "$place" ] || chmod -R go+rX "$place" 2>/dev/null ||
      refuse 1 "The files of $place cannot be made readable for the containers." "run this as their owner, or: chmod -R go+rX $place"
  done
}

say_what_next() { # WHAT WAS DONE
  printf '%s\n\n' "$1"
  if [ "$mode" = subdomain ]; then
    printf 'Before the start, DNS must lead to this machine for %s, monitor.%s, nodered.%s and takserver.%s.\n' \
      "$address" "$address" "$address" "$address"
  fi
  docker_answers ||
    printf 'Docker does not answer this account now: docker version says why. Where permission is denied, put sudo before docker.\n'
  printf 'Start the stack here with:  ./scripts/start.sh\n'
  printf 'Then sign in at https://%s/ as webadmin with CORE_WEBADMIN_PASSWORD of .env. Keep a copy of .env elsewhere.\n' "$address"
  [ "$mode" = subdomain ] || printf 'A browser warns until it knows the CA of this stack: docs/containers.md says how to get it.\n'
}

read_arguments "$@"
check_docker
find_env
read_settings "$source_file"
choose_stack
choose_address
choose_mode
choose_layers
choose_retention_unit
choose_secrets
[ "$light" = yes ] || prepare_release
open_mounted_files
if [ ${#wanted[@]} -eq 0 ]; then
  chmod 600 "$env_file" 2>/dev/null || refuse 1 "$env_file belongs to somebody else." 'run this as its owner'
  [ "$light" = yes ] || keep_release
  say_what_next '.env has everything that is needed; nothing was changed.'
else
  names=$(names_wanted)
  (write_env "$source_file" "$kind" "$env_file")
  [ "$light" = yes ] || keep_release
  say_what_next "Set in .env: $names"
fi
