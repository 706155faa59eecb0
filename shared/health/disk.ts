// How full each file system of the stack is, in bytes and in inodes, and when it is full.

import { bytesInWords, counted } from '../domain/amounts.ts';
import { type Finding, limitsOf } from '../domain/evaluate.ts';
import { diskGrowth, fullWhen, judgeGrowth, type MountGrowth } from './disk-growth.ts';
import type { DiskUse } from '../ports/disks.ts';
import { healthModule } from './module.ts';

interface DiskData {
  mounts: (DiskUse & MountGrowth)[];
  /** Why nothing is known of growth. */
  growth_problem: string | null;
}

export const disk = healthModule<DiskData>({
  name: 'disk',

  remedy: [
    'Find what grew below the mount that the alert names: sudo du -xh --max-depth=3 MOUNT | sort -h | tail -20 (for inodes: du -x --inodes). In containers MOUNT is inside of management: docker system df -v shows the volumes by size.',
    'Delete or move what nobody needs, such as old backups and logs, with containers also docker image prune; never delete anything inside the directory of the database.',
    'If it fills with events, quiet the client that the alert names, or set COT_RETENTION_DAYS as GET /api/health/database proposes under policy, after a look at GET /api/retention/preview; VACUUM FULL gives back to the disk what was deleted.',
    'If nothing can go, enlarge the disk before it is full: a full one stops the database.',
  ],

  async read(monitored, thresholds) {
    const mounts = await monitored.disks.use();
    const { of, problem } = await diskGrowth(monitored, thresholds);
    return { mounts: mounts.map((use) => ({ ...use, ...of(use.mount) })), growth_problem: problem };
  },

  findings({ mounts }, thresholds) {
    const figure = (subject: string, value: number, says: string): Finding => ({
      kind: 'figure',
      subject,
      value,
      limits: limitsOf(thresholds),
      says,
      inWords: (limit) => `${limit} %`,
    });
    if (mounts.length === 0) return [{ kind: 'fact', status: 'critical', says: 'no file system was found' }];
    return mounts.flatMap(({ mount, used_pct, free_bytes, inodes_used_pct, ...growth }) => [
      figure(mount, used_pct, `${used_pct} % full, ${bytesInWords(free_bytes)} free`),
      ...(inodes_used_pct === null ? [] : [figure(mount, inodes_used_pct, `${inodes_used_pct} % of its inodes used`)]),
      ...judgeGrowth(mount, growth, thresholds),
    ]);
  },

  well: ({ mounts, growth_problem }) => {
    const fullest = mounts.toSorted((a, b) => b.used_pct - a.used_pct)[0];
    const when = fullWhen(mounts, growth_problem);
    return `${counted(mounts.length, 'file system')}; the fullest is ${fullest?.mount} with ${fullest?.used_pct} %${when}.`;
  },

  trend: {
    name: 'the fullest',
    unit: 'percent',
    limits: limitsOf,
    figureOf: ({ mounts }) => (mounts.length === 0 ? null : Math.max(...mounts.map(({ used_pct }) => used_pct))),
  },
});
