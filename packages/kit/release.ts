// Which release this build is, and which of two releases is newer.

declare const HOLDFAST_RELEASE: string | undefined;
declare const HOLDFAST_THRESHOLDS: string | undefined;
declare const HOLDFAST_REPOSITORY: string | undefined;
declare const HOLDFAST_IMAGES: Record<string, string> | undefined;

export const RELEASE = typeof HOLDFAST_RELEASE === 'string' ? HOLDFAST_RELEASE : 'development';

/**
 * The text of monitor/config/thresholds.yml if it said nothing but the defaults when this was
 * built; else empty or undefined.
 */
export const SHIPPED_THRESHOLDS = typeof HOLDFAST_THRESHOLDS === 'string' ? HOLDFAST_THRESHOLDS : undefined;

/** The foreign images that compose.yaml pins, by name, such as `caddy:2.11.3-alpine`. */
export const IMAGES: Readonly<Record<string, string>> = typeof HOLDFAST_IMAGES === 'object' ? HOLDFAST_IMAGES : {};

/** OWNER/REPOSITORY at GitHub of whoever made this build; empty or undefined if unknown. */
export const REPOSITORY = typeof HOLDFAST_REPOSITORY === 'string' ? HOLDFAST_REPOSITORY : undefined;

/** The version in the tag of an image; undefined if it has none. */
export function imageVersion(image: string | undefined): string | undefined {
  return /:v?(\d+(?:\.\d+)+)/.exec(image ?? '')?.[1];
}

/**
 * Which of two releases is newer: dotted numbers with an optional `v` and an optional pre-release
 * (`2.1.0-rc.1`). Negative when `a` is older than `b`, 0 when they are the same, positive when it
 * is newer; undefined when one is no version.
 */
export function compareVersions(a: string, b: string): number | undefined {
  const [left, right] = [parse(a), parse(b)];
  if (left === undefined || right === undefined) return undefined;
  return compareParts(left.numbers, right.numbers) || comparePreReleases(left.preRelease, right.preRelease);
}

interface Version {
  numbers: number[];
  preRelease: string[];
}

function parse(text: string): Version | undefined {
  const match = /^v?(\d+(?:\.\d+)*)(?:-([0-9A-Za-z.-]+))?(?:\+.*)?$/.exec(text.trim());
  if (match === null) return undefined;
  return { numbers: (match[1] ?? '').split('.').map(Number), preRelease: match[2]?.split('.') ?? [] };
}

function compareParts(a: readonly number[], b: readonly number[]): number {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** A pre-release comes before its release; numbers count as numbers and come before words. */
function comparePreReleases(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 || b.length === 0) return b.length - a.length;
  for (let index = 0; index < Math.min(a.length, b.length); index++) {
    const difference = compareIdentifiers(a[index] ?? '', b[index] ?? '');
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function compareIdentifiers(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => (/^\d+$/.test(text) ? Number(text) : undefined));
  if (left !== undefined && right !== undefined) return left - right;
  if (left !== undefined) return -1;
  if (right !== undefined) return 1;
  return a < b ? -1 : Number(a > b);
}
