#!/usr/bin/env bash
# Makes releases of Holdfast; docs/releases.md explains them. Called by maintainers and by
# .github/workflows.
#
# release.sh install                the tools, into releasing/node_modules
# release.sh dry                    shows what the next release of this branch would be
# release.sh publish [OPTION...]    makes it; options go to semantic-release
# release.sh version VERSION        writes the version into the files that have it
# release.sh artifacts [--out DIR] [--arch x64|arm64]... [COMMIT]   archives, checksums, reports
# release.sh reproduce              builds the artifacts of HEAD into .release, builds them again and compares
# release.sh prove [ARCHIVE]        runs an archive in a bare Debian of its architecture, without Node and network, as root
# release.sh tag                    prints tag=TAG if HEAD is a release
# release.sh images [OPTION...]     our image for both architectures; options go to docker buildx bake
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
readonly HERE=releasing

fail() {
  printf '%s\n  Remedy: %s\n' "$1" "$2" >&2
  exit 1
}

use_node() {
  # shellcheck source=scripts/install.sh
  source scripts/install.sh
  prepare_holdfast
  PATH=$PWD/$(dirname "$NODE"):$PATH
}

install_tools() {
  [ -f "$HERE/node_modules/.holdfast-lock" ] && cmp -s "$HERE/package-lock.json" "$HERE/node_modules/.holdfast-lock" && return
  (cd "$HERE" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2) ||
    fail "Couldn't install the release tools." 'read the message of npm above'
  cp "$HERE/package-lock.json" "$HERE/node_modules/.holdfast-lock"
}

semantic_release() {
  use_node
  install_tools
  node "$HERE/node_modules/semantic-release/bin/semantic-release.js" --extends "./$HERE/release.config.mjs" "$@"
}

# This clone alone is asked: no right to push is needed.
show_next() {
  local branch
  branch=$(git symbolic-ref --quiet --short HEAD) || fail 'No branch is checked out.' 'git switch main'
  semantic_release --dry-run --no-ci --repository-url "file://$PWD" --branches "$branch"
}

# npm run generate writes it into compose/program.yaml and the chart.
write_version() { # VERSION
  [[ ${1:-} =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "'${1:-}' is not a version." 'give one such as 0.2.0'
  use_node
  npm version --no-git-tag-version --allow-same-version --no-workspaces-update --loglevel=error "$1" >/dev/null
  npm run --silent generate
}

build_images() { # OPTION...
  local source
  source=$(git config --get remote.origin.url || true)
  RELEASE=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' package.json) REVISION=$(git rev-parse HEAD) SOURCE=${source:-unknown} \
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) docker buildx bake -f compose/docker-bake.hcl "$@"
}

verb=${1:-}
shift || true
case $verb in
  install) use_node && install_tools ;;
  dry) show_next ;;
  publish)
    [ "${GITHUB_ACTIONS:-}" != true ] || [ -n "${HOLDFAST_SIGNING_KEY:-}" ] ||
      fail 'HOLDFAST_SIGNING_KEY is not set, so nobody could check the release.' 'make it a secret of the environment release: see docs/releases.md'
    semantic_release "$@"
    ;;
  version) write_version "$@" ;;
  tag) git tag --points-at HEAD --list 'v*' | sed 's/^/tag=/' ;;
  images) build_images "$@" ;;
  artifacts | reproduce)
    # shellcheck source=releasing/artifacts.sh
    source "$HERE/artifacts.sh"
    "$verb" "$@"
    ;;
  prove)
    # shellcheck source=releasing/prove.sh
    source "$HERE/prove.sh"
    prove "$@"
    ;;
  *)
    sed -n '5,13s/^# //p' "$HERE/release.sh" >&2
    exit 2
    ;;
esac
