#!/usr/bin/env bash
# Stops the stack, in containers or embedded. --remove also deletes its data. --help lists the
# options.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
# shellcheck source=scripts/docker.sh
source scripts/docker.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh

usage() {
  cat <<'TEXT'
Usage: ./scripts/stop.sh [--remove]
       ./scripts/stop.sh --data DIR [--remove]

Stops the stack in containers, or with --data an embedded one. Keeps the data.

  --data DIR   data directory of an embedded stack (default, if .env describes no containers: data in the
               repository)
  --remove     also delete the data. Shows what will be lost, and asks for the server address (embedded: DIR)
  --yes-delete-everything ANSWER
               confirm --remove without a prompt: the server address (embedded: DIR)
  --help       show this help
TEXT
}

read_arguments() {
  remove=no answer=''
  while [ $# -gt 0 ]; do
    case $1 in
      --remove) remove=yes ;;
      --yes-delete-everything)
        answer=${2:-}
        shift
        ;;
      --yes-delete-everything=*) answer=${1#*=} ;;
      *) refuse 2 "Unknown option: $1." 'see ./scripts/stop.sh --help' ;;
    esac
    [ $# -eq 0 ] || shift
  done
  [ -z "$answer" ] || [ "$remove" = yes ] || refuse 2 '--yes-delete-everything needs --remove.' 'see ./scripts/stop.sh --help'
}

stop_containers() {
  local running
  running=$(docker compose ps --quiet) || refuse 1 "Couldn't list the running containers. Nothing was stopped." "fix what Docker Compose reports above, then try again"
  if [ -z "$running" ]; then
    printf 'The stack is already stopped.\n'
    return
  fi
  docker compose stop || refuse 1 'Some containers did not stop.' 'list them with docker compose ps, then try again'
  printf 'Stack stopped. Its data is kept. To start it again: ./scripts/start.sh\n'
}

# Prints the name and size of every volume of the stack.
show_volumes() {
  local name size
  local -A sizes=()
  project=$(docker compose config 2>/dev/null | sed -n 's/^name: *//p' | head -n 1)
  [ -n "$project" ] || refuse 1 "Couldn't determine the name of the stack. Nothing was deleted." 'run docker compose config and fix what it reports'
  while IFS='|' read -r name size; do
    [ -z "$name" ] || sizes[$name]=$size
  done < <(docker system df --verbose --format '{{range .Volumes}}{{.Name}}|{{.Size}}\n{{end}}' 2>/dev/null)
  while IFS= read -r name; do
    volumes+=("$name")
    printf '  %-36s %s\n' "$name" "${sizes[$name]:-size unknown}" >&2
  done < <(docker volume ls --filter "label=com.docker.compose.project=$project" --format '{{.Name}}')
}

remove_containers() {
  local volumes=()
  printf 'These volumes and everything in them will be deleted permanently:\n' >&2
  show_volumes
  [ ${#volumes[@]} -gt 0 ] || printf '  (none)\n' >&2
  printf '%s and release/ are kept (passwords, settings, the release). Only a backup of the volumes can restore the rest.\n' "$env_file" >&2
  ask_address
  # Copies that upgrade.sh made belong to no service.
  docker volume ls --quiet --filter "label=holdfast.before-upgrade=$project" | xargs -r docker volume rm >/dev/null || :
  docker compose down --volumes --remove-orphans || refuse 1 'Some parts were not removed.' 'fix what the lines above report, then try again'
  # Compose leaves volumes of services that only another version or layer has.
  docker volume ls --quiet --filter "label=com.docker.compose.project=$project" | xargs -r docker volume rm >/dev/null ||
    refuse 1 'Some volumes were not removed.' 'fix what the lines above report, then try again'
  printf 'Deleted the containers and the data of the stack. To start an empty stack: ./scripts/start.sh\n'
}

ask_address() {
  local address=${values[SERVER_ADDRESS]:-}
  [ -n "$address" ] || refuse 1 "Can't confirm: SERVER_ADDRESS is not set in .env. Nothing was deleted." "set SERVER_ADDRESS to the stack's address, then try again"
  if [ -z "$answer" ]; then
    [ -t 0 ] || refuse 1 "Can't ask for confirmation without a terminal. Nothing was deleted." \
      "to delete without a prompt: ./scripts/stop.sh --remove --yes-delete-everything $address"
    printf 'To delete everything, type the server address (%s): ' "$address" >&2
    IFS= read -r answer || answer=''
  fi
  [ "$answer" = "$address" ] || refuse 1 'The answer is not the server address. Nothing was deleted.' "to delete, run this again and type $address"
}

if wants_help "$@"; then
  usage
  exit 0
fi
if ! in_containers "$@"; then
  run_installed stop "$@"
fi
read_arguments "$@"
check_docker
check_docker_answers
if [ "$remove" = yes ]; then remove_containers; else stop_containers; fi
