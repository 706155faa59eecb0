// Lists the TAK Server releases that Holdfast knows, by what their databases need.

export interface KnownReleases {
  /** The first two numbers of the oldest and the newest version. */
  first: readonly [number, number];
  last: readonly [number, number];
  /** PostgreSQL major version of the database image. */
  postgres: number;
  /** Number of the newest schema migration. Without `max`, any later one. */
  schema: { min: number; max?: number };
}

/** By shape: docs/containers.md says which of them were run. */
export const KNOWN_RELEASES: readonly KnownReleases[] = [
  { first: [5, 0], last: [5, 7], postgres: 15, schema: { min: 80, max: 105 } },
  { first: [5, 8], last: [5, 8], postgres: 18, schema: { min: 106 } },
];
export const KNOWN_JAVA: readonly number[] = [17, 21];

/** `5.7` of `5.7-RELEASE-8`; undefined if the text names no release. */
export function versionOfRelease(release: string): [number, number] | undefined {
  const [, major, minor] = /^\s*(\d{1,4})\.(\d{1,4})(?:\.\d{1,4})?-RELEASE-\d+/.exec(release) ?? [];
  return major === undefined || minor === undefined ? undefined : [Number(major), Number(minor)];
}

export function compareMinors(one: readonly [number, number], other: readonly [number, number]): number {
  return one[0] - other[0] || one[1] - other[1];
}

/**
 * The oldest schema on which a release of this name stores what it receives; undefined for a name
 * that is not known.
 */
export function oldestSchema(release: string): number | undefined {
  const version = versionOfRelease(release);
  if (version === undefined) return undefined;
  return KNOWN_RELEASES.find(({ last }) => compareMinors(version, last) <= 0)?.schema.min;
}
