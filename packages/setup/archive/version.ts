// Which of two releases of a TAK Server is the newer one, by the numbers in their names (`5.7-RELEASE-8`).

/** Below zero when `one` is the older. What carries no number is older than everything. */
export function compareReleases(one: string, other: string): number {
  const [a, b] = [numbersOf(one), numbersOf(other)];
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const difference = (a[at] ?? -1) - (b[at] ?? -1);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** The name of the release in the text of its version.txt; undefined when there is none. */
export function releaseIn(text: string): string | undefined {
  return /\b\d+(?:\.\d+)+-[A-Z]+-?\d+\b/.exec(text)?.[0];
}

function numbersOf(release: string): number[] {
  const [version = [], build = []] = release.split(/-[A-Z]+-?/).map((part) => (part.match(/\d+/g) ?? []).map(Number));
  // 5.7 is 5.7.0: the number of a build is never held against that of a patch.
  return version.length === 0 ? [] : [...[...version, 0, 0].slice(0, 3), ...build];
}
