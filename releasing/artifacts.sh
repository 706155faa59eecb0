# shellcheck shell=bash
# Sourced by release.sh: the files of a release, each made from a commit alone. Two builds of one
# commit give the same bytes, but for the audit, which tells of the day.

readonly TOOLS=$PWD/$HERE/node_modules

artifacts() { # [--out DIR] [--arch ARCHITECTURE]... [COMMIT]
  local out=.release architectures=() commit=HEAD version epoch stage arch
  while [ $# -gt 0 ]; do
    case $1 in
      --out | --arch) [ -n "${2:-}" ] || fail "$1 has no value." "./$HERE/release.sh shows how it is called" ;;&
      --out) out=$2 && shift 2 ;;
      --arch) architectures+=("$2") && shift 2 ;;
      *) commit=$1 && shift ;;
    esac
  done
  [ "${#architectures[@]}" -gt 0 ] || architectures=(x64 arm64)
  commit=$(git rev-parse --verify --quiet "$commit^{commit}") || fail "There is no commit $commit here." 'name a commit, or a tag such as v0.2.0'
  use_node
  install_tools
  epoch=$(git log -1 --format=%ct "$commit")
  stage=$(mktemp -d)
  # shellcheck disable=SC2064 # stage is local
  trap "rm -rf '$stage'" EXIT
  rm -rf -- "$out"
  mkdir -p -- "$out"
  out=$(readlink -f "$out")
  mkdir "$stage/source"
  git archive "$commit" | tar -x -C "$stage/source"
  version=$(node -p "require('$stage/source/package.json').version")
  echo "Holdfast $version, commit ${commit:0:12}:" >&2
  git archive --format=tar --prefix="holdfast-$version/" "$commit" | gzip -n >"$out/holdfast-$version-source.tar.gz"
  build_in "$stage/source"
  for arch in "${architectures[@]}"; do
    self_contained "$stage" "$arch" "holdfast-$version-linux-$arch" "$epoch" >"$out/holdfast-$version-linux-$arch.tar.gz"
  done
  reports "$stage/source" "$out" "$version" "$epoch"
  (cd "$out" && sha256sum -- * >"$stage/SHA256SUMS" && mv "$stage/SHA256SUMS" .)
  sign "$out"
  (cd "$out" && stat -c '%12s  %n' -- *) >&2
}

# The locked packages and the programs. Packages that are installed here already are taken.
build_in() { # DIRECTORY
  if same_packages "$1/package-lock.json" node_modules/.holdfast-lock; then
    cp -al node_modules "$1/node_modules" 2>/dev/null || cp -a node_modules "$1/node_modules"
  else
    (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
  fi
  (cd "$1" && node scripts/build.ts)
}

# Everything that the embedded stack needs on a machine with nothing but Debian's minimum. Prints
# the archive.
self_contained() { # STAGE ARCHITECTURE NAME EPOCH
  local source=$1/source tree=$1/$3 modules=$1/$3/node_modules packages=$1/packages-$2 cpu
  case $2 in
    x64) cpu=amd64 ;;
    arm64) cpu=arm64 ;;
    *) fail "There is no archive for $2." 'choose x64 or arm64' ;;
  esac
  mkdir -p "$packages" "$tree"
  if [ -d "$source/node_modules/node-linux-$2" ]; then
    ln -s "$source/node_modules" "$packages/node_modules"
  else
    (cd "$source" && cp --parents .npmrc package.json package-lock.json packages/*/package.json "$packages")
    (cd "$packages" && npm ci --ignore-scripts --omit=dev --os=linux --cpu="$2" --no-audit --no-fund --loglevel=error >&2)
  fi
  tar -C "$source" -c --exclude=./node_modules --exclude=./test --exclude=./bench --exclude='./.*' --exclude='./packages/*/test' \
    --exclude=./releasing . | tar -C "$tree" -x
  cp "$source/.env.template" "$source/.npmrc" "$tree"
  install -D -t "$modules/node-linux-$2/bin" "$packages/node_modules/node-linux-$2/bin/node"
  cp "$packages/node_modules/node-linux-$2/LICENSE" "$modules/node-linux-$2/"
  (cd "$packages" && node "$source/compose/management/database-files.mjs" "$cpu" "$modules")
  cp -a "$source/node_modules/swagger-ui-dist" "$modules/"
  cp "$source/package-lock.json" "$modules/.holdfast-lock"
  node "$HERE/reports.mjs" texts "$source" "$tree" >"$tree/THIRD-PARTY.txt"
  touch "$tree/dist/.built"
  node "$HERE/reports.mjs" machine "$2" "$tree"
  tar -C "$1" -c --sort=name --format=gnu --mtime="@$4" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w "$3" | gzip -n
  rm -rf -- "$tree"
}

# The npm of the tools: Debian's is too old to write an SBOM.
reports() { # SOURCE OUT VERSION EPOCH
  # It names no component without a version.
  sed -i -E "s#^(\s+\"name\": \"@holdfast/[a-z]+\",)\$#\1 \"version\": \"$3\",#" "$1"/package-lock.json "$1"/packages/*/package.json
  local npm=("$TOOLS/.bin/npm" --omit=dev --package-lock-only) sbom=$2/holdfast-$3.cdx.json
  (cd "$1" && "${npm[@]}" sbom --sbom-format=cyclonedx) | SOURCE_DATE_EPOCH=$4 node "$HERE/reports.mjs" sbom "$1" >"$sbom"
  node "$HERE/reports.mjs" licenses "$sbom" >"$2/licenses.csv"
  # It ends with 1 if it found something.
  (cd "$1" && "${npm[@]}" audit --json) >"$2/audit.json" || true
  node "$HERE/reports.mjs" audit "$2/audit.json" >&2
}

# Everybody can check it with the public key: minisign -Vm SHA256SUMS -P KEY.
sign() { # DIRECTORY
  if [ -z "${HOLDFAST_SIGNING_KEY:-}" ]; then
    echo 'Not signed: HOLDFAST_SIGNING_KEY is not set.' >&2
    return
  fi
  command -v minisign >/dev/null || fail "minisign isn't installed, so the release can't be signed." 'apt-get install minisign'
  local key=$stage/key
  (umask 077 && printf '%s\n' "$HOLDFAST_SIGNING_KEY" >"$key")
  minisign -S -s "$key" -m "$1/SHA256SUMS" -t "holdfast $version" </dev/null >&2 ||
    fail "minisign couldn't sign with HOLDFAST_SIGNING_KEY." 'it must be the content of a key file without a password: minisign -G -W'
}

compared() { grep -vE ' (audit\.json|NOT-AUDITED\.txt)$' "$1/SHA256SUMS"; }

reproduce() {
  local second
  second=$(mktemp -d)
  (artifacts "$@")
  (umask 077 && TZ=Pacific/Kiritimati artifacts "$@" --out "$second")
  if diff <(compared .release) <(compared "$second"); then
    echo "Both builds have the same bytes ($(compared .release | wc -l) files; the audit is not compared)."
    rm -rf -- "$second"
  else
    fail 'Two builds of one commit differ.' "compare .release with $second"
  fi
}
