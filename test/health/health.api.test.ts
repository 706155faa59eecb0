import { beforeAll, describe, expect, it } from 'vitest';
import { createApp } from '../../functions/app.ts';
import { withQuickAnswers } from '../../functions/quick-answers.ts';
import { run as pollHealth } from '../../jobs/poll-health.ts';
import { HEALTH_MODULES, healthModuleOf } from '../../shared/health/modules/index.ts';
import type { Bindings } from '../../shared/http/context.ts';
import { problemSchema } from '../../shared/http/route.ts';
import { ADMIN, basic, fakeDeps, NOBODY, PASSWORD, READER, TOKEN, VIEWER } from '../http/fake-deps.ts';
import type { HealthBody, ModuleBody } from './fake-health-body.ts';
import { mount, NOW, table, world } from './fake-monitored.ts';

const CONNECTION: Bindings = { requestId: 'request-1', clientAddress: '192.0.2.7', secure: false };

const around = world();
const deps = fakeDeps({}, around);
const app = createApp(deps);
const quick = withQuickAnswers(app.fetch, deps);
const ask = async (path: string, headers: Record<string, string> = READER): Promise<Response> =>
  app.request(path, { headers }, CONNECTION);
const json = async <T>(response: Response): Promise<T> => (await response.json()) as T;

beforeAll(async () => {
  await pollHealth(deps, NOW);
});

describe('GET /api/health', () => {
  it('has every module with status, message, time and data', async () => {
    const response = await ask('/api/health');
    const body = await json<HealthBody>(response);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
    expect(Object.keys(body)).toEqual(['status', 'updated_at', 'modules']);
    expect(Object.keys(body.modules)).toEqual(HEALTH_MODULES.map(({ name }) => name));
    for (const each of Object.values(body.modules))
      expect(each).toEqual({
        status: 'ok',
        message: expect.any(String),
        updated_at: NOW.toISOString(),
        data: expect.any(Object),
      });
  });

  it('with view=status has of the data only what is no list and no object', async () => {
    const { modules } = await json<HealthBody>(await ask('/api/health?view=status'));
    expect(modules['autovacuum']?.data).toEqual({
      table_count: 1,
      dead_tuples: 10,
      live_tuples: 5000,
      settings_stock: false,
      transaction_age: 1000,
    });
    expect(modules['database']?.data).toMatchObject({ total_bytes: 30e6, connect_error: null, write_error: null });
    for (const { data } of Object.values(modules))
      expect(Object.values(data).every((value) => value === null || typeof value !== 'object')).toBe(true);
  });

  it('serves from the cache only: what changes outside is not seen before the next poll', async () => {
    const own = world();
    const fresh = fakeDeps({}, own);
    const itsApp = createApp(fresh);
    const get = async (): Promise<HealthBody> =>
      json(await itsApp.request('/api/health', { headers: READER }, CONNECTION));
    await pollHealth(fresh, NOW);
    own.databaseError = 'gone';
    expect((await get()).status).toBe('ok');
    own.now = new Date(NOW.getTime() + 60_000);
    await pollHealth(fresh, own.now);
    expect((await get()).status).toBe('critical');
    expect((await get()).modules['database']?.message).toBe('gone.');
  });

  it('takes the worst module for the overall status, notes included', async () => {
    const own = world();
    own.changed = ['SMTP_URL'];
    const fresh = fakeDeps({}, own);
    await pollHealth(fresh, NOW);
    const body = await json<HealthBody>(await createApp(fresh).request('/api/health', { headers: READER }, CONNECTION));
    expect(body.status).toBe('note');
  });

  it('calls what was never measured a note, and what nobody measures any more critical', async () => {
    const own = world();
    const fresh = fakeDeps({}, own);
    const itsApp = createApp(fresh);
    const get = async (): Promise<HealthBody> =>
      json(await itsApp.request('/api/health', { headers: READER }, CONNECTION));
    expect((await get()).modules['disk']).toMatchObject({ status: 'note', message: 'Not measured yet.' });
    await pollHealth(fresh, NOW);
    own.now = new Date(NOW.getTime() + 149_000);
    expect((await get()).status).toBe('ok');
    own.now = new Date(NOW.getTime() + 151_000);
    const { status, modules } = await get();
    expect([status, modules['disk']?.message]).toEqual([
      'critical',
      expect.stringMatching(/^Not measured since 2026-03-04T05:06:07/),
    ]);
    await pollHealth(fresh, own.now);
    expect((await get()).status).toBe('ok');
  });

  it('answers 304 to the entity tag of what has not changed, weak and in a list, too', async () => {
    const etag = (await ask('/api/health')).headers.get('etag') ?? '';
    expect(etag).toMatch(/^"[^"]+"$/);
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const response = await ask('/api/health', { ...READER, 'if-none-match': known });
      expect([known, response.status, await response.text()]).toEqual([known, 304, '']);
    }
    expect((await ask('/api/health', { ...READER, 'if-none-match': '"other"' })).status).toBe(200);
    expect((await ask('/api/health?view=status')).headers.get('etag')).not.toBe(etag);
  });

  it('changes the entity tag with every measurement', async () => {
    const own = world();
    const fresh = fakeDeps({}, own);
    await pollHealth(fresh, NOW);
    const before = fresh.health.current('full');
    own.now = new Date(NOW.getTime() + 60_000);
    await pollHealth(fresh, own.now);
    expect((await fresh.health.current('full')).etag).not.toBe((await before).etag);
  });

  it('refuses an unknown view', async () => {
    const response = await ask('/api/health?view=everything');
    expect(response.status).toBe(422);
    expect(problemSchema.parse(await response.json()).errors?.[0]?.path).toBe('view');
  });
});

describe('the short cut', () => {
  const headers = [
    {},
    ADMIN,
    READER,
    { authorization: basic('webadmin', `${PASSWORD}x`) },
    { authorization: basic('webadmin', PASSWORD.slice(0, -1)) },
    { authorization: `Bearer ${TOKEN}x` },
    { authorization: '' },
    { ...ADMIN, 'if-none-match': '*' },
  ];
  const paths = [
    '/api/health',
    '/api/health?view=status',
    '/api/health?view=all',
    '/api/health/',
    '/api/healthy',
    '/api/health?',
    '/api/health__proto__',
    '/api/healthconstructor',
    '/api/healthtoString',
  ];

  it.each(['GET', 'HEAD', 'POST', 'OPTIONS'])('answers %s exactly as the normal way', async (method) => {
    for (const path of paths)
      for (const each of headers) {
        const request = (): Request => new Request(`http://127.0.0.1:8080${path}`, { method, headers: each });
        const [short, normal] = await Promise.all([quick(request(), CONNECTION), app.fetch(request(), CONNECTION)]);
        expect([path, each, short.status, Object.fromEntries(short.headers), await short.text()]).toEqual([
          path,
          each,
          normal.status,
          Object.fromEntries(normal.headers),
          await normal.text(),
        ]);
      }
  });

  it('is taken without waiting for METRICS_TOKEN and for a password that was accepted a moment ago', async () => {
    const own = world();
    const fresh = fakeDeps({}, own);
    await pollHealth(fresh, NOW);
    const short = withQuickAnswers(createApp(fresh).fetch, fresh);
    const isTaken = (headers: Record<string, string>): boolean =>
      short(new Request('http://h/api/health', { headers }), CONNECTION) instanceof Response;
    expect([isTaken(READER), isTaken(VIEWER), isTaken({})]).toEqual([true, false, false]);
    await short(new Request('http://h/api/health', { headers: VIEWER }), CONNECTION);
    expect(isTaken(VIEWER)).toBe(true);
    own.now = new Date(NOW.getTime() + 501);
    expect(isTaken(VIEWER)).toBe(false);
  });

  it('is none for somebody without a role, and none from a locked address', async () => {
    const fresh = fakeDeps();
    await pollHealth(fresh, NOW);
    const short = withQuickAnswers(createApp(fresh).fetch, fresh);
    const status = async (headers: Record<string, string>): Promise<number> =>
      (await short(new Request('http://h/api/health', { headers }), CONNECTION)).status;
    for (let count = 0; count < 2; count++) expect(await status(NOBODY)).toBe(403);
    expect(await status(VIEWER)).toBe(200);
    for (let count = 0; count < 10; count++) await status({ authorization: basic('vera', `${count}`) });
    expect([await status(VIEWER), await status({}), await status(READER)]).toEqual([429, 401, 200]);
  });
});

describe('GET /api/health/{module}', () => {
  it('says what to do about its findings, then in general; nothing when it is ok', async () => {
    const remedies = async (): Promise<unknown> =>
      (await json<{ remedies: string[] }>(await ask('/api/health/autovacuum'))).remedies;
    expect(await remedies()).toEqual([]);
    around.origins = { autovacuum: { source: 'database', file: null, line: null, role: null, database: 'cot' } };
    around.settings = { ...around.settings, autovacuum: 'off' };
    const general = healthModuleOf('autovacuum')?.remedy ?? [];
    expect(await remedies()).toEqual(['ALTER DATABASE cot RESET autovacuum;', ...general]);
    around.settings = { ...around.settings, autovacuum: 'on' };
  });

  it('measures now', async () => {
    around.mounts = [mount('/data', 95)];
    const body = await json<ModuleBody>(await ask('/api/health/disk'));
    around.mounts = [mount('/', 10)];
    expect(Object.keys(body)).toEqual(['status', 'message', 'updated_at', 'remedies', 'data']);
    expect(body.status).toBe('critical');
  });

  it('shows autovacuum with its tables and settings beside the status', async () => {
    around.tables = [table('cot_router', 1000, 1000)];
    const body = await json<Record<string, unknown>>(await ask('/api/health/autovacuum'));
    around.tables = [];
    expect(body).toMatchObject({
      status: 'critical',
      tables: [
        {
          schema: 'public',
          table: 'cot_router',
          dead_tuples: 1000,
          live_tuples: 1000,
          dead_pct: 50,
          last_autovacuum: null,
          last_vacuum: '2026-01-02T03:04:05.000Z',
        },
      ],
      settings: { autovacuum_vacuum_scale_factor: 0.05 },
    });
    expect(body['data']).toBeUndefined();
  });

  it('shows the database with its sizes beside the status', async () =>
    expect(await json(await ask('/api/health/database'))).toMatchObject({
      status: 'ok',
      total_bytes: 30e6,
      live_bytes: 18e6,
      overhead_bytes: 12e6,
    }));

  it('answers 200 with the reason when it cannot measure, and keeps the shape', async () => {
    around.databaseError = 'The database does not answer';
    const [vacuum, database] = await Promise.all(['autovacuum', 'database'].map((name) => ask(`/api/health/${name}`)));
    around.databaseError = undefined;
    expect(vacuum?.status).toBe(200);
    expect(await vacuum?.json()).toMatchObject({ status: 'critical', tables: [], settings: {} });
    expect(await database?.json()).toMatchObject({ status: 'critical', total_bytes: null, live_bytes: null });
  });

  it('does not touch the cache', async () => {
    const before = await deps.health.current('full');
    await ask('/api/health/disk');
    expect(await deps.health.current('full')).toEqual(before);
  });

  it('answers 304 while nothing but the time has changed', async () => {
    const etag = (await ask('/api/health/disk')).headers.get('etag') ?? '';
    around.now = new Date(NOW.getTime() + 1000);
    expect((await ask('/api/health/disk', { ...READER, 'if-none-match': etag })).status).toBe(304);
    around.mounts = [mount('/', 11)];
    expect((await ask('/api/health/disk', { ...READER, 'if-none-match': etag })).status).toBe(200);
    around.now = NOW;
  });

  it.each(['nothing', 'constructor', '__proto__', 'DISK'])('knows no module %s', async (name) => {
    const response = await ask(`/api/health/${name}`);
    expect(response.status).toBe(404);
    expect(problemSchema.parse(await response.json()).detail).toMatch(/database, autovacuum/);
  });
});
