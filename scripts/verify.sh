#!/usr/bin/env bash
# Runs the checks before each commit: formatter, linter, types and the fast tests.
# Random tests run a tenth as often as in CI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export HOLDFAST_TEST_RUNS=${HOLDFAST_TEST_RUNS:-0.1}
output=$(mktemp)
trap 'rm -f "$output"' EXIT
{ scripts/check-commits.sh && npm run --silent lint && npm run --silent typecheck; } >"$output" 2>&1 &
checks=$!
tests=0
npx vitest run --project unit || tests=$?
wait "$checks" || { cat "$output"; exit 1; }
exit "$tests"
