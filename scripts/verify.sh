#!/usr/bin/env bash
# Runs the checks before each commit: formatter, linter, types and the fast tests of what differs from
# main, or on main from the last commit. Random tests run a tenth as often as in CI. CI looks at all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export HOLDFAST_TEST_RUNS=${HOLDFAST_TEST_RUNS:-0.1}
output=$(mktemp)
trap 'rm -f "$output"' EXIT
# Without git or a branch main: all files.
since=$(git merge-base HEAD main 2>/dev/null) || since=
lint() {
  local list changed
  [ -n "$since" ] || { npm run --silent lint; return; }
  list=$(git diff --name-only --diff-filter=d "$since" -- '*.ts' '*.tsx' && git ls-files -o --exclude-standard -- '*.ts' '*.tsx') || return
  mapfile -t changed <<<"$list"
  npx oxfmt --check && npx oxlint --deny-warnings || return
  [ -z "$list" ] || npx oxlint --type-aware --deny-warnings "${changed[@]}"
}
# Tests that read files of the repository do not import them: they run each time.
readonly READING=(test/architecture.test.ts test/compose test/docs test/jobs/jobs.test.ts test/pages/colors test/settings)
run_tests() {
  [ -n "$since" ] || { npx vitest run --project unit; return; }
  npx vitest run --project unit --changed "$since" --passWithNoTests && npx vitest run --project unit "${READING[@]}"
}
{ scripts/check-commits.sh && lint && npm run --silent typecheck; } >"$output" 2>&1 &
checks=$!
tests=0
run_tests || tests=$?
wait "$checks" || { cat "$output"; exit 1; }
exit "$tests"
