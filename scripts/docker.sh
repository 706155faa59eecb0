# Sourced by the container scripts: prints errors with a remedy, checks Docker, and reads and writes
# .env. Reads .env as Compose does and writes it atomically. Needs bash and coreutils. Only
# `replace` changes a value that .env already has.

readonly ASSIGNMENT='^[[:space:]]*(export[[:space:]]+)?([A-Za-z_][A-Za-z0-9_]*)[[:space:]]*[=:][[:space:]]*(.*)$'
readonly COMMENTED='^#([A-Z][A-Z0-9_]*)='
# Windows editors may start a file with it.
readonly BYTE_ORDER_MARK=$'\xEF\xBB\xBF'
# Same as in packages/stack/secrets.ts: hard to confuse, and never in need of quotes in an env file.
readonly LETTERS=ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789
readonly LENGTH=32

refuse() { # EXIT-CODE SENTENCE REMEDY
  printf '%s\n  Remedy: %s\n' "$2" "$3" >&2
  exit "$1"
}

# --- Docker

check_docker() {
  command -v docker >/dev/null 2>&1 ||
    refuse 1 'Docker is not installed or not in PATH.' 'install Docker Engine with its Compose plugin: https://docs.docker.com/engine/install/'
  local version
  version=$(docker compose version --short 2>/dev/null) ||
    refuse 1 'Docker has no Compose plugin.' 'install Docker Compose 2.24.4 or newer: https://docs.docker.com/compose/install/'
  [[ $version =~ ^v?([0-9]+)\.([0-9]+)(\.([0-9]+))? ]] ||
    refuse 1 "Docker Compose reports an unknown version: '$version'." 'install Docker Compose 2.24.4 or newer'
  local -i major=10#${BASH_REMATCH[1]} minor=10#${BASH_REMATCH[2]} patch=10#${BASH_REMATCH[4]:-0}
  ((major > 2 || (major == 2 && (minor > 24 || (minor == 24 && patch >= 4))))) ||
    refuse 1 "Docker Compose $version is too old. Version 2.24.4 or newer is needed (for !override)." \
      'install a newer one: https://docs.docker.com/compose/install/'
}

docker_answers() {
  timeout 10 docker version >/dev/null 2>&1
}

check_docker_answers() {
  docker_answers || refuse 1 'Docker does not respond to this user.' 'start Docker, or repeat this command with sudo. To see the reason: docker version'
}

# --- Current settings

# Finds .env, or the template it will be created from. Sets env_file, source_file and kind (own or
# template).
find_env() {
  env_file=.env
  [ ! -L "$env_file" ] || env_file=$(readlink -f "$env_file")
  [ ! -d "$env_file" ] || refuse 1 "$env_file is a directory, not a settings file." 'move or rename it, then run this again'
  if [ -e "$env_file" ]; then source_file=$env_file kind=own; else source_file=.env.template kind=template; fi
  [ -r "$source_file" ] || refuse 1 "Couldn't read $source_file: permission denied." "run this as its owner"
}

declare -A values=()

# Sets `value` as Compose and Holdfast both read it. Refuses a $ that Compose would expand.
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
    # Nothing but a comment: no value.
    [[ $text != '#'* ]] || text=''
    value=${text%%[[:space:]]#*}
    [[ $value != *\$* ]] || refuse_dollar "$1"
  fi
}

refuse_dollar() {
  refuse 1 "The value of $1 in .env has a \$ outside single quotes. Docker Compose would read it as a variable." \
    "put the value in single quotes: $1='...'"
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

# --- New settings

declare -A wanted=() replaced=()
wanted_names=()

# Sets a value for a setting that has none.
want() { # NAME VALUE
  [ -n "${wanted[$1]:-}" ] || wanted_names+=("$1")
  wanted[$1]=$2
}

# Sets a value in place of the current one.
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

# Sets `secret` to 32 random letters. (In a subshell, an error would end only the subshell.)
new_secret() {
  if [ ${#random_letters} -lt $LENGTH ]; then
    random_letters=$(head -c 16384 /dev/urandom | LC_ALL=C tr -dc "$LETTERS")
    [ ${#random_letters} -ge $LENGTH ] || refuse 1 "Couldn't read random bytes from /dev/urandom." 'check it: ls -l /dev/urandom'
  fi
  secret=${random_letters:0:LENGTH}
  # Never reuse a letter.
  random_letters=${random_letters:LENGTH}
}

names_wanted() {
  local list
  printf -v list ', %s' "${wanted_names[@]}"
  printf '%s' "${list#, }"
}

# Prints the file with every wanted value: on its empty line (the last one counts), on the
# template's commented line, or at the end.
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

# Only one script at a time may change .env or the releases.
take_turn() {
  exec 9<.
  flock -n 9 2>/dev/null || refuse 1 'Another setup, secret rotation or password reset is running here.' 'wait until it ends, then run this again. (If none runs: install flock, from util-linux)'
}

write_env() { # SOURCE KIND TARGET
  local source=$1 kind=$2 target=$3 text draft owner
  # Atomic. The dot keeps empty lines at the end.
  text=$(filled_in "$source" "$kind" && printf .)
  umask 077
  draft=$(mktemp "$target.XXXXXX" 2>/dev/null) ||
    refuse 1 "Couldn't write a file next to $target." 'check the permissions of the directory and free disk space (df -h .), then run this again'
  # shellcheck disable=SC2064 # expand now
  trap "rm -f '$draft'" EXIT
  { printf '%s' "${text%.}" >"$draft" && sync "$draft"; } 2>/dev/null ||
    refuse 1 "Couldn't write $target. It is unchanged." 'check free disk space (df -h .), then run this again'
  # Keep the owner (of a new file: the owner of the directory), who runs Compose and must read it.
  if [ "$kind" = own ]; then owner=$target; else owner=$(dirname "$target"); fi
  if [ "$EUID" -eq 0 ]; then chown --reference="$owner" "$draft"; fi
  if [ "$kind" = own ]; then
    mv -f "$draft" "$target"
  else
    ln "$draft" "$target" 2>/dev/null || refuse 1 "Another process just created $target." 'run this again'
  fi
}
