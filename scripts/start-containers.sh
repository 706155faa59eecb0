# Sourced by start.sh: starts the stack in containers. Everything is checked before anything is changed; then every container and
# phase is one line while it waits, what ends ends the wait with its last words, and the stack proves itself with the probe.

readonly POLL_SECONDS=2 SAY_AGAIN_SECONDS=15 MOST_RESTARTS=3 LAST_WORDS=12
readonly PROBE_WITHIN_SECONDS=180

usage() {
  cat <<'TEXT'
Usage: ./scripts/start.sh [--timeout MINUTES] [--no-dns-check]
       ./scripts/start.sh --embedded [options]       without containers; --embedded --help lists its options

Starts the stack in containers that ./scripts/setup.sh has prepared, and proves that a device comes through.

  --timeout MINUTES   give up waiting after so long (default 20); the containers go on all the same
  --no-dns-check      start although a host name does not lead to this machine
  --help              this text
TEXT
}

read_arguments() {
  timeout_minutes=20 dns_check=yes
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h)
        usage
        exit 0
        ;;
      --no-dns-check) dns_check=no ;;
      --timeout)
        timeout_minutes=${2:-}
        shift
        ;;
      --timeout=*) timeout_minutes=${1#*=} ;;
      --data | --data=* | --offset | --offset=* | --listen | --listen=* | --env | --env=* | --detach | --flows)
        refuse 2 "${1%%=*} is an option of the embedded stack." 'write ./scripts/start.sh --embedded before it, or leave it out for the stack in containers'
        ;;
      *) refuse 2 "start.sh does not know $1." 'see ./scripts/start.sh --help' ;;
    esac
    [ $# -eq 0 ] || shift
  done
  [[ $timeout_minutes =~ ^[1-9][0-9]{0,3}$ ]] ||
    refuse 2 "--timeout '$timeout_minutes' is no number of minutes." 'give a whole number from 1 to 9999, such as --timeout 20'
}

# --- Before anything is changed

problems=()

problem() { # SENTENCE REMEDY
  problems+=("$1"$'\n'"    Remedy: $2")
}

is_light() {
  [[ :${values[COMPOSE_FILE]:-}: == */compose.light.yaml:* ]]
}

# As the operator has them; mounted into management.
readonly THRESHOLDS=monitor/config/thresholds.yml

check_set_up() {
  [ -e .env ] || refuse 1 'There is no .env here: the stack is not set up.' \
    './scripts/setup.sh ARCHIVE --address cot.example.org (a TAK Server release), or ./scripts/setup.sh --light --address cot.example.org (our own core); then ./scripts/start.sh'
  find_env
  read_settings "$env_file"
  [ -n "${values[COMPOSE_FILE]:-}" ] || refuse 1 'COMPOSE_FILE is not set in .env: no layers of the stack are chosen.' \
    'run ./scripts/setup.sh, which writes it; for the stack without containers: ./scripts/start.sh --embedded'
  check_docker_answers
  [ -r "$THRESHOLDS" ] || refuse 1 "$THRESHOLDS is missing or cannot be read: management takes its thresholds from it." \
    "get the shipped one back: git checkout $THRESHOLDS"
  # Management reads the thresholds at its start: with another sum Compose makes its container anew.
  HOLDFAST_THRESHOLDS=$(sha256sum "$THRESHOLDS" | cut -d ' ' -f 1)
  export HOLDFAST_THRESHOLDS
  composed=$(docker compose config 2>&1) || refuse 1 "Docker Compose does not take the settings: $(printf '%s' "$composed" | tail -n 1)" \
    'run ./scripts/setup.sh, which adds what is missing to .env, or correct the line that is named'
}

check_images() {
  is_light && return
  local release=${values[CORE_RELEASE]:-} image
  if [ -z "$release" ]; then
    problem 'CORE_RELEASE is not set in .env: no TAK Server release was set up.' 'run ./scripts/setup.sh ARCHIVE'
    return
  fi
  for image in "localhost/holdfast-core:$release" "localhost/holdfast-core-database:$release"; do
    docker image inspect "$image" >/dev/null 2>&1 ||
      problem "The image $image is not there." 'run ./scripts/setup.sh, which builds it'
  done
}

# Leaves the inode of the socket that listens on a port of all addresses.
listener_of() { # PORT
  local file hex at state
  printf -v hex %04X "$1"
  for file in /proc/net/tcp /proc/net/tcp6; do
    [ -r "$file" ] || continue
    while read -r _ at _ state _ _ _ _ _ inode _; do
      # IPv6 alone on one address is no obstacle: the stack publishes on IPv4.
      if [[ $state == 0A && ${at##*:} == "$hex" && ($file == /proc/net/tcp || $at =~ ^0+:) ]]; then return 0; fi
    done <"$file"
  done
  return 1
}

# Of a socket; empty where this account may not see it.
program_of() { # INODE
  local found
  found=$(find /proc/[0-9]*/fd -lname "socket:\[$1\]" -print -quit 2>/dev/null) || :
  [ -n "$found" ] || return 0
  found=${found#/proc/}
  printf '%s (process %s)' "$(cat "/proc/${found%%/*}/comm" 2>/dev/null)" "${found%%/*}"
}

check_ports() {
  local ports port holder name
  ports=$(printf '%s\n' "$composed" | sed -n 's/^ *published: "\{0,1\}\([0-9]\{1,\}\)"\{0,1\}$/\1/p' | sort -nu)
  for port in $ports; do
    [ -z "$(docker ps --quiet --filter "label=com.docker.compose.project=$project" --filter "publish=$port" 2>/dev/null)" ] || continue
    name=$(docker ps --filter "publish=$port" --format '{{.Names}}' 2>/dev/null | head -n 1)
    if [ -n "$name" ]; then
      problem "Port $port of this machine is taken by the container $name." "stop it: docker stop $name"
    elif listener_of "$port"; then
      holder=$(program_of "$inode")
      problem "Port $port of this machine is taken by ${holder:-another program}." \
        "stop that program (sudo ss -ltnp 'sport = :$port' names it), or have it listen elsewhere"
    fi
  done
}

# The IPv4 addresses of the interfaces, as the kernel knows them.
own_addresses() {
  local line address=''
  while IFS= read -r line; do
    case $line in
      *'|-- '*) address=${line##*'|-- '} ;;
      *'host LOCAL'*) printf '%s\n' "$address" ;;
    esac
  done </proc/net/fib_trie
}

check_names() {
  if [ "${values[DEPLOY_MODE]:-}" != subdomain ] || [ "$dns_check" = no ]; then return 0; fi
  if ! command -v getent >/dev/null || [ ! -r /proc/net/fib_trie ]; then
    printf '  note  The host names cannot be checked here: getent or /proc/net/fib_trie is missing.\n' >&2
    return
  fi
  local own name names=() base=${values[SERVER_ADDRESS]:-}
  own=" $(own_addresses | tr '\n' ' ') ${values[PUBLIC_ADDRESSES]:-} "
  own=${own//,/ }
  names=("$base" "monitor.$base" "nodered.$base" "takserver.$base")
  [[ :${values[COMPOSE_FILE]}: != */compose.stream.yaml:* ]] || names+=("stream.$base")
  for name in "${names[@]}"; do check_name "$name" "$own"; done
}

check_name() { # NAME OWN-ADDRESSES
  local found each away=''
  found=$(getent ahostsv4 "$1" 2>/dev/null | cut -d ' ' -f 1 | sort -u) || :
  if [ -z "$found" ]; then
    problem "The name $1 leads nowhere." "give it an A record with the address of this machine, wait until it is known, and try again; or --no-dns-check"
    return
  fi
  for each in $found; do
    case $each in
      127.*) printf '  note  %s is %s on this machine (/etc/hosts): what DNS says elsewhere was not looked at.\n' "$1" "$each" >&2 ;;
      *) [[ $2 == *" $each "* ]] || away=$each ;;
    esac
  done
  [ -z "$away" ] || problem "The name $1 leads to $away, which is no address of this machine (it has:${2% })." \
    "correct its A record; if $away leads here all the same (NAT), set PUBLIC_ADDRESSES=$away in .env; or --no-dns-check"
  if getent ahostsv6 "$1" 2>/dev/null | cut -d ' ' -f 1 | grep -v '^::ffff:' | grep -q :; then
    printf '  note  %s has an AAAA record, and nothing is published on IPv6: take it away (docs/containers.md).\n' "$1" >&2
  fi
}

# By the rules of the product itself, which are in our image.
check_settings() {
  local image said
  image=$(sed -n 's/^ *image: *//p' compose/program.yaml)
  if ! docker image inspect "$image" >/dev/null 2>&1; then
    printf '  ...   Building %s (first use, some minutes) ...\n' "$image" >&2
    said=$(docker compose build --quiet management 2>&1) || refuse 1 "The image $image could not be built:"$'\n'"$(printf '%s' "$said" | tail -n "$LAST_WORDS")" \
      'read the lines above; a package registry must be reachable for the first build'
  fi
  if ! said=$(docker compose config --format json | docker run --rm -i --network none --read-only --cap-drop ALL \
    --security-opt no-new-privileges --volume "$PWD/${THRESHOLDS%/*}:/app/${THRESHOLDS%/*}:ro" --entrypoint node "$image" /app/dist/preflight.js --of-compose 2>&1); then
    if [[ $said == *"Cannot find module"* ]]; then
      problem "The image $image is of an older Holdfast." 'run ./scripts/setup.sh, which builds it anew'
    else
      problems+=("$said")
    fi
  fi
}

preflight() {
  project=$(printf '%s\n' "$composed" | sed -n 's/^name: *//p' | head -n 1)
  check_images
  check_ports
  check_names
  check_settings
  [ ${#problems[@]} -gt 0 ] || return 0
  printf 'The stack was not started, and nothing was changed. To be put right:\n' >&2
  printf '  %s\n' "${problems[@]}" >&2
  exit 1
}

# --- Bringing it up

readonly FACTS='{{index .Config.Labels "com.docker.compose.service"}}|{{.State.Status}}|{{if .State.Health}}{{.State.Health.Status}}{{else}}none{{end}}|{{.State.ExitCode}}|{{.RestartCount}}|{{.HostConfig.RestartPolicy.Name}}|{{.State.OOMKilled}}|{{.State.FinishedAt}}|{{.Id}}'

declare -A shown=() restarts=() shown_phase=()

elapsed() {
  printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60))
}

tell() { # SERVICE WORDS
  printf '  %6s  %-16s %s\n' "$(elapsed)" "$1" "$2" >&2
  said_at=$SECONDS
}

bring_up() {
  begun=$(date -u +%Y-%m-%dT%H:%M:%S)
  SECONDS=0 said_at=0
  said_file=$(mktemp)
  docker compose --ansi never --progress plain up -d --remove-orphans >"$said_file" 2>&1 </dev/null &
  up=$!
  trap 'kill "$up" 2>/dev/null || :; rm -f "$said_file"' EXIT
  trap 'printf "\nNo longer waiting; what was started goes on. ./scripts/start.sh waits again.\n" >&2; exit 130' INT TERM
  wait_until_up
}

wait_until_up() {
  local up_ended=no
  while :; do
    if [ "$up_ended" = no ] && ! kill -0 "$up" 2>/dev/null; then
      up_ended=yes
      wait "$up" || up_failed
    fi
    look_at_all "$up_ended"
    if [ "$up_ended" = yes ] && [ -z "$waiting" ]; then return 0; fi
    [ $SECONDS -lt $((timeout_minutes * 60)) ] || too_late
    [ $((SECONDS - said_at)) -lt $SAY_AGAIN_SECONDS ] || say_waiting
    sleep "$POLL_SECONDS"
  done
}

# Tells what is new, and leaves who is not there yet in `waiting`.
look_at_all() { # UP-ENDED
  local service status health code count policy oom finished id ids
  waiting=''
  mapfile -t ids < <(docker compose ps --all --quiet 2>/dev/null)
  [ ${#ids[@]} -gt 0 ] || {
    [ "$1" = yes ] || waiting='the first container'
    return 0
  }
  while IFS='|' read -r service status health code count policy oom finished id; do
    [ -n "$id" ] || continue
    look_at "$1"
  done < <(docker inspect --format "$FACTS" "${ids[@]}" 2>/dev/null)
}

look_at() { # UP-ENDED; the rest is of the caller
  local words='' is_there=no
  : "${restarts[$id]:=$count}"
  case $status in
    running)
      case $health in
        none) words='runs' is_there=yes ;;
        healthy) words='is healthy' is_there=yes ;;
        *) words="is $health" ;;
      esac
      ;;
    exited | dead)
      if [ "$policy" != no ] && [ "$policy" != '' ]; then
        [ "$1" = no ] || container_failed "$service" "$id" "ended with $code" "$oom"
      elif [ "$code" = 0 ]; then
        words='has done its work' is_there=yes
      elif [[ ${finished:0:19} > $begun || ${finished:0:19} == "$begun" ]]; then
        container_failed "$service" "$id" "ended with $code" "$oom"
      fi
      ;;
    restarting) words="ended with $code, and is started again" ;;
  esac
  ((count - restarts[$id] < MOST_RESTARTS)) ||
    container_failed "$service" "$id" "was started $((count - restarts[$id])) times and ended each time" "$oom"
  if [ -n "$words" ] && [ "${shown[$service]:-}" != "$words" ]; then
    shown[$service]=$words
    tell "$service" "$words"
  fi
  [ "$is_there" = yes ] || waiting+="${waiting:+, }$service"
  [ "$is_there" = yes ] || [ "$status" != running ] || tell_phase
}

# What a core says about how far it is (the event core.phase of its log).
tell_phase() {
  local line phase
  [ "$service" = core ] || return 0
  line=$(docker logs --tail 60 "$id" 2>&1 | grep '"core\.phase"' | tail -n 1) || return 0
  phase=$(printf '%s' "$line" | sed -n 's/.*"phase":"\([^"]*\)".*/\1/p')
  if [ -z "$phase" ] || [ "${shown_phase[$id]:-}" = "$phase" ]; then return 0; fi
  shown_phase[$id]=$phase
  tell "$service" "... $phase"
}

say_waiting() {
  local last
  if [ -n "$waiting" ] && [ "$waiting" != 'the first container' ]; then
    tell '' "waiting for: $waiting${shown_phase[*]:+ (core: ${shown_phase[*]: -1})}"
  else
    last=$(grep -v '^ *$' "$said_file" | tail -n 1)
    tell '' "Docker: ${last:-at work}"
  fi
}

# --- What goes wrong

# The lines of a log that matter: what is not said for information alone.
last_words() { # CONTAINER
  local lines
  lines=$(docker logs --tail 200 "$1" 2>&1 | grep -v '"level":"info"' | tail -n "$LAST_WORDS") || :
  [ -n "$lines" ] || lines=$(docker logs --tail "$LAST_WORDS" "$1" 2>&1) || :
  printf '%s\n' "${lines:-(it said nothing)}" | cut -c 1-400 | sed 's/^/    /' >&2
}

container_failed() { # SERVICE CONTAINER WHAT OOM-KILLED
  local remedy="put right what it says, then ./scripts/start.sh again; all of it: docker compose logs $1"
  [ "$4" != true ] || remedy="it had too little memory: give it more (CORE_MEMORY or CORE_DATABASE_MEMORY in .env, mem_limit in compose/compose.local.yaml), then ./scripts/start.sh again"
  printf '\n%s %s. Its last words:\n' "$1" "$3" >&2
  last_words "$2"
  refuse 1 "The stack is not up after $(elapsed) minutes; what runs goes on." "$remedy"
}

# Compose has given up, and names whom it waited for.
up_failed() {
  local said service id
  said=$(cat "$said_file")
  look_at_all yes
  if [[ $said =~ container\ ([A-Za-z0-9_.-]+)\ (is\ unhealthy|exited) ]]; then
    service=$(docker inspect --format '{{index .Config.Labels "com.docker.compose.service"}}' "${BASH_REMATCH[1]}" 2>/dev/null) || service=${BASH_REMATCH[1]}
    container_failed "$service" "${BASH_REMATCH[1]}" 'does not get healthy' false
  elif [[ $said =~ service\ \"([A-Za-z0-9_-]+)\"\ didn ]]; then
    id=$(docker compose ps --all --quiet "${BASH_REMATCH[1]}" | head -n 1)
    container_failed "${BASH_REMATCH[1]}" "$id" 'did not complete' false
  fi
  printf '%s\n' "$said" | grep -v '^ *$' | tail -n "$LAST_WORDS" | sed 's/^/    /' >&2
  refuse 1 'Docker Compose could not bring the stack up.' 'see "When it does not start" in docs/containers.md, then ./scripts/start.sh again'
}

too_late() {
  local service id
  for service in ${waiting//,/ }; do
    id=$(docker compose ps --all --quiet "$service" 2>/dev/null | head -n 1)
    [ -n "$id" ] || continue
    printf '\n%s is not there yet. Its last words:\n' "$service" >&2
    last_words "$id"
  done
  refuse 1 "The stack is not up within $timeout_minutes minutes; it goes on starting." 'look at the lines above; ./scripts/start.sh waits again, with --timeout MINUTES longer'
}

# --- The proof

prove_stack() {
  local within=$((timeout_minutes * 60 - SECONDS))
  ((within < PROBE_WITHIN_SECONDS)) || within=$PROBE_WITHIN_SECONDS
  ((within > 30)) || within=30
  in_management prove --within "$within" </dev/null
}

say_where() {
  local base=${values[SERVER_ADDRESS]} enrollment=${values[CORE_ENROLLMENT_PORT]:-8446}
  printf '\n'
  if [ "${values[DEPLOY_MODE]}" = subdomain ]; then
    printf '  Portal       https://%s/\n  Monitor      https://monitor.%s/\n  Flow engine  https://nodered.%s/\n  Core         https://takserver.%s/\n' \
      "$base" "$base" "$base" "$base"
  else
    printf '  Portal       https://%s/\n  Monitor      https://%s/monitor/\n  Flow engine  https://%s/nodered/\n  Core         https://%s:%s/\n' \
      "$base" "$base" "$base" "$base" "$enrollment"
  fi
  printf '  Devices      enroll at %s:%s, stream at %s:8089\n' "$base" "$enrollment" "$base"
  printf '  Sign in      as webadmin; the password is CORE_WEBADMIN_PASSWORD in %s\n' "$(readlink -f "$env_file")"
  printf '  Stop with    ./scripts/stop.sh\n'
}

start_containers() { # ARGUMENTS
  read_arguments "$@"
  check_docker
  check_set_up
  preflight
  if [ -n "$(kept_rotations)" ]; then printf 'A rotation of secrets is not complete yet; this start goes on with it.\n' >&2; fi
  bring_up
  tell 'all' 'are there; the probe goes the way of a device ...'
  printf '\n'
  if ! prove_stack; then
    say_where
    refuse 1 'The containers run, but the probe does not come through: nobody should rely on this stack yet.' \
      'see the stage that failed above and docs/health.md; then ./scripts/start.sh again, which only proves'
  fi
  end_rotations
  say_where
}
