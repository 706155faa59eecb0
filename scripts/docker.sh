# Sourced by the scripts for the stack in containers: refusals with a remedy, what Docker must be able to do, and .env, read as
# Compose reads it and written whole or not at all. Needs bash and coreutils. What is set in .env is changed by `replace` alone.

readonly ASSIGNMENT='^[[:space:]]*(export[[:space:]]+)?([A-Za-z_][A-Za-z0-9_]*)[[:space:]]*[=:][[:space:]]*(.*)$'
readonly COMMENTED='^#([A-Z][A-Z0-9_]*)='
# What editors of Windows put before the first line.
readonly BYTE_ORDER_MARK=$'\xEF\xBB\xBF'
# As packages/stack/secrets.ts has them: hard to confuse, and nothing that an env file needs quotes for.
readonly LETTERS=ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789
readonly LENGTH=32

refuse() { # EXIT-CODE SENTENCE REMEDY
  printf '%s\n  Remedy: %s\n' "$2" "$3" >&2
  exit "$1"
}

# --- Docker

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

docker_answers() {
  timeout 10 docker version >/dev/null 2>&1
}

check_docker_answers() {
  docker_answers || refuse 1 'Docker does not answer this account.' 'start it, or put sudo before this; docker version says what is the matter'
}

# --- The settings as they are

# Where .env is, or the template that it will be made of: leaves env_file, source_file and kind (own or template).
find_env() {
  env_file=.env
  [ ! -L "$env_file" ] || env_file=$(readlink -f "$env_file")
  [ ! -d "$env_file" ] || refuse 1 "$env_file is a directory." 'move it away: it is to be a file of settings'
  if [ -e "$env_file" ]; then source_file=$env_file kind=own; else source_file=.env.template kind=template; fi
  [ -r "$source_file" ] || refuse 1 "$source_file cannot be read by this account." "run this as its owner"
}

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

declare -A wanted=() replaced=()
wanted_names=()

# A value for a setting that has none yet.
want() { # NAME VALUE
  [ -n "${wanted[$1]:-}" ] || wanted_names+=("$1")
  wanted[$1]=$2
}

# A value in the place of the one that is set.
replace() { # NAME VALUE
  want "$1" "$2"
  replaced[$1]=yes
}

random_letters=''

want_secret() { # NAME
  [ -z "${values[$1]:-}" ] || return 0
  new_secret
  want "$1" "$secret"
}

# Puts 32 random letters into `secret`. (Printed from a subshell, a refusal would end that alone.)
new_secret() {
  if [ ${#random_letters} -lt $LENGTH ]; then
    random_letters=$(head -c 16384 /dev/urandom | LC_ALL=C tr -dc "$LETTERS")
    [ ${#random_letters} -ge $LENGTH ] || refuse 1 '/dev/urandom gives no random bytes.' 'see what this machine has at /dev/urandom'
  fi
  secret=${random_letters:0:LENGTH}
  # No letter is used twice.
  random_letters=${random_letters:LENGTH}
}

names_wanted() {
  local list
  printf -v list ', %s' "${wanted_names[@]}"
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
      [ -z "$value" ] || [ -n "${replaced[$name]:-}" ] || name=''
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
  for name in "${wanted_names[@]}"; do
    [ -n "${written[$name]:-}" ] || printf '%s=%s\n' "$name" "${wanted[$name]}"
  done
}

# One at a time changes .env or the releases, until it has ended.
take_turn() {
  exec 9<.
  flock -n 9 2>/dev/null || refuse 1 'Another set-up, rotation or new password is under way here.' 'wait until it has ended (this needs flock of util-linux)'
}

write_env() { # SOURCE KIND TARGET
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
