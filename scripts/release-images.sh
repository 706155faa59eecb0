# Sourced by setup.sh: turns a release archive into release/<version> and the four images of the
# core and its database. Checks and builds everything before keeping anything: a failure leaves only
# Docker's cache.

readonly GB=1000000000 GIB=$((1024 * 1024 * 1024))
readonly RELEASES=release
# Older engines need DOCKER_BUILDKIT=1. Only the default builder sees the local base images.
export DOCKER_BUILDKIT=1 BUILDX_BUILDER=default
readonly SAID_ON_FAILURE=25
readonly BETWEEN_SIGNS_SECONDS=10

# --- Requirements

check_engine() {
  local version facts
  version=$(timeout 10 docker version --format '{{.Server.Version}}' 2>/dev/null) ||
    refuse 1 'Docker does not respond to this user.' 'start Docker, or repeat this command with sudo. To see the reason: docker version'
  if [[ ! $version =~ ^v?([0-9]+)\.([0-9]+) ]] || ((10#${BASH_REMATCH[1]} * 100 + 10#${BASH_REMATCH[2]} < 2010)); then
    refuse 1 "Docker $version is too old. Version 20.10 or newer is needed." 'install a newer one: https://docs.docker.com/engine/install/'
  fi
  docker buildx version >/dev/null 2>&1 ||
    refuse 1 'Docker has no buildx plugin, which builds the images.' 'install docker-buildx-plugin: https://docs.docker.com/engine/install/'
  facts=$(timeout 10 docker info --format '{{.MemTotal}} {{.DockerRootDir}}' 2>/dev/null) ||
    refuse 1 "Couldn't read the memory and disk of this machine from Docker." 'run docker info and fix what it reports'
  memory_bytes=${facts%% *} docker_root=${facts#* }
}

check_memory() {
  [[ $memory_bytes =~ ^[0-9]+$ ]] || refuse 1 "Couldn't read the memory size from Docker." 'run docker info and fix what it reports'
  ((memory_bytes >= 6 * GIB)) ||
    refuse 1 "This machine has $(in_tenths "$memory_bytes" $GIB) GiB of memory. A TAK Server with authentik needs 6 GiB; 8 GiB is recommended." \
      'use a machine with more memory, or our own core, which needs 1 GiB: ./scripts/setup.sh --light'
  ((memory_bytes >= 8 * GIB)) ||
    printf 'Note: %s GiB of memory is tight. 8 GiB is recommended.\n' "$(in_tenths "$memory_bytes" $GIB)" >&2
}

in_tenths() { # BYTES UNIT: 7.5
  local -i tenths=$(($1 * 10 / $2))
  printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}

# Three times the release (unpacked, in the image, on the volume), plus 6 GB for base images.
check_disk() { # RELEASE-BYTES
  local -i all=$(($1 * 3 + 6 * GB)) here=$(($1 + GB))
  local place=$RELEASES
  [ -d "$place" ] || place=.
  if [ ! -d "$docker_root" ] || same_disk "$place" "$docker_root"; then
    check_room "$place" "$all" 'for the release and its images'
  else
    check_room "$place" "$here" 'for the release'
    check_room "$docker_root" "$all" 'for its images'
  fi
}

same_disk() {
  [ "$(stat -c %d "$1" 2>/dev/null)" = "$(stat -c %d "$2" 2>/dev/null)" ]
}

check_room() { # DIRECTORY BYTES WHAT-FOR
  local free
  free=$(df --output=avail -B1 "$1" 2>/dev/null | tail -n 1)
  [[ $free =~ ^[[:space:]]*([0-9]+)$ ]] || return 0
  free=${BASH_REMATCH[1]}
  ((free >= $2)) ||
    refuse 1 "The disk of $(readlink -f "$1") has $(in_tenths "$free" $GB) GB free; $(in_tenths "$2" $GB) GB are needed $3." \
      'free some space (docker system df shows how much Docker uses), then run this again'
}

# Also removes the leftovers of an interrupted setup.
take_releases() {
  take_turn
  remove_staging
}

remove_staging() {
  rm -rf "$RELEASES"/.new-* "$RELEASES"/.old-*
  [ -n "$(ls -A "$RELEASES" 2>/dev/null)" ] || rmdir "$RELEASES" 2>/dev/null || :
}

# --- The archive

# Builds our image, which contains the archive reader and the programs that the core images copy.
build_own_image() {
  own_image=$(sed -n 's/^ *image: *//p' compose/program.yaml)
  build_step 'the Holdfast image' docker compose -f compose/program.yaml --progress plain build program
}

# True if ./scripts/start.sh --embedded has installed the programs and they are up to date.
node_is_here() {
  local architecture=x64
  [ "$(uname -m)" != aarch64 ] || architecture=arm64
  node=node_modules/node-linux-$architecture/bin/node
  [ -x "$node" ] && [ -f dist/release.js ] && packages_current && programs_current
}

# Without Node on this machine, the program runs in our image and sees only the archive and the
# releases.
release_program() { # COMMAND SUBJECT [OPTION...]
  local command=$1 subject=$2 account
  shift 2
  if node_is_here; then
    "$node" dist/release.js "$command" "$subject" --releases "$RELEASES" "$@" 9<&-
    return
  fi
  account=$(id -u):$(id -g)
  # Rootless Docker maps the container's root to the user who runs it.
  [[ $(docker info --format '{{.SecurityOptions}}' 2>/dev/null) != *name=rootless* ]] || account=0:0
  local mounts=(--mount "type=bind,\"source=$PWD/$RELEASES\",target=/release")
  if [ "$command" != installed ]; then
    mounts+=(--mount "type=bind,\"source=$subject\",\"target=/archive/${subject##*/}\",readonly")
    subject=/archive/${subject##*/}
  fi
  mkdir -p "$RELEASES"
  docker run --rm --network none --read-only --cap-drop ALL --security-opt no-new-privileges --user "$account" \
    "${mounts[@]}" --entrypoint node "$own_image" /app/dist/release.js "$command" "$subject" --releases /release "$@" 9<&-
}

# Sets `release` to the program's answer.
declare -A release=()
ask_release_program() {
  local text name value
  # Outside the subshell, which would lose own_image.
  node_is_here || [ -n "${own_image:-}" ] || build_own_image
  text=$(release_program "$@") || exit 1
  while IFS='=' read -r name value; do release[$name]=$value; done <<<"$text"
}

inspect_archive() { # ARCHIVE, CURRENT VERSION or nothing
  if [ -n "$2" ]; then
    ask_release_program inspect "$1" --current "$2"
  else
    ask_release_program inspect "$1"
  fi
  printf 'TAK Server %s (%s).\n' "${release[version]}" "${release[variant]}"
}

unpack_archive() { # ARCHIVE
  [ "${release[unpacked]}" = no ] || return 0
  printf 'Unpacking the release...\n'
  ask_release_program unpack "$1" --expected "${release[version]}"
  if [ "$EUID" -eq 0 ]; then chown -R --reference=. "$RELEASES/${release[directory]}"; fi
}

# Moves the unpacked release into place, replacing a damaged one. undo_release reverts it until
# keep_release.
settle_release() {
  local place=$RELEASES/${release[version]}
  [ -n "${release[directory]:-}" ] || return 0
  [ ! -e "$place" ] || mv -T "$place" "$RELEASES/.old-$$"
  mv -T "$RELEASES/${release[directory]}" "$place"
  settled=$place
  if [ "$EUID" -eq 0 ]; then chown --reference=. "$RELEASES"; fi
  sync "$RELEASES"
}

keep_release() {
  settled=''
  remove_staging
}

undo_release() {
  # Not in a subshell that is killed while it still has its parent's traps.
  [ "$BASHPID" = "$$" ] || return 0
  if [ -n "${settled:-}" ]; then
    rm -rf "$settled"
    [ ! -e "$RELEASES/.old-$$" ] || mv -T "$RELEASES/.old-$$" "$settled"
  fi
  remove_staging
}

# --- The images

build_images() {
  local tree=$RELEASES/${release[directory]:-${release[version]}} version=${release[version]} of
  [ -n "${own_image:-}" ] || build_own_image
  for of in core core-database; do
    local dockerfile=${release[core_dockerfile]} base=localhost/holdfast-$of-base:$version
    [ "$of" = core ] || dockerfile=${release[database_dockerfile]}
    build_step "the release image of $of" \
      docker build --progress plain --file "$tree/$dockerfile" --tag "$base" "$tree"
    build_step "the Holdfast image of $of" \
      docker build --progress plain --file "compose/$of/Dockerfile" --build-arg "BASE=$base" \
      --build-arg "HOLDFAST=$own_image" --tag "localhost/holdfast-$of:$version" "$tree"
  done
}

# Runs a build step and reports it. Prints the end of Docker's output if it fails.
build_step() { # WHAT COMMAND...
  local what=$1 log code=0 signs started=$SECONDS
  shift
  log=$(mktemp) || refuse 1 "Couldn't create a temporary file." 'check free disk space: df -h /tmp'
  printf 'Building %s...\n' "$what"
  # show_signs ends when this pipe closes, however this shell ends. (A killed subshell would run the
  # trap of its parent.)
  exec {signs}> >(show_signs "$log" >&2)
  "$@" >"$log" 2>&1 9<&- {signs}>&- || code=$?
  exec {signs}>&-
  wait "$!" || :
  if [ "$code" -ne 0 ]; then
    tail -n "$SAID_ON_FAILURE" "$log" >&2
    rm -f "$log"
    refuse 1 "Couldn't build $what (exit code $code). Nothing was changed." "fix what Docker reports above, then run this again$(registry_hint)"
  fi
  rm -f "$log"
  printf 'Built %s (%s s).\n' "$what" $((SECONDS - started))
}

registry_hint() {
  [ "${release[variant]:-}" != hardened ] || printf '. A hardened release needs: docker login registry1.dso.mil'
}

# Prints Docker's current step until its input ends.
show_signs() { # LOG
  local ended=no
  while [ "$ended" = no ]; do
    # Above 128: timed out.
    if read -r -t "$BETWEEN_SIGNS_SECONDS" _ || [ $? -le 128 ]; then
      ended=yes
    else
      grep -aE '^#[0-9]+ (\[|[0-9.]+ )' "$1" | tail -n 1 | cut -c 1-120 || :
    fi
  done
}

say_login() {
  [ "${release[variant]}" = hardened ] || return 0
  printf 'A hardened release uses base images from registry1.dso.mil. Sign in first as this user: docker login registry1.dso.mil\n' >&2
}
