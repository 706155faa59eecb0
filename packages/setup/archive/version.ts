// Compares TAK Server releases by the numbers in their names (`5.7-RELEASE-8`).

/** Negative if `one` is older. A name without numbers is older than everything. */
export function compareReleases(one: string, other: string): number {
  const [a, b] = [numbersOf(one), numbersOf(other)];
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const difference = (a[at] ?? -1) - (b[at] ?? -1);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** The name of the release in the text of its version.txt; undefined if there is none. */
export function releaseIn(text: string): string | undefined {
  return /\b\d+(?:\.\d+)+-[A-Z]+-?\d+\b/.exec(text)?.[0];
}

function numbersOf(release: string): number[] {
  const [version = [], build = []] = release.split(/-[A-Z]+-?/).map((part) => (part.match(/\d+/g) ?? []).map(Number));
  // 5.7 means 5.7.0: never compare a build number with a patch number.
  return version.length === 0 ? [] : [...[...version, 0, 0].slice(0, 3), ...build];
}
