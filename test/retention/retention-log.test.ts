import { describe, expect, it } from 'vitest';
import { retentionRunsIn } from '../../shared/retention/keep-history.ts';

const line = (time: string, logger: string, text: string, level = 'INFO'): string =>
  `2026-01-31-${time} [scheduling-1] ${level} ${logger} - ${text}`;
const starts = (time: string): string => line(time, 't.s.r.s.ScheduledRetentionService', ' Reaper Service Running ');
const counts = (time: string, text: string): string => line(time, 't.s.r.service.LocalQueryService', text);
const fails = (time: string): string =>
  line(time, 't.s.r.s.ScheduledRetentionService', 'Error accessing retention query service org.x: boom', 'ERROR');

const FIRST = [
  line('03:59:59.000', 't.s.retention.RetentionApplication', ' Retention Application started  '),
  starts('04:00:00.012'),
  counts('04:00:01.000', '  delete files by time to live, Number of rows deleted  3'),
  counts('04:00:02.000', ' deleteCotByTtl, Number of rows deleted 1200345'),
  counts('04:00:03.000', ' deleteGeoChatByTtl, Number of rows deleted  40'),
  counts('04:00:04.000', ' delete legacy geochat from cot_router table, Number of rows deleted  2'),
  counts('04:00:04.100', 'missionTtl is null, nothing to do'),
];

describe('the log of a release', () => {
  it('tells when a run began and how many rows went, legacy chat with the chat', () => {
    expect(retentionRunsIn(FIRST, 'UTC')).toEqual([
      {
        id: 'log-2026-01-31T04:00:00.012Z',
        state: 'done',
        startedAt: '2026-01-31T04:00:00.012Z',
        finishedAt: null,
        rows: { files: 3, cot: 1_200_345, geochat: 42 },
        error: null,
      },
    ]);
  });

  it('says nothing of types of which it has no count', () => {
    expect(retentionRunsIn([starts('04:00:00.012')], 'UTC')).toMatchObject([{ state: 'done', rows: {} }]);
  });

  it('tells of a run that failed, with the first error and its time', () => {
    const trace = [
      'java.lang.RuntimeException: boom',
      '\tat tak.server.X.run(X.java:5)',
      'Caused by: org.y: 2026-01-31',
    ];
    const lines = [...FIRST, fails('04:00:05.500'), ...trace, fails('04:00:06.000'), starts('05:00:00.000')];
    expect(retentionRunsIn(lines, 'UTC')).toMatchObject([
      { id: 'log-2026-01-31T05:00:00.000Z', state: 'done', error: null },
      {
        id: 'log-2026-01-31T04:00:00.012Z',
        state: 'failed',
        finishedAt: '2026-01-31T04:00:05.500Z',
        error: 'Error accessing retention query service org.x: boom',
        rows: { cot: 1_200_345 },
      },
    ]);
  });

  it.each([
    'ScheduledRetentionService',
    'tak.server.retention.service.ScheduledRetentionService',
    't.s.r.s.ScheduledRetentionService',
  ])('knows the logger %s, however it is abbreviated', (logger) => {
    expect(retentionRunsIn([line('04:00:00.012', logger, ' Reaper Service Running ')], 'UTC')).toHaveLength(1);
  });

  it('does not take for a run what others say of it, nor counts before the first run', () => {
    const lines = [
      counts('03:00:00.000', ' deleteCotByTtl, Number of rows deleted 9'),
      fails('03:00:01.000'),
      line('03:00:02.000', 't.s.r.SingleTaskSchedulerService', ' Reaper Service is not scheduled '),
      line('03:00:03.000', 't.s.r.Other', ' Reaper Service Running '),
      ' Reaper Service Running ',
      line('03:00:04.000', 't.s.r.s.ScheduledRetentionService', 'not: Reaper Service Running '),
    ];
    expect(retentionRunsIn(lines, 'UTC')).toEqual([]);
  });

  it.each([
    ['America/New_York', '2026-01-31-04:00:00.012', '2026-01-31T09:00:00.012Z'],
    ['Europe/Berlin', '2026-07-31-04:00:00.012', '2026-07-31T02:00:00.012Z'],
    // The hour that comes twice is the first one; the one that never was lies after the change.
    ['Europe/Berlin', '2026-10-25-02:30:00.000', '2026-10-25T00:30:00.000Z'],
    ['Europe/Berlin', '2026-10-25-03:30:00.000', '2026-10-25T02:30:00.000Z'],
    ['Europe/Berlin', '2026-03-29-01:59:59.999', '2026-03-29T00:59:59.999Z'],
    ['Europe/Berlin', '2026-03-29-03:00:00.000', '2026-03-29T01:00:00.000Z'],
    ['Asia/Kathmandu', '2026-01-01-00:00:00.000', '2025-12-31T18:15:00.000Z'],
    ['Pacific/Kiritimati', '2026-01-01-00:00:00.000', '2025-12-31T10:00:00.000Z'],
  ])('reads times of %s: %s is %s', (zone, local, utc) => {
    const lines = [`${local} [t] INFO t.s.r.s.ScheduledRetentionService -  Reaper Service Running `];
    expect(retentionRunsIn(lines, zone)).toMatchObject([{ id: `log-${utc}`, startedAt: utc }]);
  });

  it.each(['2026-02-30-04:00:00.000', '2026-13-01-04:00:00.000', '2026-01-01-24:00:00.000', '0000-01-01-04:00:00.000'])(
    'leaves out what is no time: %s',
    (time) => {
      const lines = [`${time} [t] INFO a.ScheduledRetentionService -  Reaper Service Running `];
      expect(retentionRunsIn(lines, 'UTC')).toEqual([]);
    },
  );

  it('keeps the last thousand runs', () => {
    const all = Array.from({ length: 1500 }, (_, n) => {
      const at = new Date(Date.UTC(2026, 0, 1) + n * 1000).toISOString();
      return `${at.slice(0, 10)}-${at.slice(11, 23)} [t] INFO a.ScheduledRetentionService -  Reaper Service Running `;
    });
    const runs = retentionRunsIn(all, 'UTC');
    expect([runs.length, runs[0]?.startedAt]).toEqual([1000, '2026-01-01T00:24:59.000Z']);
  });

  it('never throws, and is quick, whatever the lines are', () => {
    const random = seeded(42);
    const pieces = [
      ...FIRST,
      fails('04:00:09.000'),
      '',
      '\0',
      '\uD800',
      '[',
      ']]]',
      ' - ',
      '   ',
      'é'.repeat(50),
      '9'.repeat(300),
    ];
    const mangled = (): string => {
      const text = pieces[Math.floor(random() * pieces.length)] ?? '';
      const other = pieces[Math.floor(random() * pieces.length)] ?? '';
      const at = Math.floor(random() * (text.length + 1));
      return random() < 0.3 ? text : text.slice(0, at) + other.slice(Math.floor(random() * (other.length + 1)));
    };
    const began = performance.now();
    for (let round = 0; round < 200; round++) {
      const runs = retentionRunsIn(Array.from({ length: 100 }, mangled), 'Europe/Berlin');
      for (const run of runs) {
        expect(run.id).toBe(`log-${new Date(run.startedAt).toISOString()}`);
        for (const rows of Object.values(run.rows)) expect(Number.isSafeInteger(rows)).toBe(true);
        expect((run.error ?? '').length).toBeLessThanOrEqual(500);
      }
    }
    const hostile = ['a.'.repeat(5000), ' '.repeat(9999), '[x] '.repeat(2500)].map(
      (text) => `2026-01-31-04:00:00.012 [t] INFO ${text}`,
    );
    retentionRunsIn(
      Array.from({ length: 3000 }, (_, n) => hostile[n % 3] ?? ''),
      'UTC',
    );
    expect(performance.now() - began).toBeLessThan(5000);
  });
});

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
