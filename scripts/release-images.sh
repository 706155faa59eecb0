# Sourced by setup.sh: a release archive becomes release/<version> and the four images of the core and its database. Everything
# is checked and built before anything is kept: what a failure leaves is Docker's cache.

readonly GB=1000000000 GIB=$((1024 * 1024 * 1024))
readonly RELEASES=release
# Older engines build the old way unless told; and another builder than the engine's own would not see the images it stands on.
export DOCKER_BUILDKIT=1 BUILDX_BUILDER=default
readonly SAID_ON_FAILURE=25
readonly BETWEEN_SIGNS_SECONDS=10

# --- What has to be here

check_engine() {
  local version facts
  version=$(timeout 10 docker version --format '{{.Server.Version}}' 2>/dev/null) ||
    refuse 1 'Docker does not answer this account.' 'start it, or run this with sudo; docker version says what is the matter'
  if [[ ! $version =~ ^v?([0-9]+)\.([0-9]+) ]] || ((10#${BASH_REMATCH[1]} * 100 + 10#${BASH_REMATCH[2]} < 2010)); then
    refuse 1 "Docker is $version; 20.10 or newer is needed." 'install a newer one: https://docs.docker.com/engine/install/'
  fi
  docker buildx version >/dev/null 2>&1 ||
    refuse 1 'Docker has no buildx plugin, with which images are built.' 'install docker-buildx-plugin: https://docs.docker.com/engine/install/'
  facts=$(timeout 10 docker info --format '{{.MemTotal}} {{.DockerRootDir}}' 2>/dev/null) ||
    refuse 1 'Docker says nothing about this machine.' 'see what docker info says'
  memory_bytes=${facts%% *} docker_root=${facts#* }
}

check_memory() {
  [[ $memory_bytes =~ ^[0-9]+$ ]] || refuse 1 'Docker does not say how much memory there is.' 'see what docker info says'
  ((memory_bytes >= 6 * GIB)) ||
    refuse 1 "This machine has $(in_tenths "$memory_bytes" $GIB) GiB of memory; a TAK Server with authentik needs 6 GiB, and 8 to be at ease." \
      'take a machine with more, or our own core, which does with 1 GiB: ./scripts/setup.sh --light'
  ((memory_bytes >= 8 * GIB)) ||
    printf 'Note: with %s GiB of memory it will be tight; 8 GiB are better.\n' "$(in_tenths "$memory_bytes" $GIB)" >&2
}

in_tenths() { # BYTES UNIT: 7.5
  local -i tenths=$(($1 * 10 / $2))
  printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}

# Three times the release: unpacked, in the image, on the volume; the rest is what images are made of.
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
      'free some space (docker system df shows what Docker holds), then run this again'
}

# What an earlier set-up left, which was ended, goes.
take_releases() {
  take_turn
  remove_staging
}

remove_staging() {
  rm -rf "$RELEASES"/.new-* "$RELEASES"/.old-*
  [ -n "$(ls -A "$RELEASES" 2>/dev/null)" ] || rmdir "$RELEASES" 2>/dev/null || :
}

# --- The archive

# Our image, which has the program that reads archives, too, and whose programs the core's images take over.
build_own_image() {
  own_image=$(sed -n 's/^ *image: *//p' compose/program.yaml)
  build_step 'our own image' docker compose -f compose/program.yaml --progress plain build program
}

# True when the programs are installed here and as new as their sources: ./scripts/start.sh --embedded does that.
node_is_here() {
  local architecture=x64
  [ "$(uname -m)" != aarch64 ] || architecture=arm64
  node=node_modules/node-linux-$architecture/bin/node
  [ -x "$node" ] && [ -f dist/release.js ] && packages_current && programs_current
}

# Without Node here the program runs in our image, which sees the archive and the directory of releases alone.
release_program() { # COMMAND SUBJECT [OPTION...]
  local command=$1 subject=$2 account
  shift 2
  if node_is_here; then
    "$node" dist/release.js "$command" "$subject" --releases "$RELEASES" "$@" 9<&-
    return
  fi
  account=$(id -u):$(id -g)
  # Docker without root: there the account of the container's root is who runs it.
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

# Leaves what the program answers in `release`.
declare -A release=()
ask_release_program() {
  local text name value
  # Not in the subshell, which keeps nothing.
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
  printf 'Unpacking it ...\n'
  ask_release_program unpack "$1" --expected "${release[version]}"
  if [ "$EUID" -eq 0 ]; then chown -R --reference=. "$RELEASES/${release[directory]}"; fi
}

# The unpacked release in its place, in that of a damaged one too; until it is kept, undo_release takes it back.
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
  # Not in a subshell that is killed before it has put the traps of its parent away.
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
    build_step "the release's image of $of" \
      docker build --progress plain --file "$tree/$dockerfile" --tag "$base" "$tree"
    build_step "our image of $of over it" \
      docker build --progress plain --file "compose/$of/Dockerfile" --build-arg "BASE=$base" \
      --build-arg "HOLDFAST=$own_image" --tag "localhost/holdfast-$of:$version" "$tree"
  done
}

# Says what is built; of Docker's words the last ones, when it fails.
build_step() { # WHAT COMMAND...
  local what=$1 log code=0 signs started=$SECONDS
  shift
  log=$(mktemp) || refuse 1 'No temporary file can be made.' 'see that the disk of /tmp has room'
  printf 'Building %s ...\n' "$what"
  # They end when nobody holds this pipe any longer, however this ends. (Killed early, a shell runs the trap of its parent.)
  exec {signs}> >(show_signs "$log" >&2)
  "$@" >"$log" 2>&1 9<&- {signs}>&- || code=$?
  exec {signs}>&-
  wait "$!" || :
  if [ "$code" -ne 0 ]; then
    tail -n "$SAID_ON_FAILURE" "$log" >&2
    rm -f "$log"
    refuse 1 "Building $what failed (exit code $code); nothing was changed." "read Docker's words above, then run this again$(registry_hint)"
  fi
  rm -f "$log"
  printf 'Built %s (%s s).\n' "$what" $((SECONDS - started))
}

registry_hint() {
  [ "${release[variant]:-}" != hardened ] || printf '; a hardened release needs: docker login registry1.dso.mil'
}

# At which step Docker is, until its input ends.
show_signs() { # LOG
  local ended=no
  while [ "$ended" = no ]; do
    # Above 128 it has waited in vain.
    if read -r -t "$BETWEEN_SIGNS_SECONDS" _ || [ $? -le 128 ]; then
      ended=yes
    else
      grep -aE '^#[0-9]+ (\[|[0-9.]+ )' "$1" | tail -n 1 | cut -c 1-120 || :
    fi
  done
}

say_login() {
  [ "${release[variant]}" = hardened ] || return 0
  printf 'A hardened release is built from images of its vendor: docker login registry1.dso.mil must have been done by this account.\n' >&2
}
