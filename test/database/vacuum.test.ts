import { describe, expect, it } from 'vitest';
import {
  deadRowsLeft,
  failureKind,
  inOrder,
  isVacuumed,
  lockSeconds,
  longHolder,
  mostDemanding,
  nameOf,
  noticeBefore,
  pauseSeconds,
  rateOf,
  roomFor,
  roomNeeded,
} from '../../shared/database/vacuum/rules.ts';

const GIB = 1024 ** 3;
const table = (bytes: number, name = 'cot_router') => ({ schema: 'public', table: name, bytes, elsewhere: false });
const mount = (free_bytes: number, paths = ['/pg', '/pg/pg_wal'], at = '/data') => ({ mount: at, paths, free_bytes });
const place = (...mounts: ReturnType<typeof mount>[]) => ({ directory: '/pg', mounts, maxWalBytes: GIB });

describe('the room that a vacuum needs', () => {
  it('is for FULL a copy of the table, WAL of at most twice max_wal_size, and 1 GiB', () => {
    expect(roomNeeded('full', 8e9, GIB)).toEqual({ copy: 8e9, wal: 3 * GIB });
    expect(roomNeeded('full', 1e6, GIB)).toEqual({ copy: 1e6, wal: 1e6 + GIB });
  });

  it('is for standard the same without the copy', () => {
    expect(roomNeeded('standard', 8e9, GIB)).toEqual({ copy: 0, wal: 3 * GIB });
  });

  it('is enough to the byte, and named with its figures when it is not', () => {
    const needed = 8e9 + 3 * GIB;
    expect(roomFor('full', table(8e9), place(mount(needed))).isEnough).toBe(true);
    const { isEnough, figures } = roomFor('full', table(8e9), place(mount(needed - 1)));
    expect(isEnough).toBe(false);
    expect(figures).toEqual({
      free_bytes: needed - 1,
      needed_bytes: needed,
      table: 'cot_router',
      table_bytes: 8e9,
      max_wal_bytes: GIB,
      mount: '/data',
      reason:
        'cot_router needs 11 GB on /data for its copy, WAL and 1 GiB to spare, but 11 GB are free: 1 bytes missing. Remedy: free space there, or select smaller tables, or use standard mode.',
    });
  });

  it('names as a remedy only what would be enough', () => {
    const remedyOf = (mode: 'full' | 'standard', free: number): string | undefined =>
      /Remedy: (.*)$/.exec(roomFor(mode, table(1e6), place(mount(free))).figures.reason)?.[1];
    expect(remedyOf('full', GIB - 1)).toBe('free space there.');
    expect(remedyOf('standard', GIB - 1)).toBe('free space there.');
    expect(remedyOf('standard', GIB + 1)).toBe('free space there, or select smaller tables.');
    expect(remedyOf('full', GIB + 1)).toBe('free space there, or select smaller tables.');
    expect(remedyOf('full', GIB + 1e6)).toMatch(/, or use standard mode\.$/);
  });

  it('is looked for on both disks when WAL has one of its own', () => {
    const data = (free: number) => mount(free, ['/pg']);
    const wal = (free: number) => mount(free, ['/pg/pg_wal'], '/wal');
    expect(roomFor('full', table(8e9), place(data(8e9), wal(3 * GIB))).isEnough).toBe(true);
    const full = roomFor('full', table(8e9), place(data(8e9 - 1), wal(99e9)));
    expect([full.isEnough, full.figures.mount, full.figures.needed_bytes]).toEqual([false, '/data', 8e9]);
    const noWal = roomFor('full', table(8e9), place(data(99e9), wal(3 * GIB - 1)));
    expect([noWal.isEnough, noWal.figures.mount, noWal.figures.needed_bytes]).toEqual([false, '/wal', 3 * GIB]);
    const small = roomFor('full', table(8e9), place(data(7e9), wal(4e9)));
    expect([small.isEnough, small.figures.mount, small.figures.free_bytes]).toEqual([false, '/data', 7e9]);
    expect(roomFor('standard', table(8e9), place(data(0), wal(3 * GIB))).isEnough).toBe(true);
  });

  it.each([
    ['CORE_DATABASE_DIR is not set', { directory: undefined, mounts: [mount(99e9)] }],
    ["couldn't read the disks: it hangs", { directory: '/pg', mounts: 'it hangs' }],
    ['no known file system contains /pg', { directory: '/pg', mounts: [mount(99e9, ['/'])] }],
  ])('is not known when %s, and the remedy is named', (words, where) => {
    for (const mode of ['full', 'standard'] as const) {
      const { isEnough, figures } = roomFor(mode, table(8e9), { ...where, maxWalBytes: GIB });
      expect([isEnough, figures.free_bytes, figures.mount]).toEqual([null, null, null]);
      expect(figures.reason).toContain(words);
      expect(figures.reason).toContain('Remedy: ');
    }
  });

  it('is not known of a table in a tablespace of its own, except where nothing is copied', () => {
    const elsewhere = { ...table(8e9), elsewhere: true };
    expect(roomFor('full', elsewhere, place(mount(99e9)))).toMatchObject({
      isEnough: null,
      figures: { reason: expect.stringContaining('tablespace') },
    });
    expect(roomFor('standard', elsewhere, place(mount(99e9))).isEnough).toBe(true);
  });

  it('is that of the largest of several tables, or of the one whose room is not known', () => {
    const small = { ...table(1, 'small'), elsewhere: true };
    expect(mostDemanding('full', [table(5), table(9)])?.bytes).toBe(9);
    expect(mostDemanding('full', [table(5), small, table(9)])).toBe(small);
    expect(mostDemanding('standard', [table(5), small, table(9)])?.bytes).toBe(9);
    expect(mostDemanding('full', [])).toBeUndefined();
  });
});

describe('the time that FULL locks clients out', () => {
  it('is what stays of the table by what was written each second, in whole seconds', () => {
    const rate = { bytesPerSecond: 10e6, from: 'runs' } as const;
    expect(lockSeconds('full', { bytes: 105e6, reclaimable_bytes: 50e6 }, rate)).toBe(6);
    expect(lockSeconds('full', { bytes: 105e6, reclaimable_bytes: null }, rate)).toBe(11);
    expect(lockSeconds('standard', { bytes: 105e6, reclaimable_bytes: null }, rate)).toBe(0);
  });

  it('goes by earlier runs, of which only tables that took a while tell anything', () => {
    expect(
      rateOf([
        { bytes_after: 4e9, seconds: 40 },
        { bytes_after: 1e9, seconds: 10 },
      ]),
    ).toEqual({
      bytesPerSecond: 1e8,
      from: 'runs',
    });
    const quick = [{ bytes_after: 8192, seconds: 2 }];
    expect(rateOf(quick).from).toBe('default');
    expect(rateOf([...quick, { bytes_after: 4e9, seconds: 40 }]).bytesPerSecond).toBe(1e8);
  });
});

describe('waiting for a lock', () => {
  it('pauses longer and longer, up to half a minute', () => {
    expect([1, 2, 3, 4, 5, 6, 999].map(pauseSeconds)).toEqual([2, 4, 8, 16, 30, 30, 30]);
  });

  it('does not ask while somebody has held the table for more than five seconds', () => {
    const now = new Date('2026-03-01T12:00:00Z');
    const since = (text: string | null) => ({ since: text });
    expect(longHolder([since('2026-03-01T11:59:55Z'), since(null)], now)).toBeUndefined();
    expect(longHolder([since(null), since('2026-03-01T11:59:54.999Z')], now)?.since).toBe('2026-03-01T11:59:54.999Z');
  });
});

describe('whether a table was vacuumed', () => {
  const marks = { oid: 1, filenode: 7, vacuums: 3 };

  it('is told by its file for FULL, and by the count of vacuums for standard', () => {
    expect(isVacuumed('full', marks, { ...marks, filenode: 8 })).toBe(true);
    expect(isVacuumed('full', marks, { ...marks, vacuums: 4 })).toBe(false);
    expect(isVacuumed('standard', marks, { ...marks, vacuums: 4 })).toBe(true);
    expect(isVacuumed('standard', marks, { ...marks, filenode: 8 })).toBe(false);
  });

  it('is not told by a count that fell, as it does when a database that died has lost its statistics', () => {
    expect(isVacuumed('standard', marks, { ...marks, vacuums: 0 })).toBe(false);
  });
});

describe('words and order', () => {
  it('takes the smallest table first', () => {
    expect(inOrder([table(3, 'c'), table(1, 'b'), table(1, 'a')]).map((each) => each.table)).toEqual(['a', 'b', 'c']);
  });

  it('names the schema where it is not the usual one', () => {
    expect([nameOf(table(1)), nameOf({ schema: 'topology', table: 'layer' })]).toEqual([
      'cot_router',
      'topology.layer',
    ]);
  });

  it('knows errors of the disk and of the connection, and who was stopped, from those of a table', () => {
    expect(['55P03', '53100', '57P01', '08006', '57014', '42501'].map(failureKind)).toEqual([
      'lock',
      'disk',
      'connection',
      'connection',
      'stopped',
      'table',
    ]);
  });

  it('speaks of dead rows that are left when they are many', () => {
    expect([deadRowsLeft(5000, 999), deadRowsLeft(50_000, 1000), deadRowsLeft(5000, 4000)]).toEqual([0, 0, 4000]);
  });

  it('tells clients about how long it takes', () => {
    expect([30, 61, 120, 4000].map(noticeBefore)).toEqual(
      ['less than a minute', 'about 2 minutes', 'about 2 minutes', 'about 1 hour 7 minutes'].map(
        (time) =>
          `Holdfast: maintenance starts now, for ${time}. You stay connected and see each other. The server stores what you send later and shows no history.`,
      ),
    );
  });
});
