# Sourced by upgrade.sh: upgrades the stack in containers. Copies the volumes, starts the new version,
# and goes back by itself when the start or the connection check fails. Every phase can be repeated.
# shellcheck shell=bash
# shellcheck disable=SC2154 # called_from and home are set by upgrade.sh

# shellcheck source=scripts/install.sh
source scripts/install.sh
# shellcheck source=scripts/release-images.sh
source scripts/release-images.sh
# shellcheck source=scripts/upgrade-release.sh
source scripts/upgrade-release.sh

readonly STATE=.upgrade/containers SAID=.upgrade/said
# The operator's file, which every version keeps.
readonly THRESHOLDS=monitor/config/thresholds.yml
readonly COPY_LABEL=holdfast.before-upgrade WORK_LABEL=holdfast.upgrading
readonly SPARE_BYTES=$((256 * 1024 * 1024))
readonly AVAILABLE=10 PREVENTED=11 IMPOSSIBLE=3 RETURNED=4 STUCK=5

usage_of_upgrade() {
  cat <<'TEXT'
Usage: ./scripts/upgrade.sh check | fetch | apply | back [options]

  check                show the newest version and whether it can be applied (exit code 0: nothing to do, 10: can be
                       applied, 11: something prevents it)
  fetch                prepare the new version and its images beside the running one
  apply                copy the volumes, start the new version, check it, and go back by itself if it fails
                       (exit code 0: done, 4: failed and went back, 5: stuck, 11: something prevents it)
  back                 return to the version before the last upgrade (exit code 3: no longer possible)

  --to VERSION         this version instead of the newest one
  --from DIRECTORY     a directory or clone with the newer version, instead of the tags of origin
  --archive FILE       the archive of a newer TAK Server release, instead of a version of Holdfast
  --timeout MINUTES    time for each start (default 20)
  --no-dns-check       start even if a host name does not resolve to this machine
  --without-backup     apply although no recent backup is proven
  --again              apply although the last upgrade failed
  --to-snapshot        back: also put back the data of before the upgrade; what came since is lost
  --clear              check: clear a failed upgrade
  --discard-snapshot   check: delete the copies of the volumes
  --json               check: print JSON
  --help               show this help
TEXT
}

read_upgrade_arguments() {
  verb='' to='' source='' archive='' json=no clear=no discard=no to_snapshot=no
  minutes=20 start_options=() inside_options=()
  while [ $# -gt 0 ]; do
    case $1 in
      check | fetch | apply | back | recover)
        [ -z "$verb" ] || refuse 2 "Two commands given: $verb and $1." 'see ./scripts/upgrade.sh --help'
        verb=$1
        ;;
      --to | --from | --archive | --timeout)
        [ -n "${2:-}" ] || refuse 2 "$1 needs a value." 'see ./scripts/upgrade.sh --help'
        case $1 in
          --to) to=${2#v} ;;
          --from) source=$2 ;;
          --archive) archive=$2 ;;
          *) minutes=$2 ;;
        esac
        shift
        ;;
      --no-dns-check) start_options+=("$1") ;;
      --without-backup | --again) inside_options+=("$1") ;;
      --clear) clear=yes ;;
      --discard-snapshot) discard=yes ;;
      --to-snapshot) to_snapshot=yes ;;
      --json) json=yes ;;
      *) refuse 2 "Unknown option: $1." 'see ./scripts/upgrade.sh --help' ;;
    esac
    shift
  done
  [ -n "$verb" ] || refuse 2 'Give one of: check, fetch, apply, back.' 'see ./scripts/upgrade.sh --help'
  [[ $minutes =~ ^[1-9][0-9]{0,3}$ ]] || refuse 2 "--timeout '$minutes' is not a number of minutes." 'use a whole number, such as --timeout 20'
  [[ -z $to || $to =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || refuse 2 "--to $to is not a version." 'use a version, such as --to 0.2.0'
  [ -z "$source" ] || [[ $source == /* ]] || source=$called_from/$source
  [ -z "$archive" ] || [[ $archive == /* ]] || archive=$called_from/$archive
  start_options+=(--timeout "$minutes")
}

# --- Versions

# Prints a member of a package.json from standard input.
member() { # NAME
  sed -n 's/^ *"'"$1"'": *"\([^"]*\)".*/\1/p' | head -n 1
}

is_newer() { # VERSION THAN
  [ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | tail -n 1)" = "$1" ]
}

# Sets `current`, `newest`, `oldest` (that it upgrades from) and `place` (a directory or a commit).
find_newest() {
  local tags description
  current=$(member version <package.json) oldest=''
  if [ -f "$source/package.json" ]; then
    description=$(cat "$source/package.json") place=$source
  else
    tags=$(GIT_TERMINAL_PROMPT=0 timeout 120 git ls-remote --tags --refs "${source:-origin}" 'v*' 2>&1) ||
      refuse 1 "Couldn't list the versions: $(printf '%s' "$tags" | tail -n 1)" 'check the network, or give a directory with the newer version: --from DIRECTORY'
    newest=$(printf '%s\n' "$tags" | sed -n 's|.*refs/tags/v\([0-9.]*\)$|\1|p' | sort -V | tail -n 1)
    newest=${to:-$newest}
    [ -n "$newest" ] || { newest=$current && return; }
    git fetch --quiet --no-tags "${source:-origin}" "+refs/tags/v$newest:refs/tags/v$newest" ||
      refuse 1 "There is no version $newest." 'leave --to out, or give another version'
    place=$(git rev-parse "refs/tags/v$newest^{commit}")
    description=$(git show "$place:package.json")
  fi
  newest=$(printf '%s\n' "$description" | member version)
  oldest=$(printf '%s\n' "$description" | member upgradesFrom)
  : "${oldest:=$newest}"
}

find_target() {
  if [ -n "$archive" ]; then find_release; else find_newest; fi
}

# Nothing that runs is touched.
prepare_target() {
  if [ -n "$archive" ]; then
    prepare_release_images
    return
  fi
  prepare_version
  schema_changed=false
  [ "$(schema_of .)" = "$(schema_of ".upgrade/$newest")" ] || schema_changed=true
}

full_name() { # VERSION
  [[ $1 == "$RELEASE_NAME"* ]] || printf 'Holdfast '
  printf '%s' "$1"
}

say_up_to_date() {
  printf '%s is up to date.\n' "$(full_name "$current")"
}

# The same for two versions that work on the same data: migrations, and the images of others.
schema_of() { # DIRECTORY
  (cd "$1" && {
    cat shared/runtime/migrations/*.sql packages/core/store/migrations/*.sql packages/identity/store/migrations/*.sql
    grep -h 'image:' compose/compose*.yaml
  } | sha256sum | cut -d ' ' -f 1)
}

own_image_of() { # DIRECTORY
  sed -n 's/^ *image: *//p' "$1/compose/program.yaml"
}

# Compose reads no file without the required settings. Those that are new are made at the start of the version.
name_new_settings() {
  local name
  # shellcheck disable=SC2016 # names of the files
  for name in $(grep -oh '${[A-Z][A-Z0-9_]*:?' compose/compose*.yaml | tr -d '${:?'); do
    [ -n "${values[$name]:-}" ] || export "$name=unset"
  done
}

prepare_version() {
  HOLDFAST_SOURCES_ONLY=1 bash scripts/versions.sh fetch "$home" "$newest" "$place" || exit 1
  (
    cd ".upgrade/$newest"
    docker image inspect "$(own_image_of .)" >/dev/null 2>&1 ||
      docker compose -f compose/program.yaml build --quiet program >&2
    name_new_settings
    docker compose --env-file "$home/$env_file" pull --quiet --ignore-buildable --ignore-pull-failures >&2
  ) || refuse 1 "Couldn't prepare the images of version $newest. Nothing was changed." 'fix what Docker reports above, then try again'
}

# --- Preconditions

lines=() prevented=no

precondition() { # STATUS NAME TEXT [REMEDY]
  lines+=("$1"$'\t'"$2"$'\t'"$3"$'\t'"${4:-}")
  [ "$1" != failed ] || prevented=yes
}

check_preconditions() {
  local changed facts status name text remedy
  lines=() prevented=no
  if [ -n "$archive" ]; then
    precondition ok version "$(describe_release)"
  else
    if is_newer "$oldest" "$current"; then
      precondition failed version "$newest does not upgrade from $current, only from $oldest and later" "upgrade to $oldest first"
    else
      precondition ok version "$newest upgrades from $oldest and later"
    fi
    [ ! -e .git ] || changed=$(git status --porcelain --untracked-files=no -- . ":!$THRESHOLDS" | head -n 1)
    if [ ! -e .git ]; then
      precondition note files "not a git clone, so local changes can't be seen; they will be in .upgrade/$current"
    elif [ -n "$changed" ]; then
      precondition failed files "${changed:3} was changed here" 'keep settings in .env and compose/compose.local.yaml. To see the changes: git diff'
    else
      precondition ok files 'no local changes'
    fi
  fi
  check_room_for_copies
  flock --nonblock scripts/backup.sh true ||
    precondition failed work 'running: ./scripts/backup.sh' 'wait until it has ended'
  if [ -z "$(docker compose ps --quiet --status running management 2>/dev/null)" ]; then
    precondition note health 'the stack is not running, so its health is unknown'
    return
  fi
  facts=$(in_management upgrade inside "${inside_options[@]}" </dev/null) ||
    precondition failed health 'management did not answer' 'restart the stack, then try again'
  while IFS=$'\t' read -r status name text remedy; do
    [ -z "$status" ] || precondition "$status" "$name" "$text" "$remedy"
  done <<<"$facts"
}

check_room_for_copies() {
  local volume mounts=() said=() needed free
  for volume in $(stack_volumes); do mounts+=(--volume "$volume:/volumes/$volume:ro"); done
  if [ ${#mounts[@]} -eq 0 ]; then
    precondition failed data 'the stack has no volumes' 'start it once with ./scripts/start.sh'
    return
  fi
  # shellcheck disable=SC2016 # expands in the container
  mapfile -t said < <(in_volumes "${mounts[@]}" -- 'cd /volumes && du -s --block-size=1 . | cut -f 1
    df --output=avail -B1 "$(ls | head -n 1)" | tail -n 1; du -s --block-size=1 *_core-database-data | cut -f 1')
  needed=$((said[0] + SPARE_BYTES)) free=$((said[1]))
  # An export, and a second cluster.
  [ -z "$database_from" ] || needed=$((needed + 2 * said[2] + 1024 * 1024 * 1024))
  if ((free >= needed)); then
    precondition ok room "$((needed / 1000000)) MB needed for copies of the volumes, $((free / 1000000)) MB free"
  else
    precondition failed room "$((needed / 1000000)) MB needed for copies of the volumes, $((free / 1000000)) MB free" \
      "free some space (docker system df), or delete the copies of an earlier upgrade: ./scripts/upgrade.sh check --discard-snapshot"
  fi
}

show_preconditions() {
  local status name text remedy
  while IFS=$'\t' read -r status name text remedy; do
    printf '  %-6s %-16s %s\n' "$status" "$name" "$text"
    [ "$status" != failed ] || printf '         Remedy: %s\n' "$remedy"
  done < <(printf '%s\n' "${lines[@]}")
}

quoted() { # TEXT: as a JSON string
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "$(printf '%s' "$text" | tr '\n\t' '  ' | tr -d '\000-\037')"
}

show_json() { # CODE
  local status name text remedy separator=''
  printf '{"current":%s,"newest":%s,"code":%s,"preconditions":[' "$(quoted "$current")" "$(quoted "$newest")" "$1"
  [ ${#lines[@]} -eq 0 ] || while IFS=$'\t' read -r status name text remedy; do
    printf '%s{"name":%s,"status":%s,"text":%s,"remedy":%s}' "$separator" "$(quoted "$name")" "$(quoted "$status")" "$(quoted "$text")" "$(quoted "$remedy")"
    separator=,
  done < <(printf '%s\n' "${lines[@]}")
  printf ']}\n'
}

# --- Volumes

stack_volumes() {
  docker volume ls --quiet --filter "label=com.docker.compose.project=$project"
}

copies() {
  docker volume ls --quiet --filter "label=$COPY_LABEL=$project"
}

discard_copies() { # but|only SUFFIX
  local each is_it
  for each in $(copies); do
    is_it=but
    [[ $each != *"$2" ]] || is_it=only
    [ "$is_it" != "$1" ] || docker volume rm "$each" >/dev/null
  done
}

# Runs a command in our image as root, who may read and write the files of every account.
in_volumes() { # MOUNTS... -- COMMAND
  local mounts=()
  while [ "$1" != -- ]; do
    mounts+=("$1")
    shift
  done
  docker run --rm --label "$WORK_LABEL=$project" --network none --user 0:0 --cap-drop ALL --cap-add CHOWN --cap-add DAC_OVERRIDE --cap-add FOWNER \
    --security-opt no-new-privileges "${mounts[@]}" --entrypoint sh "$image" -ec "$2" </dev/null
}

# A killed upgrade leaves containers that go on copying, or upgrading the database.
end_leftovers() {
  local ids
  mapfile -t ids < <(
    docker ps --all --quiet --filter "label=$WORK_LABEL=$project"
    docker ps --all --quiet --filter "label=com.docker.compose.project=$project" --filter label=com.docker.compose.oneoff=True
  )
  [ ${#ids[@]} -eq 0 ] || docker rm --force "${ids[@]}" >/dev/null
}

# All at once: each container that is started takes a second.
copy_volumes() {
  local volume copy mounts=()
  for volume in $(stack_volumes); do
    copy=$volume$snapshot
    docker volume rm --force "$copy" >/dev/null
    docker volume create --label "$COPY_LABEL=$project" "$copy" >/dev/null || return 1
    mounts+=(--volume "$volume:/from/$volume:ro" --volume "$copy:/to/$volume")
  done
  in_volumes "${mounts[@]}" -- 'cp -a --reflink=auto /from/. /to/ && sync -f /to/*'
}

restore_volumes() {
  local copy volume mounts=()
  for copy in $(copies); do
    [[ $copy == *"$snapshot" ]] || continue
    volume=${copy%"$snapshot"}
    mounts+=(--volume "$copy:/from/$volume:ro" --volume "$volume:/to/$volume")
  done
  [ ${#mounts[@]} -eq 0 ] ||
    in_volumes "${mounts[@]}" -- 'find /to -mindepth 2 -delete && cp -a --reflink=auto /from/. /to/ && sync -f /to/*'
}

# --- Phases

readonly STATE_NAMES=(phase kind from_version to_version snapshot schema_changed reason image database_from
  release_from release_to)

save_state() { # PHASE
  local name
  phase=$1
  (
    for name in "${STATE_NAMES[@]}"; do printf '%s=%s\n' "$name" "${!name//$'\n'/ }" || exit; done >"$STATE.new"
    sync "$STATE.new" && mv -T "$STATE.new" "$STATE"
  ) 2>/dev/null || refuse "$STUCK" "Couldn't write $home/$STATE." 'free some space on that disk (df -h .), then run ./scripts/upgrade.sh recover'
}

load_state() {
  local name value
  while IFS='=' read -r name value; do
    [[ " ${STATE_NAMES[*]} " != *" $name "* ]] || printf -v "$name" '%s' "$value"
  done <"$STATE"
}

# Adds the settings and builds the images that this version needs, starts it and checks it.
start_version() {
  local options=()
  if [[ :${values[COMPOSE_FILE]:-}: == */compose.light.yaml:* ]]; then options=(--light); fi
  said_of_start=''
  HOLDFAST_UPGRADE=1 ./scripts/setup.sh "${options[@]}" >&2 || return 1
  HOLDFAST_UPGRADE=1 ./scripts/start.sh "${start_options[@]}" 2>&1 | tee "$SAID" >&2 || {
    said_of_start=$(grep -B 1 '^  Remedy: ' "$SAID" | head -n 1)
    return 1
  }
}

# Writes what health shows.
record() { # OUTCOME
  docker run --rm --network none --user 10001:10001 --cap-drop ALL --security-opt no-new-privileges \
    --volume "${project}_management-data:/data" --entrypoint node "$image" /app/dist/upgrade.js record --data /data \
    --outcome "$1" --from "$from_version" --to "$to_version" --reason "$reason" --snapshot "$snapshot" \
    --schema-changed "$schema_changed" </dev/null || printf "Couldn't record the upgrade for health.\n" >&2
}

# In .env, or in the files of Holdfast.
change_version() { # FROM TO
  if [ -n "$release_to" ]; then
    set_release "${2#"$RELEASE_NAME"}"
  else
    bash scripts/versions.sh switch "$home" "$1" "$2"
  fi
}

go_forward() {
  case $phase in stop)
    printf 'Stopping the stack...\n'
    docker compose stop >&2 || { reason='the containers did not stop' && return 1; }
    save_state copy
    ;;
  esac
  case $phase in copy)
    if [ "$kind" = apply ]; then
      printf 'Copying the volumes...\n'
      copy_volumes || {
        reason='the volumes could not be copied'
        # Their disk may be full, and what runs needs it.
        discard_copies only "$snapshot"
        return 1
      }
    elif [ "$kind" = back-to-snapshot ]; then
      printf 'Putting the copies of the volumes back...\n'
      restore_volumes || { reason="the volumes could not be restored" && return 1; }
    fi
    save_state switch
    ;;
  esac
  case $phase in switch)
    change_version "$from_version" "$to_version" || { reason='the programs could not be changed' && return 1; }
    save_state database
    ;;
  esac
  case $phase in database)
    upgrade_database || { reason='the database could not be changed' && return 1; }
    save_state start
    ;;
  esac
  printf 'Starting and checking %s...\n' "$to_version"
  start_version || { reason="$to_version does not work${said_of_start:+: ${said_of_start%.}}" && return 1; }
}

go_back() {
  printf '%s. Going back to %s...\n' "$reason" "$from_version" >&2
  case $phase in database | start) save_state return ;; esac
  case $phase in return)
    docker compose stop >&2 || return 1
    [ "$kind" = back ] || [ "$kind" = back-to-snapshot ] || restore_volumes || return 1
    save_state switch-back
    ;;
  esac
  case $phase in switch | switch-back)
    change_version "$to_version" "$from_version" || return 1
    ;;
  esac
  save_state start-old
  record returned
  start_version
}

# Nothing but images was made.
drop_preparation() {
  set_release "$release_from"
  rm -f "$STATE"
  printf 'The upgrade was interrupted before it changed anything.\n'
}

# Nothing but copies was made.
drop_upgrade() {
  if ! start_version; then
    refuse "$STUCK" "Couldn't start $from_version again after an interrupted upgrade." 'repair what the lines above report, then run ./scripts/upgrade.sh recover'
  fi
  rm -f "$STATE"
  discard_copies only "$snapshot"
  printf 'The upgrade was interrupted before it changed anything. %s runs.\n' "$from_version"
}

carry_out() {
  case $phase in
    return | switch-back | start-old) ;;
    *)
      if go_forward; then
        if [ "$kind" = apply ]; then
          record upgraded
          discard_copies but "$snapshot"
        else
          record back
          discard_copies only ''
        fi
        rm -f "$STATE"
        printf '\n%s runs and passed the connection check. To return to %s: ./scripts/upgrade.sh back\n' "$to_version" "$from_version"
        exit 0
      fi
      ;;
  esac
  # A volume that is only half restored fits no version.
  if [ "$kind-$phase" != back-to-snapshot-copy ] && go_back; then
    [ "$kind" != apply ] || discard_copies only "$snapshot"
    rm -f "$STATE"
    printf '\nThe upgrade to %s failed: %s. %s runs and passed the connection check.\n' "$to_version" "$reason" "$from_version" >&2
    exit "$RETURNED"
  fi
  record stuck
  refuse "$STUCK" "The upgrade from $from_version to $to_version is stuck. The copies of the volumes are kept." \
    'repair what the lines above report, then run ./scripts/upgrade.sh recover'
}

# --- Commands

check_version() {
  local code=0
  [ "$clear" = no ] || in_management upgrade inside --clear </dev/null
  [ "$discard" = no ] || discard_copies only ''
  find_target
  if is_newer "$newest" "$current"; then
    check_preconditions
    code=$AVAILABLE
    [ "$prevented" = no ] || code=$PREVENTED
  fi
  if [ "$json" = yes ]; then
    show_json "$code"
  elif [ "$code" -eq 0 ]; then
    say_up_to_date
  else
    printf '%s is available (installed: %s).\n' "$(full_name "$newest")" "$current"
    show_preconditions
  fi
  exit "$code"
}

apply_version() {
  find_target
  is_newer "$newest" "$current" || { say_up_to_date && exit 0; }
  check_preconditions
  printf 'Upgrade from %s to %s:\n' "$current" "$newest"
  show_preconditions
  [ "$prevented" = no ] || { printf 'Nothing was changed.\n' && exit "$PREVENTED"; }
  kind=apply from_version=$current to_version=$newest reason='' snapshot=.before-upgrade-${newest#"$RELEASE_NAME"}
  prepare_target
  save_state stop
  carry_out
}

back_to_version() {
  local facts at
  facts=$(in_management upgrade inside --way-back </dev/null) || refuse 1 "Couldn't ask management for the last upgrade." 'start the stack first'
  IFS=$'\t' read -r to_version at snapshot schema_changed <<<"$facts"
  [ -n "$to_version" ] || { printf 'There is no upgrade to go back from.\n' && exit "$IMPOSSIBLE"; }
  name_both_versions
  kind=back from_version=$current reason=''
  if [ "$to_snapshot" = yes ]; then
    kind=back-to-snapshot
    copies | grep -qF -- "$snapshot" || { printf 'The copies of the volumes are gone.\n' && exit "$IMPOSSIBLE"; }
    printf 'The data of %s comes back. Everything since then is lost.\n' "$at"
  elif [ "$schema_changed" = true ]; then
    printf "%s can't work on the current data: %s changed a database. It can only come back with the data of %s, which loses everything since then.\n  Remedy: accept this with ./scripts/upgrade.sh back --to-snapshot, or keep %s\n" \
      "$to_version" "$current" "$at" "$current"
    exit "$IMPOSSIBLE"
  fi
  save_state stop
  carry_out
}

# Sets `current`, and the releases if the last upgrade was one of a release.
name_both_versions() {
  local place=.upgrade/$to_version/.entries
  current=$(member version <package.json) release_from='' release_to=''
  if [[ $to_version == "$RELEASE_NAME"* ]]; then
    release_from=${values[CORE_RELEASE]:-} release_to=${to_version#"$RELEASE_NAME"}
    current=$RELEASE_NAME$release_from place=$RELEASES/$release_to
  fi
  [ -e "$place" ] || { printf "%s can't come back: its programs are no longer in %s.\n" "$to_version" "${place%/*}" && exit "$IMPOSSIBLE"; }
}

upgrade_containers() { # ARGUMENTS
  read_upgrade_arguments "$@"
  check_docker
  check_docker_answers
  project=$(docker compose config 2>/dev/null | sed -n 's/^name: *//p' | head -n 1)
  [ -n "$project" ] || refuse 1 "Couldn't determine the name of the stack." 'run docker compose config and fix what it reports'
  image=$(own_image_of .) snapshot='' reason='' database_from='' release_from='' release_to=''
  if [ -f "$STATE" ]; then
    load_state
    printf 'The upgrade from %s to %s was interrupted. Continuing...\n' "$from_version" "$to_version"
    end_leftovers
    case $kind-$phase in
      *-prepare) drop_preparation ;;
      apply-stop | apply-copy) drop_upgrade ;;
      *) (carry_out) || { [ ! -f "$STATE" ] || exit "$STUCK"; } ;;
    esac
    read_settings "$env_file"
    snapshot='' reason='' database_from='' release_from='' release_to=''
  fi
  case $verb in
    check) check_version ;;
    fetch)
      find_target
      is_newer "$newest" "$current" || { say_up_to_date && exit 0; }
      kind=fetch from_version=$current to_version=$newest
      prepare_target
      rm -f "$STATE"
      printf '%s is ready. To apply it: ./scripts/upgrade.sh apply\n' "$(full_name "$newest")"
      ;;
    apply) apply_version ;;
    back) back_to_version ;;
    recover) exit 0 ;;
  esac
}
