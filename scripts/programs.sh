# Sourced by the operator scripts: decides which stack to use and runs our programs for it.
# Uses the stack in containers if .env names its layers and no option selects an embedded stack.

# True for the stack in containers. Then `values` holds the settings of .env.
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

# Runs the installed program for an embedded stack, with the flags of Node in node_flags. Installs
# nothing.
run_installed() { # PROGRAM ARGUMENTS
  local program=$1 root=$PWD node
  shift
  node=$root/node_modules/node-linux-$([ "$(uname -m)" = aarch64 ] && echo arm64 || echo x64)/bin/node
  if [ ! -x "$node" ] || [ ! -f "$root/dist/$program.js" ]; then
    refuse 1 'Holdfast is not installed here.' \
      'for an embedded stack: ./scripts/start.sh --embedded --help installs it. For the stack in containers: ./scripts/setup.sh writes the missing .env. Then try again'
  fi
  unset NODE_OPTIONS
  cd "$called_from" || exit 1
  exec "$node" ${node_flags[@]+"${node_flags[@]}"} "$root/dist/$program.js" "$@"
}

# Runs the program in the management container, which must be running.
in_management() { # PROGRAM ARGUMENTS
  local program=$1
  shift
  docker compose exec -T management node "/app/dist/$program.js" "$@"
}

check_management_runs() {
  check_docker_answers
  [ -n "$(docker compose ps --quiet --status running management 2>/dev/null)" ] ||
    refuse 1 'The management container is not running.' 'start the stack with ./scripts/start.sh. To see why it stopped: docker compose logs --tail 20 management'
}

# Copies of .env that a rotation keeps until the stack works with the new secrets.
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
    printf 'Secret rotation is complete. Deleted %s.\n' "$each"
  done < <(kept_rotations)
}
