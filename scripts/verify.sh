#!/usr/bin/env bash
# The checks before each commit: formatter, linter and types beside the fast tests. Random tests run a tenth as often as in CI.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export HOLDFAST_TEST_RUNS=${HOLDFAST_TEST_RUNS:-0.1}
checked=$(mktemp)
trap 'rm -f "$checked"' EXIT
{ npm run --silent lint && npm run --silent typecheck; } >"$checked" 2>&1 &
checks=$!
npx vitest run --project unit
tests=$?
wait "$checks" || { cat "$checked"; exit 1; }
exit "$tests"
