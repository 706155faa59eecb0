import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { startVacuum } from '../../shared/database/vacuum/start.ts';
import { VIEWER } from '../http/fake-deps.ts';
import { ACTOR } from '../people/fake-people.ts';
import { databaseMount, GIB, vacuumWorld, type VacuumWorld } from './fake-vacuum-world.ts';
import { fakeTable } from './fake-vacuum.ts';

let world: VacuumWorld;
beforeEach(async () => {
  world = await vacuumWorld();
});

type Body = Record<string, unknown>;
async function order(body?: unknown): Promise<[number, Body]> {
  const response = await world.order(body);
  return [response.status, (await response.json()) as Body];
}
async function preview(): Promise<Body & { tables: Body[] }> {
  const response = await world.ask('GET', '/api/ops/database/vacuum', undefined, VIEWER);
  expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
  return (await response.json()) as Body & { tables: Body[] };
}
const vacuumRecords = () => world.deps.audit.records.filter(({ action }) => action === 'database.vacuum');
const nothingWasOrdered = async (): Promise<void> => {
  expect((await world.deps.opsJobs.list({}, 0, 9)).count).toBe(0);
  expect(vacuumRecords()).toEqual([]);
};
const namesIn = async (id: string): Promise<string[]> =>
  ((await world.job(id)).input as { tables: { table: string }[] }).tables.map(({ table }) => table);

describe('POST /api/ops/database/vacuum', () => {
  it('answers 202 with the job and its place; the intent is written before anything is done', async () => {
    const response = await world.order({ mode: 'full', tables: ['resource'] });
    const job = (await response.json()) as Body;
    const place = `/api/ops/jobs/${String(job['id'])}`;
    const headers = [response.headers.get('location'), response.headers.get('cache-control')];
    expect([response.status, ...headers]).toEqual([202, place, 'no-store']);
    expect(job).toMatchObject({ kind: 'vacuum', state: 'queued', requested_by: 'webadmin', progress: 0 });
    expect(await (await world.ask('GET', place)).json()).toEqual(job);
    expect(vacuumRecords()).toMatchObject([
      {
        phase: 'intent',
        actor: 'webadmin',
        target: job['id'],
        detail: JSON.stringify({ mode: 'full', tables: ['resource'] }),
      },
    ]);
    expect(world.vacuum.begun).toEqual([]);
  });

  it('takes all tables that the owner may vacuum, the smallest first, when none is named', async () => {
    world.vacuum.tables.push(fakeTable('spatial_ref_sys', 5, { allowed: false }));
    expect(await namesIn(await world.ordered())).toEqual(['cot_router_chat', 'resource', 'cot_router']);
  });

  it('takes each table once, however it is called', async () => {
    const tables = ['cot_router', 'public.cot_router', 'resource', 'cot_router'];
    expect(await namesIn(await world.ordered({ mode: 'standard', tables }))).toEqual(['resource', 'cot_router']);
  });

  it('is 422 for a table that there is not, with the name that was meant', async () => {
    expect(await order({ mode: 'full', tables: ['resource', 'cot_ruter', 'public.cot_routr'] })).toMatchObject([
      422,
      {
        code: 'invalid',
        errors: [
          { path: 'tables.1', message: 'no table is named "cot_ruter"; did you mean cot_router?' },
          { path: 'tables.2', message: 'no table is named "public.cot_routr"; did you mean public.cot_router?' },
        ],
      },
    ]);
    await nothingWasOrdered();
  });

  it('is 422 for a name that several schemas have, naming them', async () => {
    world.vacuum.tables.push(fakeTable('resource', 5, { schema: 'archive' }));
    expect(await order({ mode: 'full', tables: ['resource'] })).toMatchObject([
      422,
      {
        errors: [
          {
            path: 'tables.0',
            message: '"resource" matches several tables; name one of them: public.resource or archive.resource',
          },
        ],
      },
    ]);
    expect((await order({ mode: 'full', tables: ['archive.resource'] }))[0]).toBe(202);
  });

  it('is 422 for a name that is two tables with their schemas', async () => {
    world.vacuum.tables.push(fakeTable('b.c', 5, { schema: 'a' }), fakeTable('c', 6, { schema: 'a.b' }));
    expect(await order({ mode: 'full', tables: ['a.b.c'] })).toMatchObject([
      422,
      {
        errors: [{ path: 'tables.0', message: '"a.b.c" matches several tables; name one of them: a.b.c or a.b.c' }],
      },
    ]);
  });

  it('is 422 for a table of somebody else', async () => {
    world.vacuum.tables.push(fakeTable('spatial_ref_sys', 5, { allowed: false }));
    expect(await order({ mode: 'full', tables: ['spatial_ref_sys'] })).toMatchObject([
      422,
      { errors: [{ path: 'tables.0', message: expect.stringContaining('has another owner') }] },
    ]);
  });

  it.each([
    [{}, 'mode'],
    [{ mode: 'half' }, 'mode'],
    [{ mode: 'full', tables: [] }, 'tables: must name a table; omit it for all tables'],
    [{ mode: 'full', tables: [''] }, 'tables.0: must name a table'],
    [{ mode: 'full', tables: 'cot_router' }, 'tables'],
    [{ mode: 'full', table: 'cot_router' }, 'unknown member "table"'],
  ])('is 422 for %j', async (body, words) => {
    expect(await order(body)).toMatchObject([422, { detail: expect.stringContaining(words) }]);
    await nothingWasOrdered();
  });

  it('is 409 while one is open, naming it, and that one goes on', async () => {
    const id = await world.ordered({ mode: 'standard' });
    for (const mode of ['full', 'standard'])
      expect(await order({ mode })).toMatchObject([
        409,
        {
          code: 'conflict',
          detail: expect.stringMatching(new RegExp(`${id}\\. It continues\\. Remedy: wait`)),
          figures: { job: id },
        },
      ]);
    expect(await world.throughout(id)).toMatchObject({ state: 'succeeded' });
    expect((await order())[0]).toBe(202);
  });

  it('is 409 when another order was quicker, and its intent is answered', async () => {
    const answers = await Promise.all([order({ mode: 'standard' }), order({ mode: 'standard' })]);
    expect(answers.map(([status]) => status).toSorted((a, b) => a - b)).toEqual([202, 409]);
    expect(answers).toContainEqual([409, expect.objectContaining({ figures: { job: expect.any(String) } })]);
    expect(vacuumRecords().map(({ phase, result }) => [phase, result])).toContainEqual(['outcome', 'failed']);
  });

  it('is 409 for FULL while a run of retention is open, and says when it gives more back', async () => {
    const now = world.around.now.toISOString();
    const id = crypto.randomUUID();
    await world.deps.opsJobs.add({ id, kind: 'retention', actor: 'ada', input: null, now });
    expect(await order({ mode: 'full' })).toMatchObject([
      409,
      {
        code: 'conflict',
        detail: expect.stringMatching(new RegExp(`${id}.*frees more then`)),
        figures: { job: id },
      },
    ]);
    expect((await order({ mode: 'standard' }))[0]).toBe(202);
  });

  it('is 409 with the figures when there is not enough room, and for less than that it is not', async () => {
    world.around.mounts = [databaseMount(8e9)];
    expect(await order({ mode: 'full' })).toMatchObject([
      409,
      {
        code: 'not_enough_disk',
        title: 'Not enough disk',
        detail: expect.stringMatching(
          /^Nothing was started\. cot_router needs 11 GB on \/data .*8 GB are free: 3\.2 GB missing\. Remedy: /,
        ),
        figures: {
          free_bytes: 8e9,
          needed_bytes: 8e9 + 3 * GIB,
          table: 'cot_router',
          table_bytes: 8e9,
          max_wal_bytes: GIB,
          mount: '/data',
        },
      },
    ]);
    await nothingWasOrdered();
    expect((await order({ mode: 'full', tables: ['resource'] }))[0]).toBe(202);
  });

  it('needs no room for a copy without FULL', async () => {
    world.around.mounts = [databaseMount(4e9)];
    expect((await order({ mode: 'standard' }))[0]).toBe(202);
  });

  it.each([
    ['CORE_DATABASE_DIR is not set', () => (world.around.wanted.databaseDirectory = undefined)],
    ['no known file system', () => (world.around.mounts = [])],
    ['it hangs', () => (world.deps.monitored.disks.use = () => Promise.reject(new Error('it hangs')))],
    ['tablespace', () => void (world.table('resource').elsewhere = true)],
  ])('is 409 when nobody knows the room: %s', async (words, change) => {
    change();
    expect(await order()).toMatchObject([
      409,
      {
        code: 'not_enough_disk',
        detail: expect.stringContaining(words),
        figures: { free_bytes: null, mount: null, reason: expect.stringContaining('Remedy: ') },
      },
    ]);
    await nothingWasOrdered();
  });

  it('is 409 when nobody may vacuum, and where there is nothing', async () => {
    world = await vacuumWorld({});
    expect(await order()).toMatchObject([
      409,
      { code: 'not_supported', detail: expect.stringContaining('CORE_DATABASE_OWNER_URL') },
    ]);
    world = await vacuumWorld();
    world.vacuum.tables = [fakeTable('spatial_ref_sys', 5, { allowed: false })];
    expect(await order()).toMatchObject([
      409,
      { code: 'conflict', detail: expect.stringContaining('Nothing to vacuum') },
    ]);
  });

  it('is documented with each reason of a 409', async () => {
    const document = (await (await world.ask('GET', '/api/openapi.json')).json()) as {
      paths: Record<string, { post: { responses: Record<string, { description: string }> } }>;
    };
    const described = document.paths['/api/ops/database/vacuum']?.post.responses['409']?.description;
    expect(described).toBe('conflict, not enough disk, not supported');
  });

  it('is nothing when whoever ordered it lost the right to while the tables were looked at', async () => {
    const lost = new AppError('forbidden', 'not any more');
    const mustStillBeIn = (): Promise<void> => Promise.reject(lost);
    const requested = { mode: 'full', names: ['resource'], mayVacuum: true } as const;
    await expect(startVacuum({ deps: world.deps, actor: ACTOR, mustStillBeIn }, requested)).rejects.toBe(lost);
    await nothingWasOrdered();
  });

  it('is 503 while the database of the core is away', async () => {
    world.deps.vacuumFacts.tables = () => Promise.reject(new AppError('unavailable', 'no answer'));
    expect((await order())[0]).toBe(503);
    await nothingWasOrdered();
  });
});

describe('GET /api/ops/database/vacuum', () => {
  it('tells of each table what FULL gives back and for how long it locks clients out', async () => {
    world.vacuum.tables.push(fakeTable('spatial_ref_sys', 8e6, { allowed: false, reclaimable_bytes: null }));
    const body = await preview();
    expect(body.tables).toMatchObject([
      { table: 'cot_router', bytes: 8e9, reclaimable_bytes: 2e9, lock_seconds: 86, allowed: true },
      { table: 'resource', bytes: 1e9, reclaimable_bytes: 2.5e8, lock_seconds: 11, allowed: true },
      { table: 'cot_router_chat', bytes: 1e8, reclaimable_bytes: 2.5e7, lock_seconds: 2, allowed: true },
      { table: 'spatial_ref_sys', reclaimable_bytes: null, allowed: false },
    ]);
    expect(body).toMatchObject({
      total: { bytes: 9.1e9, reclaimable_bytes: 2.275e9, lock_seconds: 99, dead_tuples: 30, live_tuples: 3000 },
      rate_from: 'default',
      free_bytes: 50e9,
      needed_bytes: 8e9 + 3 * GIB,
      mount: '/data',
      enough_disk: true,
      reason: null,
      running: null,
    });
  });

  it('says when there is not enough room, and when nobody knows', async () => {
    world.around.mounts = [databaseMount(8e9)];
    expect(await preview()).toMatchObject({ enough_disk: false, free_bytes: 8e9, reason: expect.any(String) });
    world.around.mounts = [];
    expect(await preview()).toMatchObject({ enough_disk: null, free_bytes: null, reason: expect.any(String) });
    world.vacuum.tables = [];
    expect(await preview()).toMatchObject({ tables: [], enough_disk: true, needed_bytes: 0 });
  });

  it('names the job that runs', async () => {
    const id = await world.ordered({ mode: 'standard' });
    expect((await preview())['running']).toBe(id);
  });

  it('goes by how fast FULL has written here before', async () => {
    const id = await world.ordered({ mode: 'full', tables: ['cot_router'] });
    await world.begun(id);
    for (let at = 0; at < 29; at++) await world.step();
    await world.throughout(id);
    const body = await preview();
    expect(body).toMatchObject({ rate_from: 'runs', bytes_per_second: 1e8 });
    expect(body.tables[0]).toMatchObject({ table: 'cot_router', bytes: 6e9, lock_seconds: 60 });
  });
});
