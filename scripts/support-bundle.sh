#!/usr/bin/env bash
# Writes a support archive without secrets. ./scripts/support-bundle.sh --help lists the options.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh

readonly LAST_LINES=2000 WITHIN_SECONDS=60

usage() {
  cat <<'TEXT'
Usage: ./scripts/support-bundle.sh [--output FILE] [--data DIR]

Writes an archive for support: versions, settings, container states, the last 2000 log lines of each
container, health, disk, memory, ports, and database sizes and migrations. Removes secrets and lists what
it removed in CLEANED.txt. Logs still contain names of people, addresses and callsigns.

  --output FILE   file to write (default: support-DATE.tar.gz in the current directory)
  --data DIR      data directory of an embedded stack (default: the stack in containers, if .env describes one)
  --help          show this help
TEXT
}

read_arguments() {
  output=''
  while [ $# -gt 0 ]; do
    case $1 in
      --output)
        output=${2:-}
        [ -n "$output" ] || refuse 2 '--output needs a file name.' 'see ./scripts/support-bundle.sh --help'
        shift
        ;;
      --output=*)
        output=${1#*=}
        [ -n "$output" ] || refuse 2 '--output needs a file name.' 'see ./scripts/support-bundle.sh --help'
        ;;
      *) refuse 2 "Unknown option: $1." 'see ./scripts/support-bundle.sh --help' ;;
    esac
    shift
  done
  output=${output:-support-$(date -u +%Y%m%dT%H%M%SZ).tar.gz}
  case $output in
    /*) ;;
    *) output=$called_from/$output ;;
  esac
  if [ -e "$output" ] || [ -L "$output" ]; then refuse 1 "$output already exists." 'choose another file with --output FILE'; fi
}

# Appends the output of a command, or how it failed, to a file.
gather() { # FILE COMMAND
  local file=$bundle/$1
  shift
  printf -- '--- %s\n' "$*" >>"$file"
  timeout "$WITHIN_SECONDS" "$@" >>"$file" 2>&1 </dev/null || printf '(exit code %s)\n' "$?" >>"$file"
}

collect() {
  local service each count=0
  mkdir "$bundle/logs" "$bundle/settings"
  cp "$env_file" "$bundle/settings/env"
  while IFS= read -r each; do
    count=$((count + 1))
    cp "$each" "$bundle/settings/env-before-$count"
  done < <(kept_rotations)
  gather versions.txt uname -a
  gather versions.txt cat /etc/os-release compose/program.yaml
  gather versions.txt docker version
  gather versions.txt docker compose version
  gather versions.txt docker image ls
  gather containers.txt docker compose ps --all
  gather containers.txt docker stats --no-stream
  for each in $(docker compose ps --all --quiet 2>/dev/null); do
    gather containers.txt docker inspect --format '{{.Name}} {{json .State}} restarted {{.RestartCount}} times, memory {{.HostConfig.Memory}}' "$each"
  done
  gather config.yaml docker compose config
  gather machine.txt df -h
  gather machine.txt df -i
  gather machine.txt cat /proc/meminfo /proc/loadavg /proc/net/tcp /proc/net/tcp6
  gather machine.txt docker system df
  for service in $(docker compose config --services 2>/dev/null); do
    gather "logs/$service.log" docker compose logs --no-color --timestamps --tail "$LAST_LINES" "$service"
  done
  gather facts.json docker compose exec -T management node /app/dist/support-bundle.js --facts
}

if wants_help "$@"; then
  usage
  exit 0
fi
if ! in_containers "$@"; then
  run_installed support-bundle "$@"
fi
read_arguments "$@"
check_docker
check_docker_answers
command -v tar >/dev/null || refuse 1 'tar is not installed.' 'install tar (Debian: apt-get install tar)'
image=$(sed -n 's/^ *image: *//p' compose/program.yaml)
docker image inspect "$image" >/dev/null 2>&1 || refuse 1 "The image $image is missing. It is needed to remove the secrets." 'run ./scripts/setup.sh, which builds it'
umask 077
bundle=$(mktemp -d) || refuse 1 "Couldn't create a temporary directory." 'check free disk space: df -h /tmp'
trap 'rm -rf "$bundle"' EXIT
# Fail before collecting anything.
(set -o noclobber && : >"$output") 2>/dev/null || refuse 1 "Couldn't write $output." 'choose a writable file with --output FILE'
trap 'rm -rf "$bundle" "$output"' EXIT
printf 'Collecting...\n' >&2
collect
tar -C "$bundle" -cf - . | docker run --rm -i --network none --read-only --tmpfs /tmp:size=512m,mode=1777 --cap-drop ALL \
  --security-opt no-new-privileges --entrypoint node "$image" /app/dist/support-bundle.js --clean >"$output" ||
  refuse 1 "Couldn't remove the secrets, so no support bundle was written." 'fix what the lines above report, then try again'
trap 'rm -rf "$bundle"' EXIT
printf 'Wrote %s. Review it before you send it: its logs contain names of people, addresses and callsigns.\n' "$output" >&2
