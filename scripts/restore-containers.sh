# Sourced by setup.sh: restores a backup into containers. Its files go into empty volumes, the
# databases start on them and make their tables, and its rows go into those. .env appears as the
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
  check_restore
  take_turn
  own_image=$(sed -n 's/^ *image: *//p' compose/program.yaml)
  build_image "$own_image"
  [ ! -e "$RESTORING" ] || remove_interrupted
  trap forget_settings EXIT
  read_backup
  choose_restored_layers
  prepare_restored_release
  refuse_used_machine
  mv "$RESTORING.new" "$RESTORING"
  restoring_settings=$RESTORING
  trap 'undo_restore; exit 130' INT TERM
  run_restore restore-files
  start_databases
  run_restore restore-rows
  compose_restoring down >&2 || fail_restore "Couldn't stop the databases."
  trap - INT TERM
  sync "$RESTORING"
  mv "$RESTORING" .env
  keep_release
  printf 'The backup was restored, with its settings in .env.\n' >&2
}

forget_settings() {
  # Not in a subshell that is killed while it still has its parent's traps.
  [ "$BASHPID" = "$$" ] || return 0
  rm -f "$RESTORING.new"
  undo_release
}

# Verifies the archive and reads its settings.
read_backup() {
  printf 'Verifying the archive...\n' >&2
  (umask 077 && : >"$RESTORING.new")
  with_key docker run --rm -i --network none --read-only --user 0:0 --cap-drop ALL --cap-add DAC_READ_SEARCH \
    --security-opt no-new-privileges --volume "$restored:/archive:ro" --entrypoint node "$own_image" \
    /app/dist/container-backup.js settings >"$RESTORING.new" ||
    refuse 1 'The archive was not restored. Nothing was changed.' 'fix what the lines above report, then run this again'
  values=()
  read_settings "$RESTORING.new"
  restoring_settings=$RESTORING.new
}

choose_restored_layers() {
  local each parts
  IFS=: read -r -a parts <<<"${values[COMPOSE_FILE]:-compose/compose.yaml:compose/compose.light.yaml}"
  compose_files=()
  for each in "${parts[@]}" compose/compose.restore.yaml; do
    [ -f "$each" ] ||
      refuse 1 "The stack of the backup used the layer $each, which this clone does not have. Nothing was changed." \
        "copy the file from the old machine or your own notes to $each, then run this again"
    compose_files+=(-f "$each")
  done
}

restores_light() {
  [[ " ${compose_files[*]} " == *" $LIGHT_LAYER "* ]]
}

# Builds the images of the TAK Server release that the backup was made with: its files and its
# database fit no other one.
prepare_restored_release() {
  local wanted=${values[CORE_RELEASE]:-} record
  if restores_light; then
    [ -z "$archive" ] || refuse 2 'The backup is of a light stack, which uses no release archive.' 'leave the archive out'
    return 0
  fi
  record=$(sed -n 's/^# Release archive: //p' "$RESTORING.new" | head -n 1)
  [ -n "$wanted" ] || refuse 1 'The backup does not name its TAK Server release. Nothing was changed.' 'use another backup'
  if [ -z "$archive" ] && [ ! -d "$RELEASES/$wanted" ]; then
    refuse 2 "The backup is of a stack with TAK Server $wanted, and its archive is needed too: ${record:-takserver-docker-$wanted.zip}. Nothing was changed." \
      "give it as well: ./scripts/setup.sh takserver-docker-$wanted.zip --restore FILE --passphrase-file FILE"
  fi
  check_engine
  check_memory
  remove_staging
  if [ -n "$archive" ]; then inspect_archive "$archive" ''; else ask_release_program installed "$wanted"; fi
  [ "${release[version]}" = "$wanted" ] ||
    refuse 1 "The backup is of a stack with TAK Server $wanted, but ${archive##*/} is ${release[version]}. Nothing was changed." \
      "give takserver-docker-$wanted.zip. Upgrade to another release after the restore"
  compare_archive "${record##* }"
  if [ "${release[unpacked]}" = no ] || ! images_are_here; then check_disk "${release[bytes]}"; fi
  say_login
  [ -z "$archive" ] || unpack_archive "$archive"
  build_images
  settle_release
}

# Another file of the same release is accepted: the schema of its database is compared anyway.
compare_archive() { # SHA-256 or nothing
  [ -n "$1" ] && [ -n "$archive" ] || return 0
  [ "$(sha256sum "$archive" | cut -d ' ' -f 1)" = "$1" ] ||
    printf 'Note: %s is another file than the one that the stack was set up from (SHA-256 %s).\n' "${archive##*/}" "$1" >&2
}

# Sets `project`; empty if Compose rejects the settings.
name_project() {
  project=$(compose_restoring config --format json | sed -n 's/^  "name": "\(.*\)",$/\1/p') || project=''
}

refuse_used_machine() {
  local project used
  name_project
  [ -n "$project" ] ||
    refuse 1 "Docker Compose rejected the settings of the backup. Nothing was changed." 'see the lines above'
  used=$(docker volume ls --quiet --filter "label=com.docker.compose.project=$project" | head -n 3 | paste -sd ' ')
  [ -z "$used" ] ||
    refuse 1 "This machine already has volumes of the stack $project: $used. Nothing was changed." \
      'delete that stack first (./scripts/stop.sh --remove), or set COMPOSE_PROJECT_NAME to another name'
}

run_restore() { # VERB
  with_key docker compose --env-file "$RESTORING" "${compose_files[@]}" run --rm --no-deps -T \
    --volume "$restored:/archive:ro" --entrypoint node restore /app/dist/container-backup.js "$1" ||
    fail_restore "Couldn't restore the archive."
}

start_databases() {
  printf 'Starting the databases...\n' >&2
  compose_restoring up --detach --wait core-database app-database >&2 || fail_restore 'The databases did not start.'
  restores_light && return
  printf 'Starting authentik once, which makes its tables (a few minutes)...\n' >&2
  compose_restoring up --detach --wait authentik-server >&2 || fail_restore 'authentik did not start.'
  compose_restoring stop authentik-server >&2 || fail_restore "Couldn't stop authentik."
}

compose_restoring() { # ARGUMENTS
  docker compose --env-file "$restoring_settings" "${compose_files[@]}" "$@"
}

# The volumes were empty before, so everything in them is ours. The container of a killed program is
# ended first: while it removes itself, Compose takes it for removed, and its volumes are in use.
undo_restore() {
  local project ids
  name_project
  mapfile -t ids < <(docker ps --all --quiet --filter "label=com.docker.compose.project=$project" --filter label=com.docker.compose.oneoff=True)
  [ ${#ids[@]} -eq 0 ] || docker rm --force "${ids[@]}" >/dev/null || :
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
  choose_restored_layers
  undo_restore
}

build_image() { # IMAGE
  docker image inspect "$1" >/dev/null 2>&1 && return
  printf 'Building %s (a few minutes)...\n' "$1" >&2
  docker build --quiet --tag "$1" --build-arg "RELEASE=${1##*:}" --file compose/management/Dockerfile . >&2 ||
    refuse 1 "Couldn't build the image $1." 'fix what the lines above report. The build needs access to a package registry'
}
