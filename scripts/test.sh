#!/usr/bin/env bash
# Installs the test tools, then runs all checks and tests. The last line is "N passed, N failed".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/test-tools.sh
source scripts/test-tools.sh
install_test_tools
# shellcheck source=scripts/install.sh
source scripts/install.sh
prepare_holdfast
"$NODE" test/e2e/install-flows.ts || not_installed+=('the flow engine (Node-RED could not be installed, see the message above)')
releasing/release.sh install || not_installed+=('releases (the release tools could not be installed, see the message above)')
[ "$(id -u)" = 0 ] || not_installed+=('what only root can do: containers, mounts, other accounts (run ./scripts/test.sh as root)')
HOLDFAST_NOT_INSTALLED=$(printf '%s\n' "${not_installed[@]}")
export HOLDFAST_NOT_INSTALLED
npm run --silent lint
npm run --silent typecheck
npm test --silent -- "$@"
