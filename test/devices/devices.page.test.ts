// Tests the page of connected devices: the list, disconnecting, and revoking a certificate.

import { beforeEach, describe, expect, it } from 'vitest';
import type { CanaryRun } from '../../shared/devices/port.ts';
import { visit, type Visitor } from '../pages/page-session.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

let world: PeopleWorld;
let admin: Visitor;
beforeEach(async () => {
  world = await peopleWorld();
  admin = await visit({ deps: world.deps, around: world.around });
  const { certificateStore, theCore, around } = { ...world.deps, ...world };
  const canary: CanaryRun = {
    at: around.now.toISOString(),
    ok: true,
    signed: true,
    problem: null,
    coreStartedAt: theCore.status.startedAt,
  };
  await certificateStore.recordCanary(canary);
});

const names = (html: string): string[] =>
  [...html.matchAll(/<th scope="row" role="rowheader">([^<]*)<br/g)].map(([, name = '']) => name);
const activeOf = (username: string): number =>
  world.deps.theCore.certificates.filter((each) => each.username === username && each.revokedAt === null).length;

describe('GET /devices', () => {
  it('says what to do when no device is connected', async () => {
    const html = await admin.page('/devices');
    expect(html).toContain('No devices connected.');
    expect(html).toContain('<a href="/people/new">add a person</a>');
  });

  it('shows each device with its person, groups as devices see them, team, app and address, and updates itself', async () => {
    const client = world.deps.theCore.online('ada', 'ANDROID-1');
    client.groups = ['Red', 'Blue', 'holdfast_no_group'];
    client.node = 'core-2';
    const html = await admin.page('/devices');
    expect(names(html)).toEqual(['ADA']);
    for (const text of [
      'ANDROID-1',
      '/people?search=ada',
      '>Blue, Red<',
      'Cyan, Team Member',
      'ATAK 5.1',
      '192.0.2.9',
      'node core-2',
    ])
      expect(html).toContain(text);
    expect(html).toMatch(/id="devices" data-live="self" data-every="5"/);
  });

  it('says how much positions are thinned and how many devices each node has, if so', async () => {
    world.deps.theCore.online('ada');
    expect(await admin.page('/devices')).not.toContain('STREAM_THINNING');
    const measured = { module: 'core', status: 'ok', message: '', details: [], remedies: [], updated_at: '' } as const;
    const nodes = [
      { node: 'core', state: 'up', clients: 1_200 },
      { node: 'core-2', state: 'lost', clients: 0 },
    ];
    const data = { clients: 1_203, thinning_seconds: 12, nodes };
    await world.deps.health.put({
      ...measured,
      details: [],
      remedies: [],
      data,
      shouldAlert: false,
      failuresInRow: 0,
      pollsInRow: 0,
    });
    const html = await admin.page('/devices');
    expect(html).toMatch(/1203 connections.*at\s+most every 12 s.*STREAM_THINNING/s);
    expect(html).toContain('Connections of each node: core 1200, core-2 (lost).');
  });

  it('names the device in each button for screen readers', async () => {
    world.deps.theCore.online('ada', 'ANDROID-1');
    const html = await admin.page('/devices');
    for (const label of ['Revoke…', 'Disconnect…'])
      expect(html).toContain(`${label}<span class="silent"> ADA</span></summary>`);
  });

  it('keeps its entity tag while only the clock changes, and gets a new one when a device connects', async () => {
    world.deps.theCore.online('ada');
    const tag = (await admin.get('/devices')).headers.get('etag') ?? '';
    world.around.now = new Date(world.around.now.getTime() + 5_000);
    expect((await admin.get('/devices', { 'if-none-match': tag })).status).toBe(304);
    world.deps.theCore.online('bob');
    expect((await admin.get('/devices', { 'if-none-match': tag })).status).toBe(200);
  });

  it('finds by callsign, person, group, team, app and address, and says what was not found', async () => {
    world.deps.theCore.online('ada').groups = ['Rescue'];
    world.deps.theCore.online('bob').address = '198.51.100.4';
    expect(names(await admin.page('/devices?search=rESC'))).toEqual(['ADA']);
    expect(names(await admin.page('/devices?search=198.51'))).toEqual(['BOB']);
    const none = await admin.page('/devices?search=%22%3E%3Cscript%3E');
    expect(none).toContain('No devices match “&quot;&gt;&lt;script&gt;”');
  });

  it('has pages of fifty, with one request to the core', async () => {
    for (let at = 0; at < 120; at++) world.deps.theCore.online('ada', `uid-${at}`).callsign = `N${1000 + at}`;
    const before = world.deps.theCore.calls;
    const html = await admin.page('/devices?page=3');
    expect(names(html)).toHaveLength(20);
    expect(html).toContain('101 to 120 of 120');
    expect(world.deps.theCore.calls - before).toBe(1);
  });

  it('shows what devices call themselves as text', async () => {
    const client = world.deps.theCore.online('ada', '"><img src=x>');
    client.callsign = '<script>alert(1)</script>';
    const html = await admin.page('/devices');
    expect(html).toContain('&lt;script&gt;alert(1)');
    expect(html).not.toMatch(/<script>alert|<img/);
  });

  it('shows an error while the core is unavailable', async () => {
    world.deps.theCore.mood = 'down';
    const html = await admin.page('/devices');
    expect(html).toContain('Couldn&#39;t load the connected devices. The core does not answer');
    expect(html).not.toContain('No devices connected');
  });

  it('gives a viewer no actions', async () => {
    world.deps.theCore.online('ada');
    const viewer = await visit({ deps: world.deps, around: world.around, username: 'vera' });
    const html = await viewer.page('/devices');
    expect(html).toContain('ADA');
    expect(html).not.toMatch(/Revoke…|Disconnect/);
  });
});

describe('ending a connection', () => {
  it('disconnects, and says that the device can reconnect', async () => {
    const { connection } = world.deps.theCore.online('ada', 'ANDROID-1');
    expect(await admin.page('/devices')).toContain(`id="end-${connection}"`);
    const answer = await admin.post('/devices/disconnect', { uid: 'ANDROID-1', username: 'ada' });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/devices?done=disconnected']);
    expect(world.deps.theCore.clients).toEqual([]);
    expect(await admin.page('/devices?done=disconnected')).toContain(
      'It can reconnect while its certificate is active.',
    );
    expect(world.deps.audit.records.map(({ action }) => action)).toContain('client.disconnect');
  });

  /** What the buttons of a row send. */
  const sentBy = (html: string, connection: string): Record<string, string> => {
    const form = new RegExp(`id="out-${connection}".*?</form>`, 's').exec(html)?.[0] ?? '';
    const fields = [...form.matchAll(/name="(\w+)" value="([^"]*)"/g)];
    return Object.fromEntries(fields.map(([, name = '', value = '']) => [name, value]));
  };

  it.each(['ANDROID-1', 'tls:1', ' ANDROID\r\n1\u202E '])(
    'meets the one that was chosen, whatever uid another has given itself: %j',
    async (uid) => {
      const { theCore } = world.deps;
      for (const username of ['ada', 'mallory']) theCore.enrolledByDevice(username, `enrolled by ${username}`);
      theCore.online('ada', 'ANDROID-1');
      const { connection } = theCore.online('mallory', uid);
      await admin.post('/devices/shut-out', sentBy(await admin.page('/devices'), connection));
      expect([activeOf('ada'), activeOf('mallory')]).toEqual([1, 0]);
      expect(theCore.clients.map(({ username }) => username)).toEqual(['ada']);
    },
  );

  it('finds the same device of the same person when it has reconnected meanwhile', async () => {
    const { theCore } = world.deps;
    theCore.enrolledByDevice('ada', 'A');
    const { connection } = theCore.online('ada', 'A');
    const sent = sentBy(await admin.page('/devices'), connection);
    theCore.clients.splice(0);
    theCore.online('bob', 'A');
    theCore.online('ada', 'A');
    await admin.post('/devices/shut-out', sent);
    expect(activeOf('ada')).toBe(0);
    expect(theCore.clients.map(({ username }) => username)).toEqual(['bob']);
  });

  it('says that the device is no longer connected', async () => {
    for (const path of ['/devices/disconnect', '/devices/shut-out']) {
      const answer = await admin.post(path, { uid: 'gone' });
      expect(answer.headers.get('location')).toBe('/devices?done=gone');
    }
  });

  it('revokes the certificate of that device and ends its connection, others stay', async () => {
    const { theCore } = world.deps;
    theCore.enrolledByDevice('ada', 'ANDROID-1');
    theCore.enrolledByDevice('ada', 'ANDROID-2');
    theCore.online('ada', 'ANDROID-1');
    theCore.online('ada', 'ANDROID-2');
    const answer = await admin.post('/devices/shut-out', { uid: 'ANDROID-1', username: 'ada' });
    expect(answer.headers.get('location')).toBe('/devices?done=shut-out&person=ada');
    const html = await admin.page('/devices?done=shut-out&person=ada');
    expect(html).toContain('Device of ada disconnected and its certificate revoked');
    expect(html).toMatch(/If it reconnects, deactivate\s+<a href="\/people\?search=ada">ada<\/a>/);
    expect(await admin.page('/devices?done=shut-out&person=%3Cb%3E%20call%20us')).toContain('deactivate the person');
    expect(theCore.certificates.map(({ clientUid, revokedAt }) => [clientUid, revokedAt !== null])).toEqual([
      ['ANDROID-1', true],
      ['ANDROID-2', false],
    ]);
    expect(theCore.clients.map(({ uid }) => uid)).toEqual(['ANDROID-2']);
  });

  it('revokes the only certificate of the person when no uid matches, and never that of another person', async () => {
    const { theCore } = world.deps;
    theCore.enrolledByDevice('ada', '');
    theCore.enrolledByDevice('bob', 'ANDROID-1');
    theCore.online('ada', 'ANDROID-1');
    await admin.post('/devices/shut-out', { uid: 'ANDROID-1', username: 'ada' });
    expect([activeOf('ada'), activeOf('bob')]).toEqual([0, 1]);
  });

  it('lets the administrator choose when the certificate is ambiguous, and revokes nothing before', async () => {
    const { theCore } = world.deps;
    theCore.enrolledByDevice('ada', 'A');
    theCore.enrolledByDevice('ada', 'B');
    theCore.online('ada', 'C');
    const answer = await admin.post('/devices/shut-out', { uid: 'C', username: 'ada' });
    const path = answer.headers.get('location') ?? '';
    expect(path).toBe('/certificates?search=ada&status=active&done=which');
    expect(activeOf('ada')).toBe(2);
    expect(await admin.page(path)).toContain('Holdfast can&#39;t tell which of these certificates the device uses');
  });

  it('says that the confirmation is pending', async () => {
    world.deps.theCore.writesList = false;
    world.deps.theCore.enrolledByDevice('ada', 'A');
    world.deps.theCore.online('ada', 'A');
    const answer = await admin.post('/devices/shut-out', { uid: 'A', username: 'ada' });
    expect(answer.headers.get('location')).toBe('/devices?done=shutting-out&person=ada');
  });

  it('shows why it was refused, on a page that does not poll', async () => {
    world.deps.theCore.mood = 'down';
    const answer = await admin.post('/devices/shut-out', { uid: 'A' });
    const html = await answer.text();
    expect(answer.status).toBe(503);
    expect(html).toContain('role="alert"');
    expect(html).not.toContain('data-live');
  });
});
