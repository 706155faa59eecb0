#!/usr/bin/env bash
# Prepares the stack in containers: .env with an address, a mode, the layers and a random value for every secret. What is
# set already is never changed. Needs Docker with Compose, bash and coreutils, nothing else.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

readonly SECRETS=(CORE_DB_PASSWORD CORE_READER_PASSWORD APP_DB_PASSWORD IDENTITY_DB_PASSWORD IDENTITY_SECRET_KEY
  IDENTITY_TOKEN LDAP_BIND_PASSWORD CORE_WEBADMIN_PASSWORD AUDIT_KEY SESSION_KEY)
# As compose/embedded/secrets.ts has them: hard to confuse, and nothing that an env file needs quotes for.
readonly LETTERS=ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789
readonly LENGTH=32
readonly ASSIGNMENT='^[[:space:]]*(export[[:space:]]+)?([A-Za-z_][A-Za-z0-9_]*)[[:space:]]*[=:][[:space:]]*(.*)$'
readonly COMMENTED='^#([A-Z][A-Z0-9_]*)='
# What editors of Windows put before the first line.
readonly BYTE_ORDER_MARK=$'\xEF\xBB\xBF'

usage() {
  cat <<'TEXT'
Usage: ./scripts/setup.sh --light [--address NAME] [--mode subdomain|direct]

Writes .env for the stack in containers. Run again it adds what is missing and changes nothing that is set.

  --light          our own core and identity provider: the whole stack without a TAK Server release
  --address NAME   name or address that phones use to reach this server (SERVER_ADDRESS); needed the first time
  --mode MODE      subdomain: public certificates, a host name for each part (the default for a name)
                   direct: the stack's own CA on one name or address (the default for an address)
  --help           this text
TEXT
}

refuse() { # EXIT-CODE SENTENCE REMEDY
  printf '%s\n  Remedy: %s\n' "$2" "$3" >&2
  exit "$1"
}

# --- What is asked for

read_arguments() {
  light=no address='' mode=''
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
      *) refuse_production ;;
    esac
    shift
  done
  [ "$light" = yes ] || refuse_production
  case $mode in
    '' | subdomain | direct) ;;
    *) refuse 2 "There is no mode $mode." 'give --mode subdomain or --mode direct' ;;
  esac
}

refuse_production() {
  refuse 2 'Production from a TAK Server release archive is not part of this release yet.' \
    'set up the stack with our own core: ./scripts/setup.sh --light --address NAME'
}

# --- What has to be here

check_docker() {
  command -v docker >/dev/null 2>&1 ||
    refuse 1 'Docker is not installed, or not in PATH.' 'install Docker Engine with its Compose plugin: https://docs.docker.com/engine/install/'
  local version
  version=$(docker compose version --short 2>/dev/null) ||
    refuse 1 'Docker has no Compose plugin.' 'install Docker Compose 2.24.4 or newer: https://docs.docker.com/compose/install/'
  [[ $version =~ ^v?([0-9]+)\.([0-9]+)(\.([0-9]+))? ]] ||
    refuse 1 "Docker Compose calls its version '$version', which says nothing." 'install Docker Compose 2.24.4 or newer'
  local -i major=10#${BASH_REMATCH[1]} minor=10#${BASH_REMATCH[2]} patch=10#${BASH_REMATCH[4]:-0}
  ((major > 2 || (major == 2 && (minor > 24 || (minor == 24 && patch >= 4))))) ||
    refuse 1 "Docker Compose is $version; the layers need 2.24.4 or newer, which knows !override." \
      'install a newer one: https://docs.docker.com/compose/install/'
}

# --- The settings as they are

declare -A values=()

# Leaves the value as Compose and Holdfast read it in `value`; a $ that Compose would replace is refused.
read_value() { # NAME TEXT
  local text=${2%"${2##*[![:space:]]}"} bare
  local single="^'([^']*)'[[:space:]]*(#.*)?\$" double='^"(([^"\]|\\.)*)"[[:space:]]*(#.*)?$'
  if [[ $text =~ $single ]]; then
    value=${BASH_REMATCH[1]}
  elif [[ $text =~ $double ]]; then
    value=${BASH_REMATCH[1]}
    bare=${value//\\\\/}
    bare=${bare//\\\$/}
    [[ $bare != *\$* ]] || refuse_dollar "$1"
  else
    # A comment is no value.
    [[ $text != '#'* ]] || text=''
    value=${text%%[[:space:]]#*}
    [[ $value != *\$* ]] || refuse_dollar "$1"
  fi
}

refuse_dollar() {
  refuse 1 "The value of $1 in .env has a \$ outside of single quotes, where Docker Compose puts a variable." \
    "write the value in single quotes: $1='...'"
}

read_settings() { # FILE
  local line value
  while IFS= read -r line || [ -n "$line" ]; do
    line=${line#"$BYTE_ORDER_MARK"}
    line=${line%$'\r'}
    [[ $line =~ $ASSIGNMENT ]] || continue
    local name=${BASH_REMATCH[2]}
    read_value "$name" "${BASH_REMATCH[3]}"
    values[$name]=$value
  done <"$1"
}

# --- The settings as they shall be

declare -A wanted=()

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
  [ -n "$set" ] || wanted[SERVER_ADDRESS]=$address
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
  [ -n "$set" ] || wanted[DEPLOY_MODE]=$mode
}

choose_layers() {
  local set=${values[COMPOSE_FILE]:-}
  if [ -z "$set" ]; then
    wanted[COMPOSE_FILE]=compose/compose.yaml:compose/compose.light.yaml
    [ "$mode" = subdomain ] || wanted[COMPOSE_FILE]+=:compose/compose.direct.yaml
    return
  fi
  local has_direct=no
  [[ :$set: != */compose.direct.yaml:* ]] || has_direct=yes
  if [ "$mode" = direct ] && [ "$has_direct" = no ]; then
    refuse 1 'DEPLOY_MODE is direct and COMPOSE_FILE lacks compose/compose.direct.yaml: nobody would answer enrollment.' \
      'add compose/compose.direct.yaml behind compose/compose.light.yaml in COMPOSE_FILE'
  elif [ "$mode" = subdomain ] && [ "$has_direct" = yes ]; then
    refuse 1 'DEPLOY_MODE is subdomain and COMPOSE_FILE names compose/compose.direct.yaml, which is for direct mode.' \
      'take it out of COMPOSE_FILE, or set DEPLOY_MODE=direct'
  fi
  [[ :$set: == */compose.light.yaml:* ]] ||
    refuse 1 'COMPOSE_FILE lacks compose/compose.light.yaml.' 'add it behind compose/compose.yaml in COMPOSE_FILE'
}

generate_secrets() {
  local name pool
  for name in "${SECRETS[@]}"; do
    [ -z "${values[$name]:-}" ] || continue
    pool=$(head -c 4096 /dev/urandom | LC_ALL=C tr -dc "$LETTERS")
    [ ${#pool} -ge $LENGTH ] || refuse 1 '/dev/urandom gives no random bytes.' 'see what this machine has at /dev/urandom'
    wanted[$name]=${pool:0:LENGTH}
  done
}

# --- .env

names_wanted() {
  local name list=''
  for name in SERVER_ADDRESS DEPLOY_MODE COMPOSE_FILE "${SECRETS[@]}"; do
    [ -z "${wanted[$name]:-}" ] || list+=", $name"
  done
  printf '%s' "${list#, }"
}

# The file with every wanted value: in its empty lines (of two, the last one counts), in the template's commented one, or
# else at the end.
filled_in() { # FILE, KIND (template or own)
  local line bare name value
  local -A written=()
  while IFS= read -r line || [ -n "$line" ]; do
    name='' bare=${line#"$BYTE_ORDER_MARK"}
    if [[ ${bare%$'\r'} =~ $ASSIGNMENT ]]; then
      name=${BASH_REMATCH[2]}
      read_value "$name" "${BASH_REMATCH[3]}"
      [ -z "$value" ] || name=''
    elif [ "$2" = template ] && [[ $line =~ $COMMENTED ]]; then
      name=${BASH_REMATCH[1]}
    fi
    if [ -n "$name" ] && [ -n "${wanted[$name]:-}" ]; then
      line="$name=${wanted[$name]}"
      written[$name]=yes
    fi
    printf '%s\n' "$line"
  done <"$1"
  [ ${#wanted[@]} -gt ${#written[@]} ] || return 0
  printf '\n# Added by ./scripts/setup.sh\n'
  for name in SERVER_ADDRESS DEPLOY_MODE COMPOSE_FILE "${SECRETS[@]}"; do
    [ -z "${wanted[$name]:-}" ] || [ -n "${written[$name]:-}" ] || printf '%s=%s\n' "$name" "${wanted[$name]}"
  done
}

write_env() {
  local source=$1 kind=$2 target=$3 text draft owner
  # Whole or not at all; the point keeps empty lines at the end.
  text=$(filled_in "$source" "$kind" && printf .)
  umask 077
  draft=$(mktemp "$target.XXXXXX" 2>/dev/null) ||
    refuse 1 "Nothing can be written beside $target." 'see that this directory may be written, and that the disk has room'
  # shellcheck disable=SC2064 # the name as it is now
  trap "rm -f '$draft'" EXIT
  { printf '%s' "${text%.}" >"$draft" && sync "$draft"; } 2>/dev/null ||
    refuse 1 "$target cannot be written; it is as it was." 'see that the disk has room, then run this again'
  # Who owned it, or else the directory, reads it: Compose does, as whoever calls it.
  if [ "$kind" = own ]; then owner=$target; else owner=$(dirname "$target"); fi
  if [ "$EUID" -eq 0 ]; then chown --reference="$owner" "$draft"; fi
  if [ "$kind" = own ]; then
    mv -f "$draft" "$target"
  else
    ln "$draft" "$target" 2>/dev/null || refuse 1 "$target was made by somebody else just now." 'run this again'
  fi
}

# What is mounted is read by accounts of the containers, whatever umask it was unpacked with.
open_mounted_files() {
  chmod -R go+rX compose/caddy compose/video 2>/dev/null ||
    refuse 1 'The files in compose/caddy and compose/video cannot be made readable for the containers.' \
      'run this as their owner, or: chmod -R go+rX compose/caddy compose/video'
}

say_what_next() { # WHAT WAS DONE
  printf '%s\n\n' "$1"
  if [ "$mode" = subdomain ]; then
    printf 'Before the start, DNS must lead to this machine for %s, monitor.%s, nodered.%s and takserver.%s.\n' \
      "$address" "$address" "$address" "$address"
  fi
  timeout 10 docker version >/dev/null 2>&1 ||
    printf 'Docker does not answer this account now: docker version says why. Where permission is denied, put sudo before docker.\n'
  printf 'Start the stack here with:  docker compose up -d --wait\n'
  printf 'Then sign in at https://%s/ as webadmin with CORE_WEBADMIN_PASSWORD of .env. Keep a copy of .env elsewhere.\n' "$address"
  [ "$mode" = subdomain ] || printf 'A browser warns until it knows the CA of this stack: docs/containers.md says how to get it.\n'
}

read_arguments "$@"
check_docker
env_file=.env
[ ! -L "$env_file" ] || env_file=$(readlink -f "$env_file")
[ ! -d "$env_file" ] || refuse 1 "$env_file is a directory." 'move it away: it is to be a file of settings'
if [ -e "$env_file" ]; then source_file=$env_file kind=own; else source_file=.env.template kind=template; fi
[ -r "$source_file" ] || refuse 1 "$source_file cannot be read by this account." "run this as its owner"
read_settings "$source_file"
choose_address
choose_mode
choose_layers
generate_secrets
open_mounted_files
if [ ${#wanted[@]} -eq 0 ]; then
  chmod 600 "$env_file" 2>/dev/null || refuse 1 "$env_file belongs to somebody else." 'run this as its owner'
  say_what_next '.env has everything that is needed; nothing was changed.'
else
  names=$(names_wanted)
  write_env "$source_file" "$kind" "$env_file"
  say_what_next "Set in .env: $names"
fi
