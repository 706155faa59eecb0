// The rule that history outlives its container: a database starts only on a mount of its own, never on the container's own
// file system, with which everything would be gone at the next update.

import { realpathSync } from 'node:fs';
import { StackError } from '../embedded/stack-error.ts';

/** The mount point that holds an absolute, resolved path, by the text of /proc/self/mountinfo. */
export function mountPointOf(path: string, mountinfo: string): string {
  const points = mountinfo
    .split('\n')
    .map((line) => line.split(' ')[4])
    .filter((point) => point !== undefined)
    .map((point) =>
      point.replaceAll(/\\(\d{3})/g, (_, octal: string) => String.fromCodePoint(Number.parseInt(octal, 8))),
    );
  const above = points.filter((point) => path === point || path.startsWith(point === '/' ? point : `${point}/`));
  return above.reduce((longest, point) => (point.length > longest.length ? point : longest), '/');
}

/** Rejects a directory that lies on the root of the container. */
export function proveVolume(directory: string, mountinfo: string): void {
  let path: string;
  try {
    path = realpathSync(directory);
  } catch (error) {
    throw new StackError(`${directory} cannot be reached.`, `mount a volume at ${directory}`, error);
  }
  if (mountPointOf(path, mountinfo) !== '/') return;
  throw new StackError(
    `${directory} lies in the container itself: recreating the container would lose everything in the database.`,
    `mount a volume at ${directory}, as compose.yaml does`,
  );
}
