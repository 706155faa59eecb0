import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { OpsJobChange } from '../../shared/jobs/port.ts';
import { visit, type Visitor } from '../pages/page-session.ts';

const AT = '2026-03-04T05:06:07.000Z';
const HOSTILE = '<script>alert(1)</script>';
let visitor: Visitor;
beforeEach(async () => {
  visitor = await visit();
});

const TABLE = { schema: 'public', table: 'cot_router', bytes: 8e9, dead_tuples: 10, lock_seconds: 86 };
const VACUUM = { mode: 'full', intent: 1, tables: [TABLE] };

async function add(kind: string, input: unknown = VACUUM, change?: OpsJobChange): Promise<string> {
  const id = randomUUID();
  await visitor.deps.opsJobs.add({ id, kind, actor: 'ada', input, now: AT });
  if (change !== undefined) await visitor.deps.opsJobs.change(id, change);
  return id;
}
const vacuumResult = (state: string, after: number | null, error: string | null = null) => ({
  mode: 'full',
  tables: [
    {
      schema: 'public',
      table: 'cot_router',
      state,
      bytes_before: 8e9,
      bytes_after: after,
      seconds: 80,
      dead_tuples_before: 10,
      error,
    },
  ],
  bytes_before: 8e9,
  bytes_after: after ?? 8e9,
  bytes_given_back: 8e9 - (after ?? 8e9),
  seconds: 81,
});
const page = (id: string): Promise<string> => visitor.page(`/jobs/${id}`);

describe('the page of a job', () => {
  it('says what it is, that it waits, and who asked for it when', async () => {
    const html = await page(await add('vacuum'));
    expect(html).toContain('<h1>Full vacuum of cot_router</h1>');
    expect(html).toContain('Queued</span> Starts within a few seconds.');
    expect(html).toMatch(/<dt>Requested by<\/dt><dd>ada<\/dd>/);
    expect(html).toContain('2026-03-04 05:06');
  });

  it('follows it while it goes on: how far, at what, until when, what it said', async () => {
    const id = await add('vacuum', VACUUM, {
      state: 'running',
      startedAt: AT,
      progress: 0.425,
      phase: 'cot_router: writing heap',
      phasePercent: 41.6,
      eta: '2026-03-04T05:20:00.000Z',
      log: [`${AT} cot_router: VACUUM FULL started, 8 GB.`],
    });
    const html = await page(id);
    expect(html).toContain('data-live="self"');
    expect(html).toContain('<progress max="1" value="0.425"');
    expect(html).toContain('<strong>42 %</strong> - cot_router: writing heap, 42 % of this step');
    expect(html).toContain('2026-03-04 05:20');
    expect(html).toContain('05:06:07</time> <span>cot_router: VACUUM FULL started, 8 GB.');
    expect(html).toContain('<noscript>Reload');
  });

  it('is a new page as soon as it is further, and not before', async () => {
    const id = await add('vacuum', VACUUM, { state: 'running', startedAt: AT, progress: 0.1 });
    const tag = (await visitor.get(`/jobs/${id}`)).headers.get('etag') ?? '';
    expect((await visitor.get(`/jobs/${id}`, { 'if-none-match': tag })).status).toBe(304);
    await visitor.deps.opsJobs.change(id, { progress: 0.2 });
    expect((await visitor.get(`/jobs/${id}`, { 'if-none-match': tag })).status).toBe(200);
  });

  it('is asked for no more once it has ended, and says what came of it', async () => {
    const id = await add('vacuum', VACUUM, {
      state: 'succeeded',
      startedAt: AT,
      finishedAt: '2026-03-04T05:08:07.000Z',
      progress: 1,
      result: vacuumResult('done', 6e9),
    });
    const html = await page(id);
    expect(html).not.toContain('data-live');
    expect(html).toContain('id="job"');
    expect(html).toContain('1 table vacuumed. 2 GB returned to the disk.');
    expect(html).toMatch(/<code class="whole">cot_router<\/code>.*Done.*8 GB.*6 GB.*1 minute/s);
    expect(html).toContain('<dd>2 minutes</dd>');
  });

  it('says why it failed and what to do', async () => {
    const id = await add('vacuum', VACUUM, {
      state: 'failed',
      finishedAt: AT,
      error: 'Not vacuumed: 1 of 1 table. cot_router: the disk is full.',
      result: vacuumResult('failed', null, 'the disk is full.'),
    });
    const html = await page(id);
    expect(html).toContain('card critical');
    expect(html).toContain('cot_router: the disk is full.');
    expect(html).toContain('A vacuum that ends early loses no rows.');
    expect(html).toContain('href="/database/vacuum?mode=full&amp;tables=public.cot_router"');
  });

  it('tells of a run of retention how many rows of each type it has deleted', async () => {
    const result = { rows: { cot: 1_234_567, geochat: 0 }, included: { cot: 12, files: 1 }, bytes: 5e9, seconds: 61 };
    const id = await add('retention', null, { state: 'interrupted', finishedAt: AT, result, error: 'Cut off.' });
    const html = await page(id);
    expect(html).toContain('<h1>Retention run</h1>');
    expect(html).toContain('1,234,580 rows deleted. About 5 GB free for new rows.');
    expect(html).toMatch(/<dt>CoT events<\/dt><dd>1,234,567<\/dd>/);
    expect(html).toMatch(/<dt>Deleted with missions<\/dt><dd>12 CoT events and 1 file<\/dd>/);
    expect(html).toContain('Deleted rows stay deleted');
  });

  it('shows a job of another kind, and one that has left something else', async () => {
    const html = await page(await add('rebuild', 'x', { state: 'succeeded', result: { any: HOSTILE } }));
    expect(html).toContain('<h1>rebuild</h1>');
    expect(await page(await add('vacuum', 7, { state: 'failed', result: 'odd', error: HOSTILE }))).not.toContain(
      HOSTILE,
    );
  });

  it('is 404 for a job that is not there', async () => {
    for (const id of [randomUUID(), 'x', '%00']) expect((await visitor.get(`/jobs/${id}`)).status).toBe(404);
  });
});

describe('the list of jobs', () => {
  it('shows each with its state and what came of it, and is live while one goes on', async () => {
    const done = await add('vacuum', VACUUM, { state: 'succeeded', result: vacuumResult('done', 6e9) });
    expect(await visitor.page('/jobs')).not.toContain('data-live');
    const open = await add('retention', null);
    const html = await visitor.page('/jobs');
    expect(html).toContain('data-live="self"');
    expect(html).toContain(`<a href="/jobs/${done}">Full vacuum of cot_router</a>`);
    expect(html).toContain('2 GB returned');
    expect(html).toContain(`<a href="/jobs/${open}">Retention run</a>`);
  });

  it('can be had by kind and state, and ignores what there is not', async () => {
    const failed = await add('vacuum', VACUUM, { state: 'failed', error: 'No.' });
    const other = await add('retention', null);
    const html = await visitor.page('/jobs?kind=vacuum&state=failed');
    expect([html.includes(failed), html.includes(other)]).toEqual([true, false]);
    expect(html).toContain('Filter: Vacuum, Failed');
    expect(await visitor.page('/jobs?kind=retention&state=failed')).toContain('No jobs match these filters');
    expect(await visitor.page(`/jobs?kind=${encodeURIComponent(HOSTILE)}&state=odd&page=-1`)).toContain(other);
  });

  it('has pages of fifty', async () => {
    for (let at = 0; at < 51; at++) await add('vacuum', VACUUM, { state: 'succeeded' });
    expect(await visitor.page('/jobs')).toContain('1 to 50 of 51');
    expect(await visitor.page('/jobs?page=2')).toContain('51 to 51 of 51');
  });

  it('says where long work begins when there was none', async () => {
    expect(await visitor.page('/jobs')).toContain('<a href="/database/vacuum">Vacuum</a>');
  });
});
