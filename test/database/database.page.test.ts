// /database: how large it is, until when there is room, what fills it, and what to do next; whatever is away.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { DAY_MS } from '@holdfast/kit/time';
import { measureIn } from '../health/fake-measure.ts';
import { table } from '../health/fake-monitored.ts';
import { fakeDeps } from '../http/fake-deps.ts';
import { textOf as text, visit, type Visitor } from '../pages/page-session.ts';
import { GB, growingWorld } from './fake-growing-world.ts';

let visitor: Visitor;

/** Forty days in which it grew by 0.25 GB a day to 26 GB, with a sample each hour. */
beforeEach(async () => {
  const world = growingWorld();
  world.databaseBytes = 26 * GB;
  for (let hour = 40 * 24; hour >= 0; hour--) world.past(hour / 24, (26 - (0.25 * hour) / 24) * GB);
  const around = world.of;
  around.size = { ...around.size, total_bytes: 26 * GB, live_bytes: 19 * GB };
  around.tables = [table('cot_router', 2_400_000, 31_000_000), table('<img src=x>', 300, 900)];
  visitor = await visit({ deps: fakeDeps({ CORE_RETENTION_UNIT: 'days' }, around), around });
});
const measured = async (...names: string[]): Promise<void> => {
  for (const name of names) await visitor.deps.health.put(await measureIn(name, visitor.around));
};

describe('GET /database', () => {
  it('says before the first measurement that one comes', async () => {
    expect(text(await visitor.page('/database'))).toContain('Not measured yet. The first measurement');
  });

  it('says at the top why it is a warning, with the two levers', async () => {
    await measured('database');
    const html = await visitor.page('/database');
    expect(text(html)).toContain('Next steps Warning 26 GB');
    expect(text(html)).toContain('26 GB has reached the warning threshold of 25 GB (critical: 40 GB).');
    expect(html).toContain('href="/database/retention"');
    expect(html).toContain('href="/database/vacuum"');
  });

  it('suggests days that hold it below its warning, as a preview', async () => {
    const { around } = visitor;
    const day = (ago: number): string => new Date(around.now.getTime() - ago * DAY_MS).toISOString().slice(0, 10);
    for (const ago of [3, 2, 1, 0])
      around.growth.days.push({
        schema: 'public',
        table: 'cot_router',
        bytes: 20 * GB,
        rows: 80_000_000,
        day: day(ago),
      });
    const days = Array.from({ length: 30 }, (_, n) => ({ day: day(n + 1), rows: 1_000_000 }));
    await around.retentionHistory.keepDays('cot', day(31), day(0), days);
    await measured('database');
    const html = await visitor.page('/database');
    const [, wanted = '0', holds = '0'] =
      /events for (\d+) days would hold the size at about (\d+) GB/.exec(text(html)) ?? [];
    expect(Number(wanted)).toBeGreaterThan(30);
    expect(Number(holds)).toBeLessThan(25);
    expect(html).toContain(`href="/database/retention/preview?cot=${wanted}"`);
    expect(text(html)).toContain('Only a full vacuum frees the space already used beyond that.');
  });

  it('draws the size with forecast and thresholds, says it in words, and has the same as a table', async () => {
    const html = await visitor.page('/database');
    expect(html.match(/<path class="ahead"/g)).toHaveLength(2);
    expect(html).toContain('class="limit warning"');
    expect(html).toMatch(
      /aria-label="size over time: first \S+ GB, now 26 GB, at the end of the forecast \S+ GB, warning/,
    );
    expect(text(html)).toContain('Warning, 25 GB reached');
    expect(text(html)).toMatch(/Critical, 40 GB about 20\d\d-\d\d-\d\d \(earliest 20\d\d-\d\d-\d\d/);
    expect(text(html)).toContain('Growth 250 MB a day');
    expect(html).toContain('<summary>Show as table</summary>');
    expect(html).not.toMatch(/ style=|NaN|undefined|Infinity/);
  });

  it.each(['7', '30', '90', '400'])('shows %s days by a link', async (days) => {
    const html = await visitor.page(`/database?days=${days}`);
    expect(html).toContain(`href="/database?days=${days}#size" aria-current="true"`);
    expect(html).not.toMatch(/NaN|Infinity/);
  });

  it('shows thirty days for a range that there is not', async () => {
    expect(await visitor.page('/database?days=<script>')).toContain('days=30#size" aria-current="true"');
  });

  it('leaves a gap where nothing was measured', async () => {
    const { growth, now } = visitor.around;
    const age = (at: string): number => (now.getTime() - Date.parse(at)) / DAY_MS;
    growth.samples = growth.samples.filter(({ at }) => age(at) < 10 || age(at) > 15);
    const line = /<path class="line" d="([^"]+)"/.exec(await visitor.page('/database'))?.[1] ?? '';
    expect(line.match(/M/g)).toHaveLength(2);
  });

  it('names the largest talkers with callsigns, escaped', async () => {
    visitor.around.growth.fillers = (seconds) => ({
      seconds,
      sampled: 10,
      rows: 1000,
      bytes: GB,
      types: [{ name: 'a-f-G-U-C', share: 0.9, rows: 900, bytes: 0.9 * GB }],
      uids: [{ name: 'UID-1', share: 0.5, rows: 500, bytes: GB / 2, callsign: '<script>alert(1)</script>' }],
    });
    await measured('database');
    const html = await visitor.page('/database');
    expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(html).not.toContain('<script>alert');
    expect(text(html)).toContain('a-f-G-U-C 90 %');
    expect(text(html)).toContain('about 500 MB in 500 events');
  });

  it('lists tables with dead rows, escaped, and who holds vacuum back', async () => {
    visitor.around.holders = [
      { kind: 'transaction', name: '4711', user: 'ann', application: '<b>', since: null, seconds: 9000 },
    ];
    await measured('autovacuum');
    const html = await visitor.page('/database');
    expect(text(html)).toContain('2,400,000 of 33,400,000');
    expect(text(html)).toContain('SELECT pg_terminate_backend(4711);');
    expect(html).toContain('&lt;img src=x&gt;');
    expect(html).not.toContain('<img');
  });

  it('lists no table where none has dead rows that matter, and all of them by a link', async () => {
    visitor.around.tables = ['a', 'b', 'c'].map((name) => table(name, 1, 9));
    await measured('autovacuum');
    const html = await visitor.page('/database');
    expect(text(html)).toContain('No table has enough dead rows to matter.');
    expect(html).toContain('href="/database?tables=all#tables"');
    expect(await visitor.page('/database?tables=all')).toContain('public.c');
  });

  it('shows what a full vacuum gives back', async () => {
    visitor.deps.vacuumFacts = {
      ...visitor.deps.vacuumFacts,
      tables: async () => [
        {
          schema: 'public',
          table: 'cot_router',
          bytes: 19 * GB,
          reclaimable_bytes: 6.5 * GB,
          dead_tuples: 1,
          live_tuples: 1,
          allowed: true,
          elsewhere: false,
        },
      ],
    };
    await measured('database', 'autovacuum');
    expect(text(await visitor.page('/database'))).toContain('A full vacuum would free about 6.5 GB on the disk');
  });

  it("is there while the core's database is away, and says what is missing", async () => {
    const unavailable = new AppError('unavailable', "The core's database does not answer.");
    visitor.around.databaseError = unavailable.message;
    visitor.deps.vacuumFacts = { ...visitor.deps.vacuumFacts, tables: () => Promise.reject(unavailable) };
    await measured('database', 'autovacuum');
    const html = text(await visitor.page('/database'));
    expect(html).toContain("Couldn’t estimate what a vacuum frees: The core's database does not answer.");
    expect(html).toContain('Couldn’t load the tables');
    expect(html).toContain('Growth 250 MB a day');
  });

  it("is there while Holdfast's own database is away", async () => {
    await measured('database');
    const isUnavailable = (): Promise<never> => Promise.reject(new AppError('unavailable', 'No answer.'));
    visitor.deps.growthHistory = { ...visitor.deps.growthHistory, samples: isUnavailable, tables: isUnavailable };
    const html = text(await visitor.page('/database'));
    expect(html).toContain('Couldn’t load the size history: No answer.');
    expect(html).toContain('26 GB has reached the warning threshold of 25 GB');
  });

  it('is too new for a chart in the first minutes', async () => {
    visitor.around.growth.samples = [];
    expect(text(await visitor.page('/database'))).toContain('Not enough samples for a chart yet');
  });
});
