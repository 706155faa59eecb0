# Sourced by start.sh: starts the stack in containers. Checks everything before it changes anything.
# While it waits, prints a line for each container and phase. Stops waiting when a container fails,
# and prints the end of its log. Ends with the connection check.

readonly POLL_SECONDS=2 SAY_AGAIN_SECONDS=15 MAX_RESTARTS=3 LAST_WORDS=12
readonly PROBE_WITHIN_SECONDS=180

usage() {
  cat <<'TEXT'
Usage: ./scripts/start.sh [--timeout MINUTES] [--no-dns-check]
       ./scripts/start.sh --embedded [options]       without containers; --embedded --help lists its options

Starts the stack in containers that ./scripts/setup.sh has prepared, and checks that a device can connect.

  --timeout MINUTES   stop waiting after MINUTES (default 20); the containers keep running
  --no-dns-check      start even if a host name does not resolve to this machine
  --help              show this help
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
        refuse 2 "${1%%=*} is an option of the embedded stack." 'for an embedded stack, add --embedded. For the stack in containers, leave the option out'
        ;;
      *) refuse 2 "Unknown option: $1." 'see ./scripts/start.sh --help' ;;
    esac
    [ $# -eq 0 ] || shift
  done
  [[ $timeout_minutes =~ ^[1-9][0-9]{0,3}$ ]] ||
    refuse 2 "--timeout '$timeout_minutes' is not a number of minutes." 'use a whole number from 1 to 9999, such as --timeout 20'
}

# --- Before anything is changed

problems=()

problem() { # SENTENCE REMEDY
  problems+=("$1"$'\n'"    Remedy: $2")
}

is_light() {
  [[ :${values[COMPOSE_FILE]:-}: == */compose.light.yaml:* ]]
}

# The operator's file, mounted into management.
readonly THRESHOLDS=monitor/config/thresholds.yml

check_set_up() {
  [ -e .env ] || refuse 1 'The stack is not set up: .env is missing.' \
    'run ./scripts/setup.sh ARCHIVE --address cot.example.org (for a TAK Server release) or ./scripts/setup.sh --light --address cot.example.org (for our own core). Then run ./scripts/start.sh'
  find_env
  read_settings "$env_file"
  [ -n "${values[COMPOSE_FILE]:-}" ] || refuse 1 'COMPOSE_FILE is not set in .env.' \
    'run ./scripts/setup.sh, which sets it. For the stack without containers: ./scripts/start.sh --embedded'
  check_docker_answers
  [ -r "$THRESHOLDS" ] || refuse 1 "Couldn't read $THRESHOLDS, which management needs." \
    "check its permissions, or restore the shipped file: git checkout $THRESHOLDS"
  # Management reads the thresholds when it starts: a changed checksum makes Compose recreate its
  # container.
  HOLDFAST_THRESHOLDS=$(sha256sum "$THRESHOLDS" | cut -d ' ' -f 1)
  export HOLDFAST_THRESHOLDS
  composed=$(docker compose config 2>&1) || refuse 1 "Docker Compose rejected the settings: $(printf '%s' "$composed" | tail -n 1)" \
    'run ./scripts/setup.sh, which adds missing settings to .env, or correct the setting that the message names'
}

check_images() {
  is_light && return
  local release=${values[CORE_RELEASE]:-} image
  if [ -z "$release" ]; then
    problem 'No TAK Server release is set up: CORE_RELEASE is not set in .env.' 'run ./scripts/setup.sh ARCHIVE'
    return
  fi
  for image in "localhost/holdfast-core:$release" "localhost/holdfast-core-database:$release"; do
    docker image inspect "$image" >/dev/null 2>&1 ||
      problem "The image $image is missing." 'run ./scripts/setup.sh, which builds it'
  done
}

# Sets `inode` to the socket that listens on a port; false if there is none.
listener_of() { # PORT
  local file hex at state
  printf -v hex %04X "$1"
  for file in /proc/net/tcp /proc/net/tcp6; do
    [ -r "$file" ] || continue
    while read -r _ at _ state _ _ _ _ _ inode _; do
      # A listener on a single IPv6 address is no conflict: the stack publishes on IPv4.
      if [[ $state == 0A && ${at##*:} == "$hex" && ($file == /proc/net/tcp || $at =~ ^0+:) ]]; then return 0; fi
    done <"$file"
  done
  return 1
}

# Prints the program that owns a socket; nothing if this user may not see it.
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
      problem "Port $port is in use by the container $name." "stop it: docker stop $name"
    elif listener_of "$port"; then
      holder=$(program_of "$inode")
      problem "Port $port is in use by ${holder:-another program}." \
        "stop that program (to find it: sudo ss -ltnp 'sport = :$port'), or move it to another port"
    fi
  done
}

# Prints the IPv4 addresses of this machine.
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
    printf "  note  Couldn't check the host names: getent or /proc/net/fib_trie is missing.\n" >&2
    return
  fi
  local own name names=() base=${values[SERVER_ADDRESS]:-}
  own=" $(own_addresses | tr '\n' ' ') ${values[PUBLIC_ADDRESSES]:-} "
  own=${own//,/ }
  names=("$base" "monitor.$base" "nodered.$base" "takserver.$base")
  [[ :${values[COMPOSE_FILE]}: != */compose.stream.yaml:* ]] || names+=("stream.$base")
  [[ :${values[COMPOSE_FILE]}: != */compose.cloudtak.yaml:* ]] || names+=("map.$base")
  for name in "${names[@]}"; do check_name "$name" "$own"; done
}

check_name() { # NAME OWN-ADDRESSES
  local found each away=''
  found=$(getent ahostsv4 "$1" 2>/dev/null | cut -d ' ' -f 1 | sort -u) || :
  if [ -z "$found" ]; then
    problem "$1 does not resolve in DNS." "add an A record with the address of this machine, wait until it resolves, then try again. To skip this check: --no-dns-check"
    return
  fi
  for each in $found; do
    case $each in
      127.*) printf '  note  %s resolves to %s here (/etc/hosts). Public DNS was not checked.\n' "$1" "$each" >&2 ;;
      *) [[ $2 == *" $each "* ]] || away=$each ;;
    esac
  done
  [ -z "$away" ] || problem "$1 resolves to $away, which is not an address of this machine (it has:${2% })." \
    "correct its A record. If $away reaches this machine through NAT, set PUBLIC_ADDRESSES=$away in .env. To skip this check: --no-dns-check"
  if getent ahostsv6 "$1" 2>/dev/null | cut -d ' ' -f 1 | grep -v '^::ffff:' | grep -q :; then
    printf '  note  %s has an AAAA record, but the stack does not use IPv6. Remove the record (docs/containers.md).\n' "$1" >&2
  fi
}

# Checks the settings with the program in our image.
check_settings() {
  local image said
  image=$(sed -n 's/^ *image: *//p' compose/program.yaml)
  if ! docker image inspect "$image" >/dev/null 2>&1; then
    printf '  ...   Building %s (first start only, a few minutes)...\n' "$image" >&2
    said=$(docker compose build --quiet management 2>&1) || refuse 1 "Couldn't build the image $image:"$'\n'"$(printf '%s' "$said" | tail -n "$LAST_WORDS")" \
      'fix what the lines above report. The first build needs access to a package registry'
  fi
  if ! said=$(docker compose config --format json | docker run --rm -i --network none --read-only --cap-drop ALL \
    --security-opt no-new-privileges --volume "$PWD/${THRESHOLDS%/*}:/app/${THRESHOLDS%/*}:ro" --entrypoint node "$image" /app/dist/preflight.js --of-compose 2>&1); then
    if [[ $said == *"Cannot find module"* ]]; then
      problem "The image $image is from an older Holdfast release." 'run ./scripts/setup.sh, which rebuilds it'
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
  printf 'The stack was not started, and nothing was changed. Fix these problems first:\n' >&2
  printf '  %s\n' "${problems[@]}" >&2
  exit 1
}

# --- Bringing it up

readonly FACTS='{{index .Config.Labels "com.docker.compose.service"}}|{{.State.Status}}|{{if .State.Health}}{{.State.Health.Status}}{{else}}none{{end}}|{{.State.ExitCode}}|{{.RestartCount}}|{{.HostConfig.RestartPolicy.Name}}|{{.State.OOMKilled}}|{{.State.FinishedAt}}|{{.Id}}'

declare -A shown=() restarts=() shown_phase=()

# Sets `waited` to the seconds since the start. (SECONDS of bash follows the clock of the machine.)
look_at_time() {
  local uptime
  read -r uptime _ </proc/uptime
  waited=$((${uptime%%.*} - began_at))
}

elapsed() {
  printf '%d:%02d' $((waited / 60)) $((waited % 60))
}

tell() { # SERVICE WORDS
  printf '  %6s  %-16s %s\n' "$(elapsed)" "$1" "$2" >&2
  said_at=$waited
}

bring_up() {
  begun=$(date -u +%Y-%m-%dT%H:%M:%S)
  began_at=0 said_at=0
  look_at_time
  began_at=$waited waited=0
  said_file=$(mktemp)
  docker compose --ansi never --progress plain up -d --remove-orphans >"$said_file" 2>&1 </dev/null &
  up=$!
  trap 'kill "$up" 2>/dev/null || :; rm -f "$said_file"' EXIT
  trap 'printf "\nStopped waiting. The containers keep starting. To wait again: ./scripts/start.sh\n" >&2; exit 130' INT TERM
  wait_until_up
}

wait_until_up() {
  local up_ended=no
  while :; do
    if [ "$up_ended" = no ] && ! kill -0 "$up" 2>/dev/null; then
      up_ended=yes
      wait "$up" || up_failed
    fi
    look_at_time
    look_at_all "$up_ended"
    if [ "$up_ended" = yes ] && [ -z "$waiting" ]; then return 0; fi
    [ "$waited" -lt $((timeout_minutes * 60)) ] || too_late
    [ $((waited - said_at)) -lt $SAY_AGAIN_SECONDS ] || say_waiting
    sleep "$POLL_SECONDS"
  done
}

# Reports changes, and sets `waiting` to the services that are not ready.
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

look_at() { # UP-ENDED; uses the variables of the caller
  local words='' is_there=no
  : "${restarts[$id]:=$count}"
  case $status in
    running)
      case $health in
        none) words='running' is_there=yes ;;
        *) words=$health ;;
      esac
      ;;
    exited | dead)
      if [ "$policy" != no ] && [ "$policy" != '' ]; then
        [ "$1" = no ] || container_failed "$service" "$id" "exited with code $code" "$oom"
      elif [ "$code" = 0 ]; then
        words='completed' is_there=yes
      elif [[ ${finished:0:19} > $begun || ${finished:0:19} == "$begun" ]]; then
        container_failed "$service" "$id" "exited with code $code" "$oom"
      fi
      ;;
    restarting) words="exited with code $code, restarting" ;;
  esac
  [ "$words" != healthy ] || is_there=yes
  ((count - restarts[$id] < MAX_RESTARTS)) ||
    container_failed "$service" "$id" "was restarted $((count - restarts[$id])) times and exited each time" "$oom"
  if [ -n "$words" ] && [ "${shown[$service]:-}" != "$words" ]; then
    shown[$service]=$words
    tell "$service" "$words"
  fi
  [ "$is_there" = yes ] || waiting+="${waiting:+, }$service"
  [ "$is_there" = yes ] || [ "$status" != running ] || tell_phase
}

# Reports the start phase of the core (event core.phase in its log).
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
    tell '' "Docker: ${last:-working}"
  fi
}

# --- Failures

# Prints the last log lines above level info, or else the last lines.
last_log_lines() { # CONTAINER
  local lines
  lines=$(docker logs --tail 200 "$1" 2>&1 | grep -v '"level":"info"' | tail -n "$LAST_WORDS") || :
  [ -n "$lines" ] || lines=$(docker logs --tail "$LAST_WORDS" "$1" 2>&1) || :
  printf '%s\n' "${lines:-(no output)}" | cut -c 1-400 | sed 's/^/    /' >&2
}

container_failed() { # SERVICE CONTAINER WHAT OOM-KILLED
  local remedy="fix what the log reports, then run ./scripts/start.sh again. Full log: docker compose logs $1"
  [ "$4" != true ] || remedy="it ran out of memory: raise its limit (CORE_MEMORY or CORE_DATABASE_MEMORY in .env, mem_limit in compose/compose.local.yaml), then run ./scripts/start.sh again"
  printf '\n%s %s. Last log lines:\n' "$1" "$3" >&2
  last_log_lines "$2"
  refuse 1 "Couldn't start the stack: $1 failed after $(elapsed) minutes. The other containers keep running." "$remedy"
}

# Compose failed and names the container it waited for.
up_failed() {
  local said service id
  said=$(cat "$said_file")
  look_at_all yes
  if [[ $said =~ container\ ([A-Za-z0-9_.-]+)\ (is\ unhealthy|exited) ]]; then
    service=$(docker inspect --format '{{index .Config.Labels "com.docker.compose.service"}}' "${BASH_REMATCH[1]}" 2>/dev/null) || service=${BASH_REMATCH[1]}
    container_failed "$service" "${BASH_REMATCH[1]}" 'did not become healthy' false
  elif [[ $said =~ service\ \"([A-Za-z0-9_-]+)\"\ didn ]]; then
    id=$(docker compose ps --all --quiet "${BASH_REMATCH[1]}" | head -n 1)
    container_failed "${BASH_REMATCH[1]}" "$id" 'did not complete' false
  fi
  printf '%s\n' "$said" | grep -v '^ *$' | tail -n "$LAST_WORDS" | sed 's/^/    /' >&2
  refuse 1 "Docker Compose couldn't start the stack." 'see "When it does not start" in docs/containers.md, then run ./scripts/start.sh again'
}

too_late() {
  local service id
  for service in ${waiting//,/ }; do
    id=$(docker compose ps --all --quiet "$service" 2>/dev/null | head -n 1)
    [ -n "$id" ] || continue
    printf '\n%s is not ready. Last log lines:\n' "$service" >&2
    last_log_lines "$id"
  done
  refuse 1 "The stack did not start within $timeout_minutes minutes. It keeps starting." 'read the lines above. To wait again: ./scripts/start.sh, or longer with --timeout MINUTES'
}

# --- Connection check

prove_stack() {
  local within=$((timeout_minutes * 60 - waited))
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
  printf '  Sign in      as webadmin (password: CORE_WEBADMIN_PASSWORD in %s)\n' "$(readlink -f "$env_file")"
  printf '  Stop         ./scripts/stop.sh\n'
}

start_containers() { # ARGUMENTS
  read_arguments "$@"
  check_docker
  check_set_up
  preflight
  if [ -n "$(kept_rotations)" ]; then printf 'A secret rotation is incomplete. This start continues it.\n' >&2; fi
  bring_up
  tell 'all' 'ready. Running the connection check...'
  printf '\n'
  if ! prove_stack; then
    say_where
    refuse 1 "The containers are running, but the connection check failed. Don't rely on this stack yet." \
      'see the failed stage above and docs/health.md. Then run ./scripts/start.sh again, which repeats the check'
  fi
  end_rotations
  say_where
}
