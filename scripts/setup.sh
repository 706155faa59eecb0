#!/usr/bin/env bash
# Prepares the stack in containers: builds the images (from a release archive) and writes .env with
# an address, a mode, the layers and random secrets. Never changes a value that is set, except the
# release, which only this script records.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/install.sh
source scripts/install.sh
# shellcheck source=scripts/release-images.sh
source scripts/release-images.sh
# shellcheck source=scripts/restore-containers.sh
source scripts/restore-containers.sh

readonly SECRETS=(CORE_DB_PASSWORD CORE_READER_PASSWORD APP_DB_PASSWORD IDENTITY_DB_PASSWORD IDENTITY_SECRET_KEY
  IDENTITY_TOKEN LDAP_BIND_PASSWORD CORE_WEBADMIN_PASSWORD AUDIT_KEY SESSION_KEY FLOWS_DB_PASSWORD FLOWS_TOKEN
  FLOWS_CREDENTIAL_KEY FLOWS_PASSWORD VIDEO_PUBLISH_PASSWORD VIDEO_READ_PASSWORD
  BACKUP_TOKEN)
readonly SECRETS_OF_PRODUCTION=(IDENTITY_BOOTSTRAP_TOKEN IDENTITY_ADMIN_PASSWORD)
readonly LIGHT_LAYER=compose/compose.light.yaml
readonly CLUSTER_LAYER=compose/compose.cluster.yaml

usage() {
  cat <<'TEXT'
Usage: ./scripts/setup.sh ARCHIVE [--address NAME] [--mode subdomain|direct]
       ./scripts/setup.sh
       ./scripts/setup.sh --light [--cluster | --alone] [--address NAME] [--mode subdomain|direct]
       ./scripts/setup.sh [ARCHIVE] --restore FILE --passphrase-file FILE

Prepares the stack in containers: builds its images and writes .env. If you run it again, it adds missing
settings and keeps the others. With the archive of a newer release, it upgrades to that release.

  ARCHIVE          the TAK Server release as downloaded: takserver-docker-<version>.zip
                   without it: rebuilds the release named in .env, after an upgrade of Holdfast
  --light          use our own core and identity provider instead of a TAK Server release
  --cluster        run three nodes of our own core over NATS, behind a balancer, in place of one core
  --alone          run one core again after --cluster
  --address NAME   host name or IP address that devices use to reach this server (SERVER_ADDRESS); required
                   the first time
  --mode MODE      subdomain: public certificates, one host name per service (default for a host name)
                   direct: the stack's own CA, one host name or IP address (default for an IP address)
  --restore FILE   restore a backup, with its settings, on a machine that has no stack; if the stack used a
                   TAK Server release, its ARCHIVE is needed too
  --passphrase-file FILE
                   its first line is the passphrase of the backup
  --identity-file FILE
                   the age identity (AGE-SECRET-KEY-...) of a backup for a recipient, instead
  --help           show this help
TEXT
}

# --- Arguments

read_arguments() {
  light=no cluster='' archive='' address='' mode='' restored='' key_file=''
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h)
        usage
        exit 0
        ;;
      --light) light=yes ;;
      --cluster | --alone)
        [ -z "$cluster" ] || refuse 2 '--cluster and --alone contradict each other.' 'give only one'
        cluster=$1
        ;;
      --address | --mode)
        [ -n "${2:-}" ] || refuse 2 "$1 needs a value." 'see ./scripts/setup.sh --help'
        if [ "$1" = --address ]; then address=$2; else mode=$2; fi
        shift
        ;;
      --restore | --passphrase-file | --identity-file)
        [ -n "${2:-}" ] || refuse 2 "$1 needs a file." 'see ./scripts/setup.sh --help'
        if [ "$1" = --restore ]; then restored=$2; else key_file=$2; fi
        shift
        ;;
      --restore=*) restored=${1#*=} ;;
      --passphrase-file=* | --identity-file=*) key_file=${1#*=} ;;
      --address=*) address=${1#*=} ;;
      --mode=*) mode=${1#*=} ;;
      -*) refuse 2 "Unknown option: $1." 'see ./scripts/setup.sh --help' ;;
      *)
        [ -z "$archive" ] || refuse 2 "Two archives given: $archive and $1." 'give only one'
        archive=$1
        ;;
    esac
    shift
  done
  case $mode in
    '' | subdomain | direct) ;;
    *) refuse 2 "Unknown mode: $mode." 'use --mode subdomain or --mode direct' ;;
  esac
  [ -z "$cluster" ] || [ "$light" = yes ] ||
    refuse 2 "$cluster is only for our own core." 'add --light. A TAK Server release runs as one core'
  [ -z "$archive" ] || read_archive
  [ -z "$restored$key_file" ] || read_restore
}

read_restore() {
  [ -n "$restored" ] || refuse 2 'The key of a backup needs --restore.' 'see ./scripts/setup.sh --help'
  [ "$light$cluster$address$mode" = no ] ||
    refuse 2 'A restore takes the address, mode and variant from the backup.' 'leave the other options out, and edit .env afterwards'
  [[ $restored == /* ]] || restored=$called_from/$restored
  [ -z "$key_file" ] || [[ $key_file == /* ]] || key_file=$called_from/$key_file
}

read_archive() {
  [ "$light" = no ] || refuse 2 "The light stack has its own core and doesn't use an archive." 'give either --light or the archive'
  [[ $archive == /* ]] || archive=$called_from/$archive
  [ -f "$archive" ] || refuse 2 "File not found: $archive." 'give the path of the downloaded archive: takserver-docker-<version>.zip'
  [ -r "$archive" ] || refuse 1 "Couldn't read $archive: permission denied." 'run this as its owner'
  archive=$(readlink -f "$archive")
}

# Light or production: from .env if set, otherwise from the arguments.
choose_stack() {
  local set=${values[CORE_RELEASE]:-} layers=:${values[COMPOSE_FILE]:-}:
  if [ "$light" = yes ]; then
    [ -z "$set" ] ||
      refuse 1 "This stack was set up from TAK Server $set and can't become a light stack." \
        'leave --light out, or set up a light stack in another clone of Holdfast'
  elif [[ $layers == *:"$LIGHT_LAYER":* ]]; then
    if [ -n "$archive" ]; then
      refuse 1 "This stack was set up as a light stack. A TAK Server can't take over its people and certificates." \
        'set up the TAK Server release in another clone of Holdfast'
    fi
    refuse 2 'This stack was set up as a light stack.' 'run ./scripts/setup.sh --light'
  elif [ -z "$archive$set" ]; then
    refuse 2 'No release archive given, and no release in .env.' \
      'give the archive: ./scripts/setup.sh takserver-docker-<version>.zip --address NAME. Or use --light for our own core'
  fi
}

# --- New settings

is_address() {
  local octet='(0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])'
  [[ $1 =~ ^$octet(\.$octet){3}$ ]]
}

# Same as isHostName in our code: labels, the last of which is not a number.
is_host_name() {
  local label='[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
  [[ ${#1} -le 253 && $1 =~ ^($label\.)*$label$ && ! ${1##*.} =~ ^[0-9]+$ ]]
}

choose_address() {
  local set=${values[SERVER_ADDRESS]:-}
  if [ -n "$set" ]; then
    [ -z "$address" ] || [ "$address" = "$set" ] ||
      refuse 1 "SERVER_ADDRESS is already set to $set. setup.sh doesn't change existing values." 'leave --address out, or edit SERVER_ADDRESS in .env'
    address=$set
  fi
  [ -n "$address" ] ||
    refuse 2 'SERVER_ADDRESS is not set. Devices need it to reach this server.' 'give the name or IP address, such as --address cot.example.org'
  is_address "$address" || is_host_name "$address" ||
    refuse 2 "'$address' is not a host name or IPv4 address." \
      'give only the name or address, such as --address cot.example.org'
  [ -n "$set" ] || want SERVER_ADDRESS "$address"
}

choose_mode() {
  local set=${values[DEPLOY_MODE]:-}
  case $set in
    '' | subdomain | direct) ;;
    *) refuse 1 "DEPLOY_MODE in .env has an unknown value: $set." 'set DEPLOY_MODE=subdomain or DEPLOY_MODE=direct' ;;
  esac
  if [ -n "$set" ]; then
    [ -z "$mode" ] || [ "$mode" = "$set" ] ||
      refuse 1 "DEPLOY_MODE is already set to $set. setup.sh doesn't change existing values." \
        'leave --mode out, or change DEPLOY_MODE and COMPOSE_FILE in .env together'
    mode=$set
  elif [ -z "$mode" ]; then
    if is_address "$address"; then mode=direct; else mode=subdomain; fi
  fi
  if [ "$mode" = subdomain ] && { is_address "$address" || [[ $address != *.* ]]; }; then
    refuse 2 "Public certificates need a public host name, but the address is $address." 'give another --address, or use --mode direct'
  fi
  [ -n "$set" ] || want DEPLOY_MODE "$mode"
}

choose_layers() {
  local set=${values[COMPOSE_FILE]:-}
  if [ -z "$set" ]; then
    set=compose/compose.yaml
    [ "$light" = no ] || set+=:$LIGHT_LAYER
    [ "$cluster" != --cluster ] || set+=:$CLUSTER_LAYER
    layers=$set
    want COMPOSE_FILE "$set"
    return
  fi
  [ "$light" = no ] || [[ :$set: == */compose.light.yaml:* ]] ||
    refuse 1 'COMPOSE_FILE in .env lacks compose/compose.light.yaml.' 'add it after compose/compose.yaml in COMPOSE_FILE'
  layers=$set
  case $cluster in
    --cluster) has_cluster || layers=$(layers_with_cluster) ;;
    --alone) layers=$(without_cluster) ;;
  esac
  [ "$layers" = "$set" ] || replace COMPOSE_FILE "$layers"
}

has_cluster() { [[ :$layers: == */compose.cluster.yaml:* ]]; }

# Right after the light layer.
layers_with_cluster() {
  local each all=''
  for each in ${layers//:/ }; do
    all+=${all:+:}$each
    [[ $each != */compose.light.yaml ]] || all+=:${each%light.yaml}cluster.yaml
  done
  printf '%s' "$all"
}

without_cluster() {
  local each all=''
  for each in ${layers//:/ }; do [[ $each == */compose.cluster.yaml ]] || all+=${all:+:}$each; done
  printf '%s' "$all"
}

# A TAK Server counts retention in seconds: 30 meant as days would delete everything older than 30
# seconds.
choose_retention_unit() {
  local set=${values[CORE_RETENTION_UNIT]:-}
  [ "$light" = no ] || return 0
  case $set in
    '') want CORE_RETENTION_UNIT seconds ;;
    seconds) ;;
    *) refuse 1 "CORE_RETENTION_UNIT is $set in .env, but a TAK Server counts seconds." 'set CORE_RETENTION_UNIT=seconds' ;;
  esac
}

choose_secrets() {
  local name
  for name in "${SECRETS[@]}"; do want_secret "$name"; done
  if [ "$light" = no ]; then
    for name in "${SECRETS_OF_PRODUCTION[@]}"; do want_secret "$name"; done
  fi
  ! has_cluster || choose_for_cluster
}

choose_for_cluster() {
  want_secret NATS_PASSWORD
  # compose.runtime.yaml tells it only the first management process.
  [[ :$layers: != */compose.runtime.yaml:* ]] || [ -n "${values[CONTAINER_RUNTIME_URL]:-}" ] ||
    want CONTAINER_RUNTIME_URL http://container-proxy:2375
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
  say_database_upgrade "$current"
  [ "$current" = "${release[version]}" ] || replace CORE_RELEASE "${release[version]}"
}

images_are_here() {
  docker image inspect "localhost/holdfast-core:${release[version]}" "localhost/holdfast-core-database:${release[version]}" >/dev/null 2>&1
}

# Sets `next_step` if the new release brings another PostgreSQL than the current one.
say_database_upgrade() { # CURRENT RELEASE or nothing
  local before=${release[current_postgres]:-}
  [ -n "$before" ] && [ "$before" != "${release[postgres]}" ] || return 0
  next_step="TAK Server ${release[version]} needs PostgreSQL ${release[postgres]}; the database of this stack is PostgreSQL $before.
Upgrade it before you start the stack:  ./scripts/upgrade-database.sh --from $1"
}

# Container users must be able to read the mounted files, whatever the umask was.
open_mounted_files() {
  local place
  for place in compose/caddy compose/video compose/identity compose/flows compose/nats compose/streaming; do
    [ ! -e "$place" ] || chmod -R go+rX "$place" 2>/dev/null ||
      refuse 1 "Couldn't make $place readable for the containers." "run this as the owner of the files, or: sudo chmod -R go+rX $place"
  done
}

say_what_next() { # WHAT WAS DONE
  printf '%s\n\n' "$1"
  # upgrade.sh goes on by itself.
  [ -z "${HOLDFAST_UPGRADE:-}" ] || return 0
  if [ "$mode" = subdomain ]; then
    printf 'Before you start the stack, these names must resolve to this machine in DNS: %s, monitor.%s, nodered.%s and takserver.%s.\n' \
      "$address" "$address" "$address" "$address"
  fi
  docker_answers ||
    printf 'Docker does not respond to this user. To see the reason: docker version. If permission is denied, use sudo.\n'
  [ -z "${next_step:-}" ] || printf '%s\n' "$next_step"
  printf 'Start the stack:  ./scripts/start.sh\n'
  printf 'Then sign in at https://%s/ as webadmin with the password CORE_WEBADMIN_PASSWORD from .env. Keep a copy of .env elsewhere.\n' "$address"
  [ "$mode" = subdomain ] || printf "Browsers show a warning until they trust this stack's CA. To install it: docs/containers.md.\n"
}

read_arguments "$@"
check_docker
if [ -n "$restored" ]; then
  restore_stack
  address=${values[SERVER_ADDRESS]:-} mode=${values[DEPLOY_MODE]:-}
  open_mounted_files
  say_what_next 'If the address of the server has changed, edit SERVER_ADDRESS in .env.'
  exit 0
fi
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
  chmod 600 "$env_file" 2>/dev/null || refuse 1 "$env_file belongs to another user." 'run this as its owner'
  [ "$light" = yes ] || keep_release
  say_what_next '.env is complete; nothing was changed.'
else
  names=$(names_wanted)
  (write_env "$source_file" "$kind" "$env_file")
  [ "$light" = yes ] || keep_release
  say_what_next "Set in .env: $names"
fi
