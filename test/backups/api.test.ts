import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { createApp } from '../../functions/app.ts';
import { run } from '../../jobs/back-up.ts';
import { type World, world } from '../health/fake-monitored.ts';
import { ADMIN, type FakeDeps, fakeDeps, NOBODY, VIEWER } from '../http/fake-deps.ts';

const PASSPHRASE = 'open sesame of the station';
const SETTINGS = { BACKUP_TARGET: '/mnt/backups', BACKUP_PASSPHRASE: PASSPHRASE, BACKUP_TOKEN: 'Xk3vT8mQzR5nWc2Lp7Bd' };
const CONNECTION = { requestId: 'r', clientAddress: '192.0.2.7', secure: false };
type Body = Record<string, unknown>;

let around: World;
let deps: FakeDeps;
let name: string;
beforeEach(() => {
  around = world();
  deps = fakeDeps(SETTINGS, around);
  name = around.backups.the.backups[0]?.name ?? '';
});

async function send(method: string, path: string, body?: unknown, headers: Record<string, string> = ADMIN) {
  const json = body === undefined ? {} : { 'content-type': 'application/json' };
  const init = {
    method,
    headers: { ...headers, ...json },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
  return createApp(deps).request(path, init, CONNECTION);
}
async function ask(method: string, path: string, body?: unknown, headers = ADMIN): Promise<[number, Body]> {
  const response = await send(method, path, body, headers);
  return [response.status, (await response.json()) as Body];
}
const audited = (action: string) =>
  deps.audit.records
    .filter((each) => each.action === action)
    .map(({ phase, result, actor, target }) => [phase, result, actor, target]);
const unreachable = (): AppError =>
  new AppError('unavailable', 'The backup service refused the connection. Remedy: look.');

describe('GET /api/backups', () => {
  it('shows viewers the list, the schedule and the target, and no secret', async () => {
    const [status, body] = await ask('GET', '/api/backups', undefined, VIEWER);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      wanted: true,
      cron: '0 30 2 * * ?',
      next_at: '2026-03-05T02:30:00.000Z',
      keep_days: 30,
      running: null,
      target: { place: '/mnt/backups' },
      backups: [{ name, proven: true, proof: { level: 'serves' } }],
    });
    expect(JSON.stringify(body)).not.toContain(PASSPHRASE);
    expect(JSON.stringify(body)).not.toContain(SETTINGS.BACKUP_TOKEN);
    expect((await ask('GET', '/api/backups', undefined, NOBODY))[0]).toBe(403);
  });

  it('is empty without a target, without asking the service, and 503 with a remedy while that is down', async () => {
    around.backups.error = unreachable();
    expect((await ask('GET', '/api/backups'))[1]).toMatchObject({ detail: expect.stringContaining('Remedy') });
    expect((await ask('GET', '/api/backups'))[0]).toBe(503);
    deps = fakeDeps({}, around);
    expect(await ask('GET', '/api/backups')).toMatchObject([200, { wanted: false, target: null, next_at: null }]);
  });
});

describe('POST /api/backups', () => {
  it('answers 202 with a job that makes it, audited from the request to its end', async () => {
    const response = await send('POST', '/api/backups', { history: false });
    const job = (await response.json()) as Body;
    expect([response.status, response.headers.get('location')]).toEqual([202, `/api/ops/jobs/${String(job['id'])}`]);
    expect(job).toMatchObject({ kind: 'backup', state: 'queued', requested_by: 'webadmin' });
    await run(deps, around.now);
    expect(around.backups.the.running?.kind).toBe('backup');
    expect(await ask('POST', '/api/backups')).toMatchObject([
      409,
      { detail: expect.stringContaining('already running') },
    ]);
    around.backups.the.proof = 'off';
    around.backups.end();
    await run(deps, around.now);
    expect((await ask('GET', `/api/ops/jobs/${String(job['id'])}`))[1]).toMatchObject({ state: 'succeeded' });
    expect(around.backups.the.backups[0]).toMatchObject({ requested_by: 'webadmin', history: false });
    expect(audited('backup.run')).toEqual([
      ['intent', null, 'webadmin', job['id']],
      ['outcome', 'ok', 'webadmin', job['id']],
    ]);
  });

  it('takes a request without a body, and refuses values that it does not know', async () => {
    expect((await ask('POST', '/api/backups', { history: 'yes' }))[0]).toBe(422);
    expect((await ask('POST', '/api/backups', { passphrase: 'x' }))[0]).toBe(422);
    expect(audited('backup.run')).toEqual([]);
    expect((await ask('POST', '/api/backups'))[0]).toBe(202);
  });

  it('is refused to viewers, without a target, while another run is under way, and while the service is down', async () => {
    expect((await ask('POST', '/api/backups', {}, VIEWER))[0]).toBe(403);
    await around.backups.start({ requestedBy: 'script' });
    expect(await ask('POST', '/api/backups')).toMatchObject([409, { code: 'conflict' }]);
    around.backups.error = unreachable();
    expect((await ask('POST', '/api/backups'))[0]).toBe(503);
    deps = fakeDeps({}, around);
    expect(await ask('POST', '/api/backups')).toMatchObject([
      409,
      { code: 'not_supported', detail: expect.stringContaining('set BACKUP_TARGET') },
    ]);
    expect((await deps.opsJobs.list({}, 0, 9)).count).toBe(0);
  });
});

describe('one backup', () => {
  it('is proven by a job, or not found', async () => {
    expect(await ask('POST', `/api/backups/${name}/proof`)).toMatchObject([202, { kind: 'backup' }]);
    await run(deps, around.now);
    expect(around.backups.the.running).toMatchObject({ kind: 'proof', name });
    around.backups.end();
    await run(deps, around.now);
    expect(audited('backup.prove').map(([phase, result]) => [phase, result])).toEqual([
      ['intent', null],
      ['outcome', 'ok'],
    ]);
    expect((await ask('POST', '/api/backups/holdfast-20010101T000000Z.tar.zst.age/proof'))[0]).toBe(404);
    expect((await ask('POST', `/api/backups/${name}/proof`, undefined, VIEWER))[0]).toBe(403);
  });

  it('is marked as permanent, and unmarked', async () => {
    const path = `/api/backups/${name}/permanent`;
    expect(await ask('PUT', path, { permanent: true })).toMatchObject([200, { name, permanent: true }]);
    expect(await ask('PUT', path, { permanent: false })).toMatchObject([200, { permanent: false }]);
    expect(audited('backup.permanent')[1]).toEqual(['outcome', 'ok', 'webadmin', name]);
    for (const body of [{}, { permanent: 'true' }, { permanent: true, name: 'x' }])
      expect((await ask('PUT', path, body))[0]).toBe(422);
    expect((await ask('PUT', path, { permanent: true }, VIEWER))[0]).toBe(403);
    expect((await ask('PUT', '/api/backups/other/permanent', { permanent: true }))[0]).toBe(404);
  });

  it('is handed out as it is stored to administrators alone, and every time is audited', async () => {
    const response = await send('GET', `/api/backups/${name}/archive`);
    const bytes = around.backups.archives.get(name);
    const shown = ['content-length', 'content-disposition', 'content-type', 'cache-control'].map((each) =>
      response.headers.get(each),
    );
    expect([response.status, ...shown]).toEqual([
      200,
      String(bytes?.length),
      `attachment; filename="${name}"`,
      'application/octet-stream',
      'no-store',
    ]);
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes);
    expect(audited('backup.download')).toEqual([
      ['intent', null, 'webadmin', name],
      ['outcome', 'ok', 'webadmin', name],
    ]);
    expect((await send('GET', `/api/backups/${name}/archive`, undefined, VIEWER)).status).toBe(403);
    expect((await send('GET', '/api/backups/missing/archive')).status).toBe(404);
    expect((await send('GET', '/api/backups/..%2f..%2fsecrets.json/archive')).status).toBe(422);
    around.backups.error = unreachable();
    expect((await send('GET', `/api/backups/${name}/archive`)).status).toBe(503);
    expect(audited('backup.download').at(-1)).toEqual(['outcome', 'unknown', 'webadmin', name]);
  });
});
