// The parts of a stack and the lists of their releases, in memory: change a member to release something.

import { AppError } from '@holdfast/kit/app-error';
import type { Part } from '../../shared/health/monitored.ts';
import { partsOf } from '../../shared/health/parts.ts';
import type { Release, ReleaseFeed } from '../../shared/host/port.ts';

export interface ReleaseWorld {
  nodeVersion: string;
  /** Releases by product; undefined: no network. */
  releases: Record<string, readonly Partial<Release>[]> | undefined;
  /** Besides PostgreSQL and Node.js. */
  moreParts: Part[];
}

export const releaseWorld = (): ReleaseWorld => ({
  nodeVersion: '24.21.0',
  releases: { postgresql: [{ version: '16.14' }], nodejs: [{ version: '24.21.0' }] },
  moreParts: [],
});

/** Those of an embedded stack. */
export function fakeParts({ nodeVersion, moreParts }: ReleaseWorld, databaseVersion: () => Promise<string>): Part[] {
  const none = { repository: undefined, coreRelease: undefined, identityVersion: async () => '' };
  return [...partsOf({ mode: 'embedded', nodeVersion, databaseVersion, ...none }), ...moreParts];
}

export function fakeReleases(of: ReleaseWorld): ReleaseFeed {
  const unknown: Release = { version: '', releasedAt: undefined, notes: undefined };
  return {
    async releases({ product }) {
      if (of.releases === undefined) throw new AppError('unavailable', 'no network');
      return (of.releases[product] ?? []).map((each) => ({ ...unknown, ...each }));
    },
  };
}
