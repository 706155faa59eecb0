#!/usr/bin/env bash
# Keeps versions of Holdfast side by side in .upgrade/ of an installation, and makes one of them
# current. Everything can be repeated after a crash. Called by upgrade.sh and its program.
#
# versions.sh fetch HOME VERSION DIRECTORY|COMMIT   prepares .upgrade/VERSION
# versions.sh switch HOME FROM TO                   makes TO current and keeps FROM in .upgrade/FROM
set -euo pipefail

# Belongs to this machine and not to a version.
readonly OWN='^(\.git|\.upgrade|\.env|\.env\..*|data|release|node_modules|dist|\.install\.lock|backup-.*|.*\.log)$'
# Files of this machine in directories of a version: the reader's own layer, and the flow engine.
readonly CARRIED=(compose/compose.local.yaml compose/flows/node_modules)
# The operator's file is a part of every version, and is carried if it was changed.
readonly THRESHOLDS=monitor/config/thresholds.yml

fail() {
  echo "$1" >&2
  echo "  Remedy: $2" >&2
  exit 1
}

# The names directly in a version.
entries_of() { # DIRECTORY
  if [ -e "$1/.git" ]; then
    git -C "$1" ls-files | cut -d / -f 1 | sort -u
  else
    find "$1" -mindepth 1 -maxdepth 1 -printf '%f\n' | grep -vE "$OWN" | sort
  fi
  [ ! -e "$1/.env.template" ] || [ -e "$1/.git" ] || echo .env.template
}

# Hard links where possible: the packages are some 100 MB.
link_tree() { # FROM TO
  rm -rf -- "$2"
  cp -al -- "$1" "$2" 2>/dev/null || { rm -rf -- "$2" && cp -a --reflink=auto -- "$1" "$2"; }
}

copy_source() { # SOURCE INTO
  local name
  while IFS= read -r name; do
    rm -rf -- "${2:?}/$name"
    [ ! -e "$1/$name" ] || cp -a --reflink=auto -- "$1/$name" "$2/$name"
    find "$2/$name" -name node_modules -type d -prune -exec rm -rf {} +
  done < <(entries_of "$1")
  [ ! -f "$1/dist/.built" ] || { rm -rf -- "$2/dist" && cp -a --reflink=auto -- "$1/dist" "$2/dist"; }
}

# Takes packages that are installed already, if they are the right ones.
take_packages() { # SOURCE INTO
  [ ! -e "$2/node_modules" ] || return 0
  # shellcheck source=scripts/install.sh
  (source "$(dirname "${BASH_SOURCE[0]}")/install.sh" && same_packages "$2/package-lock.json" "$1/node_modules/.holdfast-lock") || return 0
  link_tree "$1/node_modules" "$2/.packages"
  mv -T -- "$2/.packages" "$2/node_modules"
}

fetch_version() { # HOME VERSION SOURCE
  local home=$1 version=$2 source=$3 target partial commit=''
  target=$home/.upgrade/$version
  partial=$target.partial
  [ ! -f "$target/.entries" ] || return 0
  rm -rf -- "$target"
  mkdir -p -- "$partial"
  if [ -d "$source" ]; then
    copy_source "$source" "$partial"
    if [ -e "$source/.git" ] && [ -e "$home/.git" ] && [ -z "$(git -C "$source" status --porcelain --untracked-files=no)" ]; then
      commit=$(git -C "$source" rev-parse HEAD)
      git -C "$home" fetch --quiet --no-tags "$source" HEAD
    fi
    take_packages "$source" "$partial"
  else
    commit=$source
    git -C "$home" archive "$commit" | tar -x -C "$partial"
  fi
  take_packages "$home" "$partial"
  if [ -d "$home/compose/flows/node_modules" ] && cmp -s "$home/compose/flows/package-lock.json" "$partial/compose/flows/package-lock.json"; then
    link_tree "$home/compose/flows/node_modules" "$partial/compose/flows/node_modules"
  fi
  [ -n "${HOLDFAST_SOURCES_ONLY:-}" ] || (
    cd "$partial"
    # shellcheck source=scripts/install.sh
    source scripts/install.sh
    prepare_holdfast
  )
  [ -z "$commit" ] || printf '%s\n' "$commit" >"$partial/.commit"
  find "$partial" -mindepth 1 -maxdepth 1 ! -name .commit ! -name .install.lock -printf '%f\n' | sort >"$partial/.entries.new"
  sed -i '/^\.entries/d' "$partial/.entries.new"
  mv -T -- "$partial/.entries.new" "$partial/.entries"
  sync -f "$partial"
  mv -T -- "$partial" "$target"
}

# Remembers what belongs to the current version before it is moved.
remember_current() { # HOME OLD-DIRECTORY OTHER-DIRECTORY
  [ ! -f "$2/.entries" ] || return 0
  mkdir -p -- "$2"
  if [ -e "$1/.git" ]; then
    { git -C "$1" symbolic-ref --quiet HEAD || git -C "$1" rev-parse HEAD; } >"$2/.commit" 2>/dev/null || rm -f -- "$2/.commit"
  fi
  { entries_of "$1" && printf 'node_modules\ndist\n'; } | sort -u >"$2/.entries.new"
  # Without git, only the new version tells which files here belong to Holdfast.
  [ -e "$1/.git" ] || {
    sort "$3/.entries" | comm -12 "$2/.entries.new" - >"$2/.entries.own"
    mv -T -- "$2/.entries.own" "$2/.entries.new"
  }
  mv -T -- "$2/.entries.new" "$2/.entries"
}

# One rename out and one in for each name. A name that is missing here was interrupted between both.
exchange() { # HOME OLD NEW NAME
  if grep -qxF -- "$4" "$3/.entries"; then
    [ -e "$3/$4" ] || return 0
    [ ! -e "$1/$4" ] || mv -T -- "$1/$4" "$2/$4"
    mv -T -- "$3/$4" "$1/$4"
  elif [ -e "$1/$4" ]; then
    mv -T -- "$1/$4" "$2/$4"
  fi
}

# scripts/ always exists, so that an interrupted switch can be finished by a script.
exchange_scripts() { # HOME OLD NEW
  local each name
  if [ ! -d "$2/scripts" ]; then
    rm -rf -- "$2/.scripts"
    cp -a -- "$1/scripts" "$2/.scripts"
    mv -T -- "$2/.scripts" "$2/scripts"
  fi
  for each in "$3"/scripts/*; do
    name=$(basename "$each")
    cp -p -- "$each" "$1/scripts/.$name.new"
    mv -T -- "$1/scripts/.$name.new" "$1/scripts/$name"
  done
  for each in "$2"/scripts/*; do
    name=$(basename "$each")
    [ -e "$3/scripts/$name" ] || rm -f -- "$1/scripts/$name"
  done
}

# Before anything is moved: afterwards git can't tell whether the file was changed.
save_thresholds() { # HOME
  [ -f "$1/$THRESHOLDS" ] && [ ! -f "$1/.upgrade/thresholds.yml" ] || return 0
  if [ -e "$1/.git" ] && git -C "$1" diff --quiet HEAD -- "$THRESHOLDS"; then return 0; fi
  cp -p -- "$1/$THRESHOLDS" "$1/.upgrade/thresholds.new"
  mv -T -- "$1/.upgrade/thresholds.new" "$1/.upgrade/thresholds.yml"
}

switch_version() { # HOME FROM TO
  local home=$1 old=$1/.upgrade/$2 new=$1/.upgrade/$3 name each head
  [ -f "$new/.entries" ] || fail "Version $3 is not in $home/.upgrade." 'fetch it again: ./scripts/upgrade.sh fetch'
  remember_current "$home" "$old" "$new"
  save_thresholds "$home"
  exchange_scripts "$home" "$old" "$new"
  while IFS= read -r name; do
    [ "$name" = scripts ] || exchange "$home" "$old" "$new" "$name"
  done < <(sort -u "$old/.entries" "$new/.entries")
  for each in "${CARRIED[@]}"; do
    if [ -f "$old/$each" ] || { [ -d "$old/$each" ] && [ ! -e "$home/$each" ] &&
      cmp -s "$old/compose/flows/package-lock.json" "$home/compose/flows/package-lock.json"; }; then
      cp -al -f -- "$old/$each" "$home/$each"
    fi
  done
  if [ -f "$home/.upgrade/thresholds.yml" ]; then
    cp -p -- "$home/.upgrade/thresholds.yml" "$home/$THRESHOLDS"
    rm -f -- "$home/.upgrade/thresholds.yml"
  fi
  sync -f "$home"
  if [ -e "$home/.git" ] && [ -f "$new/.commit" ]; then
    head=$(cat "$new/.commit")
    move_head "$home" "$head" || echo "Git could not follow to version $3. The version itself is complete." >&2
  fi
}

# For git status only: the files are in place already.
move_head() { # HOME COMMIT-OR-BRANCH
  case $2 in
    refs/*) git -C "$1" symbolic-ref HEAD "$2" ;;
    *) git -C "$1" update-ref --no-deref HEAD "$2" ;;
  esac && git -C "$1" read-tree HEAD && { git -C "$1" update-index -q --refresh >/dev/null || true; }
}

# A call that outlived its killed caller ends first.
exec 9>"${2:?}/.upgrade/versions.lock"
flock 9
case ${1:-} in
  fetch) fetch_version "$2" "$3" "$4" ;;
  switch) switch_version "$2" "$3" "$4" ;;
  *) exit 2 ;;
esac
