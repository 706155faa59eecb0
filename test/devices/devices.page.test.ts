// The page of connected devices: who is there, and how somebody is thrown out in two taps.

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
  it('says what to do when nobody is connected', async () => {
    const html = await admin.page('/devices');
    expect(html).toContain('No device is connected now.');
    expect(html).toContain('<a href="/people/new">add one</a>');
  });

  it('shows each device with its person, groups as devices see them, team, app and address, and goes on by itself', async () => {
    const client = world.deps.theCore.online('ada', 'ANDROID-1');
    client.groups = ['Red', 'Blue', 'holdfast_no_group'];
    const html = await admin.page('/devices');
    expect(names(html)).toEqual(['ADA']);
    for (const text of ['ANDROID-1', '/people?search=ada', '>Blue, Red<', 'Cyan, Team Member', 'ATAK 5.1', '192.0.2.9'])
      expect(html).toContain(text);
    expect(html).toMatch(/id="devices" data-live="self" data-every="5"/);
  });

  it('says of each button which device it is about, to whoever hears it alone', async () => {
    world.deps.theCore.online('ada', 'ANDROID-1');
    const html = await admin.page('/devices');
    for (const label of ['Shut out…', 'Disconnect…'])
      expect(html).toContain(`${label}<span class="silent"> ADA</span></summary>`);
  });

  it('is the same page while nothing but the clock has gone on, and another one when somebody comes', async () => {
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
    expect(none).toContain('No connected device has “&quot;&gt;&lt;script&gt;”');
  });

  it('gives pages of fifty, with one question to the core', async () => {
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

  it('stays when the core is away, and says so', async () => {
    world.deps.theCore.mood = 'down';
    const html = await admin.page('/devices');
    expect(html).toContain('Who is connected cannot be seen now: The core does not answer');
    expect(html).not.toContain('No device is connected');
  });

  it('gives a viewer nothing to end', async () => {
    world.deps.theCore.online('ada');
    const viewer = await visit({ deps: world.deps, around: world.around, username: 'vera' });
    const html = await viewer.page('/devices');
    expect(html).toContain('ADA');
    expect(html).not.toMatch(/Shut out|Disconnect/);
  });
});

describe('ending a connection', () => {
  it('disconnects, and says that the device may come back', async () => {
    const { connection } = world.deps.theCore.online('ada', 'ANDROID-1');
    expect(await admin.page('/devices')).toContain(`id="end-${connection}"`);
    const answer = await admin.post('/devices/disconnect', { uid: 'ANDROID-1', username: 'ada' });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/devices?done=disconnected']);
    expect(world.deps.theCore.clients).toEqual([]);
    expect(await admin.page('/devices?done=disconnected')).toContain(
      'may come back as long as its certificate is good',
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

  it('meets the same device of the same person when it has come back meanwhile', async () => {
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

  it('says that it has gone by itself', async () => {
    for (const path of ['/devices/disconnect', '/devices/shut-out']) {
      const answer = await admin.post(path, { uid: 'gone' });
      expect(answer.headers.get('location')).toBe('/devices?done=gone');
    }
  });

  it('shuts out: the certificate of that device is revoked and its connection ended, others stay', async () => {
    const { theCore } = world.deps;
    theCore.enrolledByDevice('ada', 'ANDROID-1');
    theCore.enrolledByDevice('ada', 'ANDROID-2');
    theCore.online('ada', 'ANDROID-1');
    theCore.online('ada', 'ANDROID-2');
    const answer = await admin.post('/devices/shut-out', { uid: 'ANDROID-1', username: 'ada' });
    expect(answer.headers.get('location')).toBe('/devices?done=shut-out&person=ada');
    const html = await admin.page('/devices?done=shut-out&person=ada');
    expect(html).toContain('The device of ada is shut out');
    expect(html).toMatch(/If it\s+comes back, deactivate <a href="\/people\?search=ada">ada<\/a>/);
    expect(await admin.page('/devices?done=shut-out&person=%3Cb%3E%20call%20us')).toContain('deactivate the person');
    expect(theCore.certificates.map(({ clientUid, revokedAt }) => [clientUid, revokedAt !== null])).toEqual([
      ['ANDROID-1', true],
      ['ANDROID-2', false],
    ]);
    expect(theCore.clients.map(({ uid }) => uid)).toEqual(['ANDROID-2']);
  });

  it('takes the only certificate of the person where no uid tells, and never that of somebody else', async () => {
    const { theCore } = world.deps;
    theCore.enrolledByDevice('ada', '');
    theCore.enrolledByDevice('bob', 'ANDROID-1');
    theCore.online('ada', 'ANDROID-1');
    await admin.post('/devices/shut-out', { uid: 'ANDROID-1', username: 'ada' });
    expect([activeOf('ada'), activeOf('bob')]).toEqual([0, 1]);
  });

  it('lets the person choose where nobody can tell, and does nothing before', async () => {
    const { theCore } = world.deps;
    theCore.enrolledByDevice('ada', 'A');
    theCore.enrolledByDevice('ada', 'B');
    theCore.online('ada', 'C');
    const answer = await admin.post('/devices/shut-out', { uid: 'C', username: 'ada' });
    const path = answer.headers.get('location') ?? '';
    expect(path).toBe('/certificates?search=ada&status=active&done=which');
    expect(activeOf('ada')).toBe(2);
    expect(await admin.page(path)).toContain('which of these certificates the device came with cannot be told');
  });

  it('says that the proof is still to come', async () => {
    world.deps.theCore.writesList = false;
    world.deps.theCore.enrolledByDevice('ada', 'A');
    world.deps.theCore.online('ada', 'A');
    const answer = await admin.post('/devices/shut-out', { uid: 'A', username: 'ada' });
    expect(answer.headers.get('location')).toBe('/devices?done=shutting-out&person=ada');
  });

  it('shows why it cannot be done, on a page that asks nothing again by itself', async () => {
    world.deps.theCore.mood = 'down';
    const answer = await admin.post('/devices/shut-out', { uid: 'A' });
    const html = await answer.text();
    expect(answer.status).toBe(503);
    expect(html).toContain('role="alert"');
    expect(html).not.toContain('data-live');
  });
});
