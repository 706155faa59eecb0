import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { world } from '../health/fake-monitored.ts';
import { fakeDeps } from '../http/fake-deps.ts';
import { visit, type Visitor } from '../pages/page-session.ts';
import { databaseMount, OWNER_URL } from './fake-vacuum-world.ts';
import { fakeTable } from './fake-vacuum.ts';

const HERE = '/database/vacuum';
const HOSTILE = '"><img src=x onerror=alert(1)>';

async function visitor(values: Record<string, string> = OWNER_URL, username = 'webadmin'): Promise<Visitor> {
  const around = world();
  around.mounts = [databaseMount(50e9)];
  const deps = fakeDeps(values, around);
  deps.vacuum.tables = [fakeTable('cot_router', 8e9), fakeTable('resource', 1e9), fakeTable('cot_router_chat', 1e8)];
  return visit({ username, deps, around });
}
const jobsOf = async ({ deps }: Visitor): Promise<number> => (await deps.opsJobs.list({}, 0, 9)).count;
const orderOf = async ({ deps }: Visitor): Promise<unknown> => (await deps.opsJobs.list({}, 0, 1)).results[0]?.input;

describe('the page of a vacuum', () => {
  it('says what a full vacuum of everything would give back, how long clients wait and what room there is', async () => {
    const html = await (await visitor()).page(HERE);
    expect(html).toContain('2.3 GB');
    expect(html).toContain('about 1 minute in total');
    expect(html).toContain('The duration assumes a cautious 70 MB per second');
    expect(html).not.toContain('Not worth the wait');
    expect(html).toContain('11 GB on /data');
    expect(html).toContain('50 GB');
  });

  it('has a line for each table: its size, what full gives back, its dead rows, how long it is locked', async () => {
    const html = await (await visitor()).page(HERE);
    expect(html).toMatch(/<code class="whole">cot_router<\/code>.*?8 GB.*?2 GB.*?10<.*?1 minute/s);
    expect(html).toContain('value="public.cot_router"');
  });

  it('folds what is not among the ten largest, and leaves alone what belongs to somebody else', async () => {
    const it = await visitor();
    it.deps.vacuum.tables.push(fakeTable('spatial_ref_sys', 9e9, { allowed: false, reclaimable_bytes: null }));
    for (let at = 0; at < 10; at++) it.deps.vacuum.tables.push(fakeTable(`small_${at}`, 1000));
    const html = await it.page(HERE);
    expect(html).toContain('4 smaller tables, 4 kB in total');
    expect(html).toMatch(/value="public\.spatial_ref_sys" disabled/);
    expect(html).toContain('not allowed');
  });

  it('shows a viewer the figures and no way to begin', async () => {
    const it = await visitor(OWNER_URL, 'vera');
    for (const path of [HERE, `${HERE}?mode=full`]) {
      const html = await it.page(path);
      expect(html).toContain('2.3 GB');
      expect(html).not.toContain('name="mode"');
    }
  });

  it('says what is missing where nobody may vacuum', async () => {
    const html = await (await visitor({})).page(HERE);
    expect(html).toContain('<code>CORE_DATABASE_OWNER_URL</code> is not set');
    expect(html).not.toContain('name="mode"');
  });

  it('leads to the job that runs already', async () => {
    const it = await visitor();
    const place = (await it.post(HERE, { mode: 'standard' })).headers.get('location') ?? '';
    const html = await it.page(HERE);
    expect(html).toContain(`<a href="${place}">See progress</a>`);
    expect(html).not.toContain('name="mode"');
  });

  it('stays, and says why it knows nothing, while the database does not answer', async () => {
    const it = await visitor();
    it.deps.vacuumFacts.tables = () => Promise.reject(new AppError('unavailable', 'The database does not answer.'));
    const html = await it.page(HERE);
    expect(html).toContain('Couldn’t estimate a vacuum: The database does not answer.');
    expect(html).toContain('Full vacuum');
    await it.page(`${HERE}?mode=full`, 503);
  });

  it('says that it is not worth the wait for little', async () => {
    const it = await visitor();
    it.deps.vacuum.tables = [fakeTable('cot_router', 8e9, { reclaimable_bytes: 7e8 })];
    expect(await it.page(HERE)).toContain('Not worth the wait now');
  });

  it('says so when there is no table', async () => {
    const it = await visitor();
    it.deps.vacuum.tables = [];
    expect(await it.page(HERE)).toContain('No tables yet');
  });

  it('shows names as they are', async () => {
    const it = await visitor();
    it.deps.vacuum.tables = [fakeTable(HOSTILE, 8e9)];
    for (const path of [HERE, `${HERE}?mode=full`, `${HERE}?mode=full&tables=${encodeURIComponent(HOSTILE)}`])
      expect(await it.page(path)).not.toContain('<img');
  });
});

describe('the order of a vacuum', () => {
  it('speaks of just the tables that were ticked', async () => {
    const html = await (await visitor()).page(`${HERE}?mode=full&tables=public.resource&tables=cot_router_chat`);
    expect(html).toContain('<h1>Full vacuum</h1>');
    expect(html).toContain('2 tables');
    expect(html).toContain('about 275 MB');
    expect(html).toContain(
      'about 13 seconds in total, 11 seconds for resource alone. The light core keeps devices connected',
    );
    expect(html).toContain('<input type="hidden" name="tables" value="public.resource"/>');
  });

  it('is all tables with none ticked, and without a word to type when it is standard', async () => {
    const html = await (await visitor()).page(`${HERE}?mode=standard`);
    expect(html).toContain('All 3 tables');
    expect(html).toContain('<dt>Client impact</dt><dd>none</dd>');
    expect(html).not.toContain('name="confirm"');
  });

  it('names a table that there is not', async () => {
    const html = await (await visitor()).page(`${HERE}?mode=full&tables=cot_ruter`, 422);
    expect(html).toContain('did you mean cot_router?');
    expect(html).toContain('Change selection');
  });

  it('has no way on without room, but says what is missing and what would help', async () => {
    const it = await visitor();
    it.around.mounts = [databaseMount(8e9)];
    const html = await it.page(`${HERE}?mode=full`);
    expect(html).toMatch(/cot_router needs 11 GB on \/data .* 8 GB are free: 3\.2 GB missing\. Remedy:/);
    expect(html).not.toContain('<form method="post" action="/database/vacuum"');
    expect(html).toContain('href="/database/vacuum?mode=standard"');
  });

  it('begins a standard one at once and leads to its job', async () => {
    const it = await visitor();
    const answer = await it.post(HERE, { mode: 'standard', tables: ['public.resource', 'public.cot_router'] });
    expect(answer.status).toBe(303);
    expect(answer.headers.get('location')).toMatch(/^\/jobs\/[\da-f-]{36}$/);
    expect(await orderOf(it)).toMatchObject({
      mode: 'standard',
      tables: [{ table: 'resource' }, { table: 'cot_router' }],
    });
    expect(it.deps.audit.records.at(-1)).toMatchObject({ action: 'database.vacuum', actor: 'webadmin' });
  });

  it('begins a full one only with its word', async () => {
    const it = await visitor();
    for (const confirm of ['', 'FULL', 'standard']) {
      const answer = await it.post(HERE, { mode: 'full', tables: 'public.resource', confirm });
      expect(answer.status).toBe(422);
      const html = await answer.text();
      expect(html).toContain('Nothing was started. Type full to confirm.');
      expect(html).toContain('value="public.resource"');
    }
    expect(await jobsOf(it)).toBe(0);
    expect((await it.post(HERE, { mode: 'full', confirm: 'full' })).status).toBe(303);
    expect(await orderOf(it)).toMatchObject({ mode: 'full' });
  });

  it('is refused with the figures when the room has gone meanwhile', async () => {
    const it = await visitor();
    it.around.mounts = [databaseMount(8e9)];
    const answer = await it.post(HERE, { mode: 'full', confirm: 'full' });
    const html = await answer.text();
    expect(answer.status).toBe(409);
    expect(html).toContain('Nothing was started. cot_router needs 11 GB');
    expect(html).toMatch(/<dt>Free<\/dt><dd>8 GB<\/dd>.*<dt>Needed<\/dt><dd>11 GB<\/dd>/);
    expect(await jobsOf(it)).toBe(0);
  });

  it('is refused while one runs, with the way to it', async () => {
    const it = await visitor();
    const place = (await it.post(HERE, { mode: 'standard' })).headers.get('location') ?? '';
    const answer = await it.post(HERE, { mode: 'standard' });
    expect(answer.status).toBe(409);
    expect(await answer.text()).toContain(`href="${place}"`);
  });

  it('begins nothing without a kind', async () => {
    const it = await visitor();
    expect((await it.post(HERE, { confirm: 'full' })).headers.get('location')).toBe(HERE);
    expect(await jobsOf(it)).toBe(0);
  });
});
