// Version, roles, retention, plugins and health in the core's admin API, against the reference.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { ADMIN, adminWorld, byCertificate, NODE_ID, START } from './fake-core-admin.ts';

let world: ReturnType<typeof adminWorld>;
beforeEach(() => {
  world = adminWorld();
});
afterEach(() => world.end());

describe('the server', () => {
  it('has a version that clients can read, and that is not the build of a vendor', async () => {
    const { type, text } = await world.ask('GET', '/Marti/api/version');
    expect(type).toMatch(/^text\/plain/);
    expect(text).toMatch(/^\d+\.\d+-RELEASE-0$/);
    const [major, minor] = text.split('-')[0]?.split('.').map(Number) ?? [];
    expect((await world.ask('GET', '/Marti/api/version/info')).body).toEqual({
      major,
      minor,
      patch: 0,
      branch: 'RELEASE',
      variant: 'embedded',
    });
    expect((await world.ask('GET', '/Marti/api/version/config')).body).toEqual({
      version: '3',
      type: 'ServerConfig',
      data: { version: text, api: '3', hostname: 'cot.example.org' },
      nodeId: NODE_ID,
    });
  });

  it('has a name and a home', async () => {
    expect((await world.ask('GET', '/Marti/api/node/id')).text).toBe(NODE_ID);
    const { text } = await world.ask('GET', '/Marti/api/home');
    expect((await world.ask('GET', text, { as: byCertificate('ada') })).status).toBe(200);
  });

  it('gives a connecting device the profile that switches channels on, and has none for a tool: 204', async () => {
    const profile = (path: string) =>
      world.ask('GET', `/Marti/api/device/profile/${path}`, { as: byCertificate('ada') });
    const given = await profile('connection?syncSecago=7&clientUid=ANDROID-1');
    expect([given.status, given.type]).toEqual([200, 'application/zip']);
    expect(await profile('tool/maps')).toMatchObject({ status: 204, text: '' });
  });

  it('tells people their roles', async () => {
    const roles = async (as = ADMIN): Promise<unknown> =>
      (await world.ask('GET', '/Marti/api/util/user/roles', { as })).body;
    for (const name of ['core_Ops', 'core_Ops_READ']) world.people.addGroup(name);
    world.people.addPerson('ada', 'x').groups.push('core_Ops');
    world.people.addPerson('bob', 'x').groups.push('core_Ops_READ');
    expect(await roles()).toEqual(['ROLE_ADMIN']);
    expect(await roles(byCertificate('ada'))).toEqual(['ROLE_ANONYMOUS']);
    expect(await roles(byCertificate('bob'))).toEqual(['ROLE_ANONYMOUS', 'ROLE_READONLY']);
    expect(await roles(byCertificate('bob', 'ROLE_READONLY'))).toEqual(['ROLE_READONLY']);
    expect((await world.ask('GET', '/Marti/api/util/isAdmin')).body).toBe(true);
  });

  it('takes a web-admin with a password too', async () => {
    const as = { username: 'webadmin', by: 'password', role: 'ROLE_ADMIN' } as const;
    expect((await world.ask('GET', '/Marti/api/certadmin/cert', { as })).status).toBe(200);
    expect((await world.ask('GET', '/Marti/api/groups/all', { as })).status).toBe(200);
  });

  it('counts its events', async () => {
    expect((await world.ask('GET', '/Marti/api/database/cotCount')).body).toEqual({ cotEvents: 3, cotImages: 1 });
  });

  it('has no plugins', async () => {
    expect((await world.ask('GET', '/Marti/api/plugins/info/all')).body).toMatchObject({
      type: 'tak.server.plugins.PluginInfo',
      data: [],
    });
    for (const what of ['started?name=x&status=true', 'enabled?name=x', 'archive?name=x', 'all/started', 'started'])
      expect((await world.ask('POST', `/Marti/api/plugins/info/${what}`)).body).toMatchObject({ code: 2 });
  });
});

describe('retention', () => {
  const BASE = '/Marti/api/retention';
  const KEEP_ALL = { cot: null, geochat: null, files: null, missionpackages: null, missions: null };
  const file = (name: string): string => readFileSync(join(world.dataDir, 'conf/retention', name), 'utf8');

  it('takes the given keys of a policy in, in days', async () => {
    expect((await world.ask('GET', `${BASE}/policy`)).body).toMatchObject({
      type: 'RetentionPolicies',
      data: KEEP_ALL,
    });
    const put = await world.ask('PUT', `${BASE}/policy`, { json: { cot: 30, files: 7 } });
    expect(put.body).toMatchObject({ type: 'RetentionPolicies', data: { ...KEEP_ALL, cot: 30, files: 7 } });
    await world.ask('PUT', `${BASE}/policy`, { json: { files: null } });
    expect((await world.ask('GET', `${BASE}/policy`)).body.data).toEqual({ ...KEEP_ALL, cot: 30 });
    expect(file('retention-policy.yml')).toContain('  cot: 30\n');
  });

  it.each([
    ['{"cots":1}', 'cots'],
    ['{"cot":2592000}', 'looks like seconds'],
    ['{"cot":0}', 'cot: '],
    ['{"cot":-5}', 'cot: '],
    ['{"cot":1.5}', 'cot: '],
    ['{"cot":"30"}', 'cot: '],
    ['{"__proto__":{"cot":1},"x":1}', ''],
    ['[]', ''],
    ['30', ''],
  ])('refuses the policy %s', async (body, output) => {
    const answer = await world.ask('PUT', `${BASE}/policy`, { body });
    expect([answer.status, answer.body.code]).toEqual([400, 2]);
    expect(answer.body.message).toContain(output);
    expect((await world.ask('GET', `${BASE}/policy`)).body.data).toEqual(KEEP_ALL);
  });

  it('takes a schedule as bare text; one that is none is answered with nothing and changes nothing', async () => {
    const schedule = async (): Promise<unknown> => (await world.ask('GET', `${BASE}/service/schedule`)).body;
    expect(await schedule()).toMatchObject({ type: 'RetentionServiceSchedule', data: '-' });
    const put = await world.ask('PUT', `${BASE}/service/schedule`, { body: '0 0 4 * * ?\n' });
    expect(put.body).toMatchObject({ data: '0 0 4 * * ?' });
    for (const body of ['', 'every day', '"0 0 4 * * ?"', '0 0 4 * * MON', '@daily'])
      expect(await world.ask('PUT', `${BASE}/service/schedule`, { body })).toMatchObject({ status: 200, text: '' });
    expect(await schedule()).toMatchObject({ data: '0 0 4 * * ?' });
    expect((await world.ask('PUT', `${BASE}/service/schedule`, { body: '-' })).body).toMatchObject({ data: '-' });
    expect((await world.ask('PUT', `${BASE}/service/schedule`, { body: 'x'.repeat(2000) })).status).toBe(413);
  });

  it('shows and takes when missions are put away', async () => {
    const { body } = await world.ask('GET', `${BASE}/missionarchiveconfig`);
    expect(body.data).toEqual({
      cronExpression: '-',
      timeToArchiveAfterNoActivityDays: 365,
      removeFromArchiveAfterDays: 1065,
      archiveMissionByNoContentActivity: false,
      archiveMissionByNoSubscriptionActivity: false,
    });
    const json = { ...body.data, cronExpression: '@weekly', removeFromArchiveAfterDays: 1065.5 };
    expect((await world.ask('PUT', `${BASE}/missionarchiveconfig`, { json })).body.data).toEqual(json);
    expect(file('mission-archiving-config.yml')).toContain('missionCronExpression: "@weekly"');
    const wrong = { ...json, cronExpression: 'never' };
    expect((await world.ask('PUT', `${BASE}/missionarchiveconfig`, { json: wrong })).status).toBe(400);
  });

  it('shows what was put away as a text of JSON', async () => {
    const { body } = await world.ask('GET', `${BASE}/missionarchive`);
    expect(body).toMatchObject({ type: 'MissionArchive', data: JSON.stringify({ missionArchiveStoreEntries: [] }) });
  });
});

describe('health', () => {
  const health = () => world.ask('GET', '/actuator/health');
  const nextUpdate = '2026-11-29T10:20:30.007Z';

  it('is UP when database, directory and revocation list are', async () => {
    expect(await health()).toMatchObject({ status: 200, type: 'application/json' });
    expect((await health()).body).toEqual({
      status: 'UP',
      components: { db: { status: 'UP' }, ldap: { status: 'UP' }, crl: { status: 'UP', details: { nextUpdate } } },
    });
  });

  it.each<[string, () => void]>([
    ['db', () => (world.options.database.server = () => Promise.reject(new AppError('unavailable', 'away')))],
    ['ldap', () => (world.people.mood = 'down')],
    ['crl', () => world.later(8 * 86_400_000)],
    ['crl', () => (world.revocations.listTimes = () => undefined)],
  ])('is DOWN without %s', async (part, breakIt) => {
    breakIt();
    const { status, body } = await health();
    expect([status, body.status, body.components[part].status]).toEqual([503, 'DOWN', 'DOWN']);
    const others = Object.entries(body.components as Record<string, { status: string }>).filter(
      ([key]) => key !== part,
    );
    expect(others.map(([, component]) => component.status)).toEqual(['UP', 'UP']);
  });

  it('has the figures of the stream and of the archive when there are any', async () => {
    const stream = { clients: 3, read: 7, bytesRead: 700, delivered: 14, bytesWritten: 1500, dropped: 1 };
    const thinning = { seconds: 12, held: 2, replaced: 9 };
    const own = adminWorld({
      streamCounts: () => ({ ...stream, invalid: 0, faults: 0, thinning }),
      maxClients: 5_000,
      archiveCounts: () => ({ waiting: 5, capacity: 100, stored: 90, skipped: 2, lost: 1 }),
    });
    expect((await own.ask('GET', '/actuator/custom-network-metrics')).body).toEqual({
      bytesRead: 700,
      bytesWritten: 1500,
      cpuSeconds: expect.any(Number),
      numReads: 7,
      numWrites: 14,
      numClients: 3,
      maxClients: 5_000,
      thinning,
    });
    expect((await own.ask('GET', '/actuator/custom-queue-metrics')).body).toEqual({
      repositorySize: 5,
      repositoryCapacity: 100,
      repositoryStored: 90,
      repositorySkipped: 2,
      repositoryLost: 1,
    });
    own.end();
  });

  it('has figures of the process that are measured', async () => {
    const get = async (name: string) => (await world.ask('GET', `/actuator/${name}`)).body;
    const started = (await get('metrics/process.start.time')).measurements[0].value as number;
    expect(Math.abs(started - (Date.now() / 1000 - process.uptime()))).toBeLessThan(60);
    const memory = await get('custom-memory-metrics');
    expect(memory.heapUsed).toBeGreaterThan(1_000_000);
    expect(memory.heapCommitted).toBeGreaterThanOrEqual(memory.heapUsed);
    expect((await get('metrics')).names).toEqual(['process.start.time', 'jvm.memory.used', 'jvm.memory.max']);
    const used = (await get('metrics/jvm.memory.used?tag=area:heap')).measurements[0].value as number;
    expect(used).toBeGreaterThan(1_000_000);
    expect((await get('metrics/jvm.memory.max')).measurements[0].value).toBe(getHeapStatistics().heap_size_limit);
    expect(used).toBeLessThan(getHeapStatistics().heap_size_limit);
    const cpu = await get('custom-cpu-metrics');
    expect([cpu.cpuCount > 0, cpu.cpuUsage >= 0, cpu.cpuUsage <= 1]).toEqual([true, true, true]);
    const disk = await get('custom-disk-metrics');
    expect(disk.usedSpace + disk.freeSpace).toBe(disk.totalSpace);
    expect(await get('takserver-database')).toEqual({
      apiConnected: true,
      messagingConnected: true,
      maxConnections: 100,
      serverVersion: '16.14',
    });
    for (const name of ['metrics/system.cpu.usage', 'custom-network-metrics', 'custom-queue-metrics'])
      expect((await world.ask('GET', `/actuator/${name}`)).status).toBe(404);
    expect(START).toBeLessThan(Date.parse(nextUpdate));
  });
});
