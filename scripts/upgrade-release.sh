# Sourced by upgrade-containers.sh: what the upgrade of a TAK Server release needs besides the steps
# that every upgrade has.

readonly RELEASE_NAME='TAK Server '

# Sets `current` and `newest`, the releases behind them, and what the new one does to the database.
find_release() {
  local schema postgres
  [ -f "$archive" ] || refuse 2 "File not found: $archive." 'give the path of the downloaded archive: takserver-docker-<version>.zip'
  archive=$(readlink -f "$archive")
  release_from=${values[CORE_RELEASE]:-}
  [ -n "$release_from" ] || refuse 2 'This stack has no TAK Server release.' 'leave --archive out'
  ask_release_program installed "$release_from" >&2
  schema=${release[schema]} postgres=${release[postgres]}
  ask_release_program inspect "$archive" --current "$release_from" >&2
  release_to=${release[version]}
  current=$RELEASE_NAME$release_from newest=$RELEASE_NAME$release_to schema_changed=false database_from=''
  [ "$schema $postgres" = "${release[schema]} ${release[postgres]}" ] || schema_changed=true
  [ "$postgres" = "${release[postgres]}" ] || database_from=$release_from
}

# What the preconditions say of a release.
describe_release() {
  if [ -n "$database_from" ]; then
    printf '%s' "$newest needs PostgreSQL ${release[postgres]}; apply upgrades the database"
  elif [ "$schema_changed" = true ]; then
    printf '%s' "$newest changes the schema of the database"
  else
    printf '%s' "$newest uses the database as it is"
  fi
}

# Unpacks it and builds its images. setup.sh also records it in .env, where it does not belong yet.
prepare_release_images() {
  save_state prepare
  local code=0
  HOLDFAST_UPGRADE=1 ./scripts/setup.sh "$archive" >&2 || code=$?
  set_release "$release_from"
  [ "$code" -eq 0 ] || { rm -f "$STATE" && exit 1; }
}

set_release() { # RELEASE
  (
    take_turn
    read_settings "$env_file"
    [ "${values[CORE_RELEASE]:-}" != "$1" ] || exit 0
    replace CORE_RELEASE "$1"
    write_env "$env_file" own "$env_file"
  )
}

# The volume of the core may hold the files of a newer release.
bring_back_files() {
  docker compose run --rm --no-deps -T -e HOLDFAST_RELEASE_GOES_BACK=yes release </dev/null >&2
}

# The steps of the database between the change of the release and its start. Can be repeated.
upgrade_database() {
  if [ "$kind" = back ]; then
    [ -z "$release_to" ] || bring_back_files
  elif [ "$kind" = apply ] && [ -n "$database_from" ]; then
    ./scripts/upgrade-database.sh --from "$database_from" >&2
  fi
}
