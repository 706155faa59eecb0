import { beforeEach, describe, expect, it } from 'vitest';
import { run as keepServiceCertificates } from '../../jobs/keep-service-certificates.ts';
import { actionsOf } from '../audit/fake-audit.ts';
import { VIEWER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

const PLANES = {
  kind: 'adsb',
  url: 'http://192.0.2.9:8080/data/aircraft.json?key=hidden',
  header: { name: 'X-Api-Key', value: 'very-secret' },
  interval_s: 10,
  group: 'Blue',
  events_per_minute: 60,
  megabytes_per_day: 5,
};

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
  await world.deps.identity.groups.create('core_Blue');
});

async function ask(method: string, path: string, body?: unknown): Promise<[number, Record<string, unknown>]> {
  const response = await world.ask(method, path, body);
  return [response.status, response.status === 204 ? {} : ((await response.json()) as Record<string, unknown>)];
}

const set = (change: object = {}, name = 'planes') => ask('PUT', `/api/feeds/${name}`, { ...PLANES, ...change });
const groupNames = async (): Promise<string[]> =>
  (await world.deps.identity.groups.list('core_')).map(({ name }) => name);

describe('PUT /api/feeds/{name}', () => {
  it('makes a feed that is off, and shows neither its secret nor its query', async () => {
    expect(await set()).toEqual([
      200,
      expect.objectContaining({ name: 'planes', group: 'core_Blue', has_header: true, active: false, state: null }),
    ]);
    const list = await world.ask('GET', '/api/feeds', undefined, VIEWER);
    const text = await list.text();
    expect(text).toContain('http://192.0.2.9:8080/data/aircraft.json"');
    expect(text).not.toMatch(/very-secret|hidden/);
    expect(JSON.stringify(world.deps.audit.records)).not.toMatch(/very-secret|hidden/);
    expect(actionsOf(world.deps)).toContainEqual(expect.objectContaining({ action: 'feed.set', target: 'planes' }));
  });

  it('keeps the secret of the same place, and never sends it to another', async () => {
    await set();
    await set({ header: undefined, url: 'http://192.0.2.9:8080/other.json' });
    expect(world.deps.feeds.stored[0]?.header?.value).toBe('very-secret');
    await set({ header: undefined, url: 'http://192.0.2.10:8080/data/aircraft.json' });
    expect(world.deps.feeds.stored[0]?.header).toBeNull();
  });

  it.each([
    ['url', 'file:///etc/passwd'],
    ['url', 'tcp://192.0.2.9:8087'],
    ['url', 'http://ann:word@192.0.2.9/'],
    ['url', 'nonsense'],
    ['url', 'http://${HOME}/'],
    ['group', 'Missing'],
    ['group', 'core_ROLE_ADMIN'],
    ['interval_s', 1],
    ['events_per_minute', 0],
    ['megabytes_per_day', 0],
    ['area', { south: 10, west: 0, north: 5, east: 1 }],
    ['header', { name: 'X', value: 'two\r\nlines' }],
  ])('refuses the %s %j, and names it', async (field, value) => {
    const [status, problem] = await set({ [field]: value });
    expect([status, JSON.stringify(problem['errors'])]).toEqual([422, expect.stringContaining(`"path":"${field}`)]);
    expect(world.deps.feeds.stored).toEqual([]);
  });

  it.each(['${PGPASSWORD}', '$(PGPASSWORD)'])('refuses the host %s, which the engine would replace', async (host) => {
    const [status, problem] = await set({ kind: 'cot', url: `tcp://${host}:80` });
    expect([status, JSON.stringify(problem)]).toEqual([422, expect.stringContaining(`${host} is neither`)]);
    for (const good of ['radio_1.example.org', '192.0.2.9', '[2001:db8::1]'])
      expect((await set({ kind: 'cot', url: `tcp://${good}:80` }))[0]).toBe(200);
  });

  it('refuses a group that is only read, a mapping that is missing, and an odd name', async () => {
    await world.deps.identity.groups.create('core_Red_READ');
    expect((await set({ group: 'Red_READ' }))[0]).toBe(422);
    expect((await set({ kind: 'json' }))[0]).toBe(422);
    expect((await set({}, 'Planes'))[0]).toBe(422);
    expect((await set({}, 'a'.repeat(31)))[0]).toBe(422);
  });

  it('takes at most 20', async () => {
    for (let at = 0; at < 20; at++) expect((await set({}, `feed-${at}`))[0]).toBe(200);
    expect((await set({}, 'another'))[0]).toBe(409);
    expect((await set({ interval_s: 60 }, 'feed-3'))[0]).toBe(200);
  });
});

describe('a feed that is switched on', () => {
  it('has an account that only sends to its group, with a certificate whose key is kept', async () => {
    await set();
    expect(await ask('POST', '/api/feeds/planes/on')).toEqual([200, expect.objectContaining({ active: true })]);
    const account = await world.named('svc_feed_planes');
    expect([account.isActive, account.groups.map(({ name }) => name)]).toEqual([true, ['core_Blue_WRITE']]);
    const [made] = await world.deps.certificateStore.made(['svc_feed_planes']);
    expect(await world.deps.clientKeys.read(made?.hash ?? '')).toBeDefined();
  });

  it('keeps the key also where keys of others are not kept', async () => {
    world = await peopleWorld({ KEEP_CLIENT_KEYS: 'false' });
    await world.deps.identity.groups.create('core_Blue');
    await set();
    await ask('POST', '/api/feeds/planes/on');
    const [made] = await world.deps.certificateStore.made(['svc_feed_planes']);
    expect(await world.deps.clientKeys.read(made?.hash ?? '')).toBeDefined();
  });

  it('gets a new certificate when the one it has is gone', async () => {
    await set();
    await ask('POST', '/api/feeds/planes/on');
    const [made] = await world.deps.certificateStore.made(['svc_feed_planes']);
    await world.deps.clientKeys.remove(made?.hash ?? '');
    expect((await keepServiceCertificates(world.deps)).made).toContain('svc_feed_planes');
  });

  it('keeps its kind and group, and takes other changes at once', async () => {
    await world.deps.identity.groups.create('core_Red');
    await set();
    await ask('POST', '/api/feeds/planes/on');
    expect((await set({ group: 'Red' }))[0]).toBe(409);
    expect((await set({ kind: 'ais' }))[0]).toBe(409);
    expect(await set({ interval_s: 60 })).toEqual([200, expect.objectContaining({ active: true, interval_s: 60 })]);
  });

  it('leaves nothing when it is switched off: account, certificate, and the group that it was in', async () => {
    await set();
    await ask('POST', '/api/feeds/planes/on');
    expect(await ask('POST', '/api/feeds/planes/off')).toEqual([200, expect.objectContaining({ active: false })]);
    expect((await world.named('svc_feed_planes')).isActive).toBe(false);
    expect(await world.deps.certificateStore.revocations(['svc_feed_planes'])).toHaveLength(1);
    expect(await groupNames()).not.toContain('core_Blue_WRITE');
    expect(await groupNames()).toContain('core_Blue');
  });

  it('leaves a group in which there are others', async () => {
    await set();
    await world.account({ username: 'svc_other', kind: 'service', groups: ['core_Blue_WRITE'] });
    await ask('POST', '/api/feeds/planes/on');
    await ask('POST', '/api/feeds/planes/off');
    expect(await groupNames()).toContain('core_Blue_WRITE');
  });

  it('can be switched on again, and ends what a switch that broke off has left', async () => {
    await set();
    await ask('POST', '/api/feeds/planes/on');
    await ask('POST', '/api/feeds/planes/off');
    expect((await ask('POST', '/api/feeds/planes/on'))[0]).toBe(200);
    world.deps.feeds.stored = world.deps.feeds.stored.map((feed) => ({ ...feed, active: false }));
    expect((await ask('POST', '/api/feeds/planes/on'))[0]).toBe(200);
    expect((await world.named('svc_feed_planes')).isActive).toBe(true);
  });

  it('is changed by one at a time, so that changes at the same moment leave all or nothing of it', async () => {
    await set();
    await set({}, 'ships');
    for (let round = 0; round < 3; round++) {
      const before = await Promise.all(['planes', 'ships'].map((name) => ask('POST', `/api/feeds/${name}/on`)));
      expect(before.map(([status]) => status)).toEqual([200, 200]);
      const [off, on] = await Promise.all([
        ask('POST', '/api/feeds/planes/off'),
        ask('POST', '/api/feeds/planes/on'),
        ask('POST', '/api/feeds/ships/off'),
      ]);
      expect([off[0], on[0]]).toEqual([200, 200]);
      const account = await world.named('svc_feed_planes');
      expect([account.isActive, account.groups.map(({ name }) => name)]).toEqual([true, ['core_Blue_WRITE']]);
      const made = await world.deps.certificateStore.made(['svc_feed_planes']);
      const revoked = await world.deps.certificateStore.revocations(['svc_feed_planes']);
      expect(made.length - revoked.length).toBe(1);
    }
  });

  it('is deleted by one of two who delete it at the same moment', async () => {
    await set();
    await ask('POST', '/api/feeds/planes/on');
    const answers = await Promise.all([ask('DELETE', '/api/feeds/planes'), ask('DELETE', '/api/feeds/planes')]);
    expect(answers.map(([status]) => status).toSorted((a, b) => a - b)).toEqual([204, 404]);
  });

  it('stays off when its account cannot be made', async () => {
    await set();
    world.deps.coreEnrollment.enroll = async () => {
      throw new Error('the core is gone');
    };
    expect((await ask('POST', '/api/feeds/planes/on'))[0]).toBe(500);
    expect(world.deps.feeds.stored[0]?.active).toBe(false);
  });

  it('takes no account that was made before, and leaves it as it is', async () => {
    await set();
    await world.account({ username: 'svc_feed_planes', kind: 'service', groups: ['core_Blue_WRITE'] });
    const before = await world.named('svc_feed_planes');
    expect((await ask('POST', '/api/feeds/planes/on'))[0]).toBe(409);
    expect((await keepServiceCertificates(world.deps)).made).toEqual([]);
    expect((await ask('POST', '/api/feeds/planes/off'))[0]).toBe(200);
    expect((await ask('DELETE', '/api/feeds/planes'))[0]).toBe(204);
    expect(await world.named('svc_feed_planes')).toEqual(before);
    expect(before.isActive).toBe(true);
  });

  it('leaves an empty group in which its account was not', async () => {
    await world.deps.identity.groups.create('core_Blue_WRITE');
    await set();
    await ask('POST', '/api/feeds/planes/off');
    await ask('DELETE', '/api/feeds/planes');
    expect(await groupNames()).toContain('core_Blue_WRITE');
  });

  it('ends also an account from before accounts said that they are of a feed', async () => {
    await set();
    await ask('POST', '/api/feeds/planes/on');
    const { id } = await world.named('svc_feed_planes');
    await world.deps.identity.accounts.changeAttributes(id, { holdfast_feed: null });
    await ask('POST', '/api/feeds/planes/off');
    expect((await world.named('svc_feed_planes')).isActive).toBe(false);
  });

  it('leaves the certificates of others alone when feeds can not be read, and says so', async () => {
    await world.account({ username: 'svc_nodered', kind: 'service' });
    world.deps.feeds.list = async () => {
      throw new Error('feeds.json is damaged');
    };
    await expect(keepServiceCertificates(world.deps)).rejects.toThrow('feeds.json is damaged');
    expect(await world.deps.certificateStore.made(['svc_nodered'])).toHaveLength(1);
  });

  it('is deleted with its account', async () => {
    await set();
    await ask('POST', '/api/feeds/planes/on');
    expect((await ask('DELETE', '/api/feeds/planes'))[0]).toBe(204);
    expect([world.deps.feeds.stored, (await world.named('svc_feed_planes')).isActive]).toEqual([[], false]);
    expect((await ask('DELETE', '/api/feeds/planes'))[0]).toBe(404);
    expect((await ask('POST', '/api/feeds/planes/on'))[0]).toBe(404);
  });
});

describe('POST /api/service-accounts', () => {
  it.each(['feed_planes', 'svc_feed_planes', 'SVC_Feed_x'])('is 422 for %s, which is kept for feeds', async (name) => {
    const [status, problem] = await ask('POST', '/api/service-accounts', { name, kind: 'data' });
    const message = expect.stringMatching(/^svc_feed_\w+ begins with svc_feed_, .*choose another name/i) as string;
    expect([status, problem['errors']]).toEqual([422, [{ path: 'name', message }]]);
    expect(world.deps.theCore.certificates).toEqual([]);
  });
});

describe('GET /api/feeds', () => {
  const problem = async (): Promise<unknown> =>
    ((await (await world.ask('GET', '/api/feeds')).json()) as { problem: string | null }[])[0]?.problem;

  it('says why a feed brings nothing, with the remedy', async () => {
    await set();
    expect(await problem()).toBeNull();
    await ask('POST', '/api/feeds/planes/on');
    expect(await problem()).toMatch(/The flow engine does not report\. Start it: .*--flows/);
    const state = {
      connected: true,
      read_at: null,
      items: 3,
      sent_at: null,
      day: world.around.now.toISOString().slice(0, 10),
      sent_today: 9,
      refused_today: 0,
      bytes_today: 9000,
      error: null,
    };
    const report = (change: object): void => {
      world.deps.feeds.reported = { at: world.around.now.toISOString(), feeds: { planes: { ...state, ...change } } };
    };
    report({});
    expect(await problem()).toBeNull();
    report({ error: 'the source answers 503' });
    expect(await problem()).toBe('The source failed: the source answers 503.');
    report({ connected: false });
    expect(await problem()).toMatch(/^Not connected to the core/);
    const [stored] = world.deps.feeds.stored;
    if (stored !== undefined) world.deps.feeds.stored = [{ ...stored, kind: 'cot', url: 'tcp://192.0.2.9:8087' }];
    report({});
    expect(await problem()).toBe('The source has sent nothing yet. Check its address.');
    report({ read_at: world.around.now.toISOString() });
    expect(await problem()).toBeNull();
    if (stored !== undefined) world.deps.feeds.stored = [stored];
    report({ refused_today: 4 });
    expect(await problem()).toMatch(/^4 events did not fit into the disk budget of 5 MB/);
    world.deps.feeds.reported = { at: world.around.now.toISOString(), feeds: {} };
    expect(await problem()).toMatch(/does not run it yet/);
    report({});
    world.around.now = new Date(world.around.now.getTime() + 91_000);
    expect(await problem()).toMatch(/does not report/);
  });

  it('has no state of a feed whose name every object has', async () => {
    await set({}, 'constructor');
    await ask('POST', '/api/feeds/constructor/on');
    world.deps.feeds.reported = { at: world.around.now.toISOString(), feeds: {} };
    expect(await problem()).toMatch(/does not run it yet/);
  });
});
