// The clusters on the volume of the core's database during an upgrade of PostgreSQL: which is in
// use, which is kept, and how one takes the place of another. A crash leaves a state that
// `finishSwitch` completes.

import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { StackError } from '@holdfast/kit/app-error';
import { syncDirectory } from '@holdfast/kit/files';

/** Directory of the cluster in use, in the volume of a database. */
export const CLUSTER = 'pgdata';
/** Being filled; deleted by the next import. */
export const UPGRADING = `${CLUSTER}.upgrading`;
/** Verified, and about to take the place of the old one. */
export const UPGRADED = `${CLUSTER}.upgraded`;
/** Was in use until now, and gives its place to a kept one. */
const LEFT = `${CLUSTER}.left`;
const KEPT = /^pgdata-(\d+)$/;

/** Major versions of the kept clusters. */
export function keptMajors(volume: string): string[] {
  if (!existsSync(volume)) return [];
  return readdirSync(volume).flatMap((name) => KEPT.exec(name)?.[1] ?? []);
}

export function majorOf(pgdata: string): string {
  return readFileSync(join(pgdata, 'PG_VERSION'), 'utf8').trim();
}

/** Completes a switch that a crash interrupted. Never deletes anything. */
export function finishSwitch(volume: string): void {
  const at = (name: string): string => join(volume, name);
  if (!existsSync(at(CLUSTER))) {
    if (existsSync(at(LEFT))) {
      // The kept one of another version is the one that was asked for.
      const [major, ...others] = keptMajors(volume).filter((each) => each !== majorOf(at(LEFT)));
      if (major !== undefined && others.length === 0) rename(volume, `${CLUSTER}-${major}`, CLUSTER);
    } else if (existsSync(at(UPGRADED))) rename(volume, UPGRADED, CLUSTER);
  }
  if (existsSync(at(CLUSTER)) && existsSync(at(LEFT))) {
    const kept = `${CLUSTER}-${majorOf(at(LEFT))}`;
    if (!existsSync(at(kept))) rename(volume, LEFT, kept);
  }
  if (existsSync(at(CLUSTER))) return;
  const [major] = keptMajors(volume);
  if (major === undefined && !existsSync(at(LEFT))) return;
  throw new StackError(
    `${volume} has no cluster in use, only kept ones (${readdirSync(volume)
      .filter((name) => name.startsWith(CLUSTER))
      .join(', ')}). Starting would create an empty database.`,
    `rename the one to use to ${CLUSTER}, then start again`,
  );
}

/** The verified cluster takes the place of the old one, which is kept as `pgdata-<major>`. */
export function switchToUpgraded(volume: string): void {
  const kept = `${CLUSTER}-${majorOf(join(volume, CLUSTER))}`;
  // Of an upgrade that was taken back.
  if (existsSync(join(volume, kept)))
    throw new StackError(
      `${join(volume, kept)} exists, so the old cluster can't be kept under that name. Nothing was changed.`,
      'delete what is no longer needed: ./scripts/upgrade-database.sh --forget',
    );
  rename(volume, CLUSTER, kept);
  finishSwitch(volume);
}

/** Puts the kept cluster of this major version in use, and keeps the one in use. */
export function goBack(volume: string, major: string): 'back' | 'already in use' {
  finishSwitch(volume);
  const current = majorOf(join(volume, CLUSTER));
  if (current === major) return 'already in use';
  const kept = `${CLUSTER}-${major}`;
  if (!existsSync(join(volume, kept)))
    throw new StackError(
      `The volume has no cluster of PostgreSQL ${major} to go back to: ${kept} was deleted, or there was no upgrade.`,
      'restore a backup of the older release instead (docs/containers.md)',
    );
  if (existsSync(join(volume, `${CLUSTER}-${current}`)))
    rmSync(join(volume, `${CLUSTER}-${current}`), { recursive: true });
  for (const other of keptMajors(volume).filter((each) => each !== major))
    rmSync(join(volume, `${CLUSTER}-${other}`), { recursive: true });
  rename(volume, CLUSTER, LEFT);
  finishSwitch(volume);
  return 'back';
}

/** Deletes the kept clusters; their major versions. */
export function forgetKept(volume: string): string[] {
  finishSwitch(volume);
  const majors = keptMajors(volume);
  for (const major of majors) rmSync(join(volume, `${CLUSTER}-${major}`), { recursive: true });
  syncDirectory(volume);
  return majors;
}

function rename(volume: string, from: string, to: string): void {
  renameSync(join(volume, from), join(volume, to));
  syncDirectory(volume);
}
