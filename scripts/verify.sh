#!/usr/bin/env bash
# Runs the checks before each commit: formatter, linter, types and the fast tests.
# Random tests run a tenth as often as in CI. Rules that need types look at the files that differ
# from main, or on main from the last commit. CI looks at all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export HOLDFAST_TEST_RUNS=${HOLDFAST_TEST_RUNS:-0.1}
output=$(mktemp)
trap 'rm -f "$output"' EXIT
# Without git or a branch main: all files.
lint() {
  local since list changed
  since=$(git merge-base HEAD main 2>/dev/null) || { npm run --silent lint; return; }
  list=$(git diff --name-only --diff-filter=d "$since" -- '*.ts' '*.tsx' && git ls-files -o --exclude-standard -- '*.ts' '*.tsx') || return
  mapfile -t changed <<<"$list"
  npx oxfmt --check && npx oxlint --deny-warnings || return
  [ -z "$list" ] || npx oxlint --type-aware --deny-warnings "${changed[@]}"
}
{ scripts/check-commits.sh && lint && npm run --silent typecheck; } >"$output" 2>&1 &
checks=$!
tests=0
npx vitest run --project unit || tests=$?
wait "$checks" || { cat "$output"; exit 1; }
exit "$tests"
