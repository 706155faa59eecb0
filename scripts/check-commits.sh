#!/usr/bin/env bash
# Checks the subjects of all commits since this rule began: `type(scope): imperative summary`, at
# most 72 characters.
set -euo pipefail
cd "${HOLDFAST_COMMITS_OF:-$(dirname "${BASH_SOURCE[0]}")/..}"
first=${HOLDFAST_COMMITS_SINCE:-1f10fb8f19f7d16038b7cd09c1dec512342767a7}
types='feat|fix|perf|refactor|test|docs|build|ci|chore|style|revert'
if ! git rev-parse --quiet --verify "$first^{commit}" >/dev/null 2>&1; then
  echo "Commit subjects were not checked: commit ${first:0:7} is not in this clone (shallow, or without git)."
  exit 0
fi
bad=$(git log --no-merges --format='%h %s' "$first..HEAD" |
  grep -vE "^[0-9a-f]+ ($types)(\([a-z0-9-]+\))?!?: [a-z0-9].*[^.]$" || true)
long=$(git log --no-merges --format='%h %s' "$first..HEAD" | awk '{ line = $0; sub(/^[0-9a-f]+ /, "", line); if (length(line) > 72) print }')
[ -z "$bad$long" ] && exit 0
{
  [ -z "$bad" ] || printf 'These commit subjects are not "type(scope): imperative summary", without a period (types: %s):\n%s\n' "${types//|/, }" "$bad"
  [ -z "$long" ] || printf 'These commit subjects have more than 72 characters:\n%s\n' "$long"
  echo 'Rewrite them before you push: git commit --amend, or git rebase --interactive.'
} >&2
exit 1
