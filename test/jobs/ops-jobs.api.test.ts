import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { VIEWER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

const AT = '2026-03-04T05:06:07.000Z';
let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
});

async function add(kind: string, now = AT): Promise<string> {
  const id = randomUUID();
  await world.deps.opsJobs.add({ id, kind, actor: 'ada', input: { secret: 'inner' }, now });
  return id;
}
const get = (path: string): Promise<Response> => world.ask('GET', path, undefined, VIEWER);
const listed = async (query = ''): Promise<unknown[]> => {
  const { results, count } = (await (await get(`/api/ops/jobs${query}`)).json()) as {
    results: { id: string }[];
    count: number;
  };
  return [...results.map(({ id }) => id), count];
};

describe('GET /api/ops/jobs/{id}', () => {
  it('shows how far a job is and what became of it, and not what it was given', async () => {
    const id = await add('vacuum');
    const response = await get(`/api/ops/jobs/${id}`);
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const body = {
      id,
      kind: 'vacuum',
      state: 'queued',
      progress: 0,
      phase: null,
      phase_percent: null,
      created_at: AT,
      started_at: null,
      finished_at: null,
      eta: null,
      log: [],
      result: null,
      error: null,
      requested_by: 'ada',
    };
    expect(await response.json()).toEqual(body);
    const log = [`${AT} half`];
    await world.deps.opsJobs.change(id, { state: 'running', progress: 0.5, startedAt: AT, eta: AT, log });
    await world.deps.opsJobs.change(id, { result: { tables: 3 }, error: 'tired' });
    expect(await (await get(`/api/ops/jobs/${id.toUpperCase()}`)).json()).toEqual({
      ...body,
      state: 'running',
      progress: 0.5,
      started_at: AT,
      eta: AT,
      log,
      result: { tables: 3 },
      error: 'tired',
    });
  });

  it('is 404 for a job that is not there, and for what is no id', async () => {
    for (const id of [randomUUID(), 'x', '1', 'null', 'x'.repeat(300), '%00', "'"])
      expect([id, (await get(`/api/ops/jobs/${id}`)).status]).toEqual([id, 404]);
  });
});

describe('GET /api/ops/jobs', () => {
  it('lists jobs newest first, by kind, by state and by page', async () => {
    const one = await add('retention');
    await world.deps.opsJobs.change(one, { state: 'failed', finishedAt: AT });
    const two = await add('vacuum', '2026-03-04T05:06:08.000Z');
    const three = await add('retention', '2026-03-04T05:06:09.000Z');
    expect(await listed()).toEqual([three, two, one, 3]);
    expect(await listed('?kind=retention')).toEqual([three, one, 2]);
    expect(await listed('?state=failed')).toEqual([one, 1]);
    expect(await listed('?kind=vacuum&state=failed')).toEqual([0]);
    expect(await listed('?page=2&page_size=2')).toEqual([one, 3]);
    expect(await listed('?page=9')).toEqual([3]);
  });

  it('is 422 for a state that no job has, and for what is no kind', async () => {
    for (const query of ['state=done', 'kind=', 'kind=%20', 'page=0', 'page_size=201'])
      expect([query, (await get(`/api/ops/jobs?${query}`)).status]).toEqual([query, 422]);
  });
});
