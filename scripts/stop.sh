#!/usr/bin/env bash
# Stops the stack, in containers or embedded; with --remove deletes its data, after asking. --help lists the options.
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

Stops the stack in containers, or with --data the embedded one on DIR (default, where .env describes no containers: data in
the repository). Data stays.

  --data DIR   the directory that an embedded stack was started with
  --remove     delete the data as well: shows what would be lost, and asks for the address of the server (embedded: for DIR)
  --yes-delete-everything NAME
               the same answer, where nobody can be asked
  --help       this text
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
      *) refuse 2 "stop.sh does not know $1." 'see ./scripts/stop.sh --help' ;;
    esac
    [ $# -eq 0 ] || shift
  done
  [ -z "$answer" ] || [ "$remove" = yes ] || refuse 2 '--yes-delete-everything belongs to --remove.' 'see ./scripts/stop.sh --help'
}

stop_containers() {
  local running
  running=$(docker compose ps --quiet) || refuse 1 'Docker Compose does not say what runs.' 'put right what it says above; nothing was stopped'
  if [ -z "$running" ]; then
    printf 'No container of the stack runs.\n'
    return
  fi
  docker compose stop || refuse 1 'Not every container could be stopped.' 'see what docker compose ps says, then try again'
  printf 'The stack has stopped; its data stays. ./scripts/start.sh starts it again.\n'
}

# NAME and size of every volume of the stack.
show_volumes() {
  local project name size
  local -A sizes=()
  project=$(docker compose config 2>/dev/null | sed -n 's/^name: *//p' | head -n 1)
  [ -n "$project" ] || refuse 1 'Docker Compose does not say how the stack is called.' 'see what docker compose config says'
  while IFS='|' read -r name size; do
    [ -z "$name" ] || sizes[$name]=$size
  done < <(docker system df --verbose --format '{{range .Volumes}}{{.Name}}|{{.Size}}\n{{end}}' 2>/dev/null)
  while IFS= read -r name; do
    volumes+=("$name")
    printf '  %-36s %s\n' "$name" "${sizes[$name]:-of unknown size}" >&2
  done < <(docker volume ls --filter "label=com.docker.compose.project=$project" --format '{{.Name}}')
}

remove_containers() {
  local volumes=()
  printf 'These volumes, and all that is in them, would be deleted for good:\n' >&2
  show_volumes
  [ ${#volumes[@]} -gt 0 ] || printf '  (there is none)\n' >&2
  printf '%s and release/ stay: passwords, settings, the release. Without a backup of the volumes nothing else comes back.\n' "$env_file" >&2
  ask_address
  docker compose down --volumes --remove-orphans || refuse 1 'Not everything could be removed.' 'see the lines above, then try again'
  printf 'The containers and the data of the stack are gone. ./scripts/start.sh makes an empty one.\n'
}

ask_address() {
  local address=${values[SERVER_ADDRESS]:-}
  [ -n "$address" ] || refuse 1 'SERVER_ADDRESS is not set in .env, so nobody can be asked for it.' 'set it as the stack has it, then try again'
  if [ -z "$answer" ]; then
    [ -t 0 ] || refuse 1 'Nothing was deleted: there is no terminal on which to ask.' \
      "to delete all the same: ./scripts/stop.sh --remove --yes-delete-everything $address"
    printf 'To delete all of it, type the address of the server (%s): ' "$address" >&2
    IFS= read -r answer || answer=''
  fi
  [ "$answer" = "$address" ] || refuse 1 'Nothing was deleted: that is not the address of the server.' "type $address, or leave it as it is"
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
