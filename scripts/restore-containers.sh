# Sourced by setup.sh: restores a backup into the containers of a light stack. .env appears as the
# last step; until then the next restore removes what an interrupted one left.

# It stands for "every volume of this stack is the restore's own": written only once none was there.
readonly RESTORING=.env.restoring
restoring_settings=$RESTORING

check_restore() {
  [ ! -e .env ] || refuse 1 'This clone already has a stack: .env exists. Nothing was changed.' \
    'restore into a new clone of Holdfast. Or delete this stack first: ./scripts/stop.sh --remove, then move .env away'
  [ -f "$restored" ] || refuse 2 "File not found: $restored." 'give the archive of a backup: --restore FILE'
  [ -r "$restored" ] || refuse 1 "Couldn't read $restored: permission denied." 'run this as its owner'
  [ -n "$key_file" ] || refuse 2 'No key given.' 'give --passphrase-file FILE, or --identity-file FILE for a backup for a recipient'
  [ -r "$key_file" ] || refuse 1 "Couldn't read $key_file." 'give a file that this user can read'
  check_docker_answers
}

# The key goes through the standard input, so that no process list shows it.
with_key() { # COMMAND
  grep -m 1 -v '^[[:space:]]*\(#.*\)\?$' "$key_file" | "$@"
}

restore_stack() {
  local image project parts=() each
  check_restore
  take_turn
  image=$(sed -n 's/^ *image: *//p' compose/program.yaml)
  build_image "$image"
  umask 077
  [ ! -e "$RESTORING" ] || remove_interrupted
  printf 'Verifying the archive...\n' >&2
  with_key docker run --rm -i --network none --read-only --user 0:0 --cap-drop ALL --cap-add DAC_READ_SEARCH \
    --security-opt no-new-privileges --volume "$restored:/archive:ro" --entrypoint node "$image" \
    /app/dist/container-backup.js settings >"$RESTORING.new" || {
    rm -f "$RESTORING.new"
    refuse 1 'The archive was not restored. Nothing was changed.' 'fix what the lines above report, then run this again'
  }
  read_settings "$RESTORING.new"
  IFS=: read -r -a parts <<<"${values[COMPOSE_FILE]:-compose/compose.yaml:compose/compose.light.yaml}"
  compose_files=()
  for each in "${parts[@]}" compose/compose.restore.yaml; do
    [ -f "$each" ] || refuse_layer "$each"
    compose_files+=(-f "$each")
  done
  restoring_settings=$RESTORING.new
  project=$(compose_restoring config --format json | sed -n 's/^  "name": "\(.*\)",$/\1/p') || project=''
  [ -n "$project" ] || {
    rm -f "$RESTORING.new"
    refuse 1 "Docker Compose rejected the settings of the backup. Nothing was changed." 'see the lines above'
  }
  each=$(docker volume ls --quiet --filter "label=com.docker.compose.project=$project" | head -n 3 | paste -sd ' ')
  [ -z "$each" ] || {
    rm -f "$RESTORING.new"
    refuse 1 "This machine already has volumes of the stack $project: $each. Nothing was changed." \
      'delete that stack first (./scripts/stop.sh --remove), or set COMPOSE_PROJECT_NAME to another name'
  }
  mv "$RESTORING.new" "$RESTORING"
  restoring_settings=$RESTORING
  trap 'undo_restore; exit 130' INT TERM
  printf 'Starting the databases...\n' >&2
  compose_restoring up --detach --wait core-database app-database >&2 || fail_restore 'The databases did not start.'
  with_key docker compose --env-file "$RESTORING" "${compose_files[@]}" run --rm --no-deps -T --volume "$restored:/archive:ro" \
    --entrypoint node restore /app/dist/container-backup.js restore || fail_restore "Couldn't restore the archive."
  compose_restoring down >&2 || fail_restore "Couldn't stop the databases."
  trap - INT TERM
  sync "$RESTORING"
  mv "$RESTORING" .env
  printf 'The backup was restored, with its settings in .env.\n' >&2
}

compose_restoring() { # ARGUMENTS
  docker compose --env-file "$restoring_settings" "${compose_files[@]}" "$@"
}

refuse_layer() { # FILE
  rm -f "$RESTORING.new"
  refuse 1 "The stack of the backup used the layer $1, which this clone does not have. Nothing was changed." \
    "copy the file from the old machine or your own notes to $1, then run this again"
}

# The volumes were empty before, so everything in them is ours.
undo_restore() {
  compose_restoring down --volumes --remove-orphans >&2 || :
  rm -f "$RESTORING"
}

fail_restore() { # SENTENCE
  undo_restore
  refuse 1 "$1 Its volumes were removed again." 'fix what the lines above report, then run this again'
}

remove_interrupted() {
  printf 'Removing what an interrupted restore left...\n' >&2
  read_settings "$RESTORING"
  local each parts
  IFS=: read -r -a parts <<<"${values[COMPOSE_FILE]:-compose/compose.yaml:compose/compose.light.yaml}"
  compose_files=()
  for each in "${parts[@]}" compose/compose.restore.yaml; do compose_files+=(-f "$each"); done
  undo_restore
}

build_image() { # IMAGE
  docker image inspect "$1" >/dev/null 2>&1 && return
  printf 'Building %s (a few minutes)...\n' "$1" >&2
  docker build --quiet --tag "$1" --build-arg "RELEASE=${1##*:}" --file compose/management/Dockerfile . >&2 ||
    refuse 1 "Couldn't build the image $1." 'fix what the lines above report. The build needs access to a package registry'
}
