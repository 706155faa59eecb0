import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { measure } from '../health/fake-measure.ts';
import type { World } from '../health/fake-monitored.ts';
import { proofOf } from './fake-backups.ts';

const at = (day: number): string => `2026-03-${String(day).padStart(2, '0')}T02:30:00.000Z`;
const judged = async (change: (of: World) => void): Promise<[string, string]> => {
  const { status, message } = await measure('backup', change);
  return [status, message];
};
const last = (of: World) => {
  const [backup] = of.backups.the.backups;
  if (backup === undefined) throw new Error('this world has a backup');
  return backup;
};

describe('the module backup', () => {
  it('is ok with a backup of last night that serves', async () => {
    expect(await measure('backup')).toMatchObject({
      status: 'ok',
      message: 'The last backup is 2.6 h old, 68 MB, and proven to the level "Serves". 1 kept.',
      data: { wanted: true, backups_count: 1, last_bytes: 68e6, proven_age_seconds: 9367, allowed_seconds: 86_400 },
      figure: 68e6,
    });
  });

  it('is a note with a remedy while no target is set, and does not ask the service', async () => {
    const measured = await measure('backup', (of) => {
      of.wanted.backups = undefined;
      of.backups.error = new AppError('unavailable', 'unset');
    });
    expect([measured.status, measured.message]).toEqual(['note', 'No backups are made: BACKUP_TARGET is not set.']);
    expect(measured.remedies[0]).toContain('BACKUP_PASSPHRASE');
  });

  it('is never ok while nothing was ever proven', async () => {
    expect(await judged((of) => (of.backups.the.backups = []))).toEqual(['warning', 'there is no backup yet.']);
    expect((await judged((of) => (last(of).proof = null)))[0]).toBe('warning');
    expect(await judged((of) => (last(of).proof = proofOf(at(4), 'decrypts')))).toEqual([
      'warning',
      'no backup was ever proven, so it is unknown if one can be restored (and 1 more).',
    ]);
    const off = await measure('backup', (of) => {
      of.backups.the.proof = 'off';
      last(of).proof = null;
    });
    expect([off.status, off.message]).toEqual(['note', expect.stringContaining('BACKUP_PROOF=off')]);
  });

  it('judges a stack that can not go further by its own limit, and says why', async () => {
    const limit = { level: 'complete', reason: 'BACKUP_RECIPIENT: the server has no key.' } as const;
    expect(await judged((of) => (last(of).proof = proofOf(at(4), 'complete', { error: null, limit })))).toEqual([
      'ok',
      'The last backup is 2.6 h old, 68 MB, and proven to the level "Complete". 1 kept. It goes no further here: BACKUP_RECIPIENT: the server has no key.',
    ]);
    const below = proofOf(at(4), 'exists', { limit });
    expect((await judged((of) => (last(of).proof = below)))[0]).toBe('warning');
  });

  it('counts from when the schedule wanted the next one: a warning after 6 hours, critical after two days', async () => {
    const days = async (now: string) => judged((of) => (of.now = new Date(now)));
    expect((await days('2026-03-05T08:29:00.000Z'))[0]).toBe('ok');
    expect(await days('2026-03-05T08:31:00.000Z')).toEqual([
      'warning',
      'last proven backup: 30 h old, 6 h late; warning from 6 h late.',
    ]);
    expect((await days('2026-03-07T02:31:00.000Z'))[0]).toBe('critical');
    const weekly = await judged((of) => {
      of.backups.the.proof = 'weekly';
      of.now = new Date('2026-03-09T05:00:00.000Z');
      of.backups.add({ created_at: at(9) });
    });
    expect(weekly[0]).toBe('ok');
    const sparse = await judged((of) => {
      of.wanted.backups = { cron: '0 30 2 ? * SUN' };
      of.now = new Date('2026-03-10T05:00:00.000Z');
    });
    expect(sparse[0]).toBe('ok');
  });

  it('finds the newest proven one behind failed ones, and tells of those', async () => {
    expect(
      await judged((of) => {
        of.now = new Date('2026-03-05T03:00:00.000Z');
        of.backups.add({ created_at: at(5), proof: proofOf(at(5), 'decrypts', { error: 'cot_router: 9 rows of 10' }) });
      }),
    ).toEqual(['warning', 'the proof of the last backup failed: cot_router: 9 rows of 10.']);
    const error = 'No space left on /mnt/backups. Remedy: free some space there.';
    const failure = { kind: 'backup', at: at(4), name: null, error } as const;
    const measured = await measure('backup', (of) => (of.backups.the.last_failure = failure));
    expect([measured.message, measured.remedies]).toEqual([
      'the last backup failed: No space left on /mnt/backups.',
      ['Free some space there.'],
    ]);
  });

  it('warns when the target has room for few more, and is critical when it can not be used', async () => {
    const free = async (bytes: number | null) =>
      judged(
        (of) => (of.backups.the.target = { kind: 'directory', place: '/mnt/backups', free_bytes: bytes, error: null }),
      );
    expect((await free(null))[0]).toBe('ok');
    expect((await free(68e6 * 4))[0]).toBe('ok');
    expect(await free(68e6 * 2)).toEqual([
      'warning',
      'room in /mnt/backups: 136 MB free, for 2 more backups of the last size; warning at 3.',
    ]);
    expect((await free(60e6))[0]).toBe('critical');
    const target = { kind: 's3', place: 's3://bucket/x', free_bytes: null, error: 'AccessDenied.' } as const;
    expect(await judged((of) => (of.backups.the.target = { ...target }))).toEqual([
      'critical',
      "the target s3://bucket/x can't be used: AccessDenied.",
    ]);
  });

  it('warns of a backup that is suddenly small, but not when the history was left out', async () => {
    const small = (history: boolean) => (of: World) => {
      for (const day of [1, 2, 3]) of.backups.add({ created_at: at(day), proof: proofOf(at(day)) });
      Object.assign(last(of), { bytes: 20e6, history });
    };
    expect(await judged(small(true))).toEqual([
      'warning',
      'the last backup has only 20 MB, 71 % less than the ones before.',
    ]);
    expect((await judged(small(false)))[0]).toBe('ok');
  });

  it('is a warning while the service does not answer, a note just after the start', async () => {
    const gone = new AppError('unavailable', 'The backup service at backup:8090 refused the connection. Remedy: look.');
    expect(await judged((of) => (of.backups.error = gone))).toEqual([
      'warning',
      'The backup service at backup:8090 refused the connection.',
    ]);
    expect((await measure('backup', (of) => (of.backups.error = gone))).againSeconds).toBe(60);
    expect((await measure('backup')).againSeconds).toBeUndefined();
    const started = await judged((of) => {
      of.backups.error = gone;
      of.runsForMs = 1000;
    });
    expect(started[0]).toBe('note');
  });
});
