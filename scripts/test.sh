#!/usr/bin/env bash
# Runs every check and every test; the last line is "N passed, N failed".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/install.sh
source scripts/install.sh
prepare_holdfast
"$NODE" scripts/install-flows.ts || echo 'no Node-RED: the tests that run it are skipped' >&2
command -v "${HOLDFAST_CHROMIUM:-chromium}" chromium-headless-shell >/dev/null || echo 'no chromium: the tests of the pages in a browser are skipped' >&2
npm run --silent lint
npm run --silent typecheck
npm test --silent -- "$@"
