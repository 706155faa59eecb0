// The rule that history outlives its container: a database starts only on a mount of its own, never on the container's own
// file system, with which everything would be gone at the next update.

import { realpathSync } from 'node:fs';
import { mountPointOf, mountsIn } from '../../shared/domain/mount-points.ts';
import { StackError } from '../embedded/stack-error.ts';

/** Rejects a directory that lies on the root of the container. */
export function proveVolume(directory: string, mountinfo: string): void {
  let path: string;
  try {
    path = realpathSync(directory);
  } catch (error) {
    throw new StackError(`${directory} cannot be reached.`, `mount a volume at ${directory}`, error);
  }
  const point = mountPointOf(path, mountsIn(mountinfo)) ?? '/';
  if (point !== '/') return;
  throw new StackError(
    `${directory} lies in the container itself: recreating the container would lose everything in the database.`,
    `mount a volume at ${directory}, as compose.yaml does`,
  );
}
