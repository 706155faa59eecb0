# Sourced by the scripts for operators: which stack is meant, and how a program of ours is run for it. The stack in containers is
# meant when .env names its layers and nobody names an embedded one.

# Leaves the settings of .env in `values` when the stack in containers is meant.
in_containers() { # ARGUMENTS
  local each
  for each in "$@"; do
    case $each in
      --data | --data=* | --env | --env=* | --embedded) return 1 ;;
    esac
  done
  [ -e .env ] || return 1
  find_env
  read_settings "$env_file"
  [ -n "${values[COMPOSE_FILE]:-}" ]
}

wants_help() { # ARGUMENTS
  local each
  for each in "$@"; do
    case $each in
      --help | -h) return 0 ;;
    esac
  done
  return 1
}

# The installed program, for an embedded stack; nothing is installed for it.
run_installed() { # PROGRAM ARGUMENTS
  local program=$1 root=$PWD node
  shift
  node=$root/node_modules/node-linux-$([ "$(uname -m)" = aarch64 ] && echo arm64 || echo x64)/bin/node
  if [ ! -x "$node" ] || [ ! -f "$root/dist/$program.js" ]; then
    refuse 1 "The programs of Holdfast are not installed here, so nothing can be done for an embedded stack." \
      'install them with ./scripts/start.sh --embedded --help, then try again; for the stack in containers .env is missing: ./scripts/setup.sh'
  fi
  unset NODE_OPTIONS
  cd "$called_from" || exit 1
  exec "$node" "$root/dist/$program.js" "$@"
}

# The program in the container of management, which must run.
in_management() { # PROGRAM ARGUMENTS
  local program=$1
  shift
  docker compose exec -T management node "/app/dist/$program.js" "$@"
}

check_management_runs() {
  check_docker_answers
  [ -n "$(docker compose ps --quiet --status running management 2>/dev/null)" ] ||
    refuse 1 'The container of management does not run.' 'start the stack with ./scripts/start.sh; docker compose logs --tail 20 management says what it lacks'
}

# Files that a rotation keeps until the stack has proven itself with the new secrets.
readonly BEFORE_ROTATION=.before-rotation-

kept_rotations() {
  local each
  for each in "$env_file$BEFORE_ROTATION"*; do
    [ ! -f "$each" ] || printf '%s\n' "$each"
  done
}

end_rotations() {
  local each
  while IFS= read -r each; do
    rm -f -- "$each"
    printf 'The rotation of secrets is complete; %s was deleted.\n' "$each"
  done < <(kept_rotations)
}
