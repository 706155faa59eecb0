// Several core nodes over a real message server, with real devices on each of them: who hears whom,
// who is put off, and what a failure of any part changes.

import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import type CoT from '@tak-ps/node-cot';
import { faults } from './cluster-faults.ts';
import {
  type ClusterWorld,
  clusterWorld,
  count,
  enrolled,
  hasNats,
  holdDown,
  isBack,
  isRefused,
  isUid,
  marker,
  open as openOn,
  type Person,
  untilHeard,
} from './cluster-world.ts';
import { apiDevice, asDevice, type CorePlace, curl, type Device, enroll } from './core-client.ts';
import { asAdministrator } from './devices-api.ts';
import { eventually, newStack, query, type TestStack } from './embedded.ts';
import { stands } from './running-stack.ts';
import { type StreamDevice, streamDevice } from './stream-device.ts';

let stack: TestStack;
let world: ClusterWorld;
let nodes: ClusterWorld['nodes'];
let work: string;

const open = (who: Device, callsign: string, node: 0 | 1 | 2): Promise<StreamDevice> =>
  openOn(nodes[node], who, callsign);
const signal = (role: string, name: NodeJS.Signals): boolean => process.kill(stack.pid(role), name);

describe.skipIf(!hasNats() || stands)('three core nodes', { timeout: 120_000 }, () => {
  let ada: StreamDevice;
  let bob: StreamDevice;
  let cy: StreamDevice;
  let people: Record<'ada' | 'bob' | 'cy' | 'dan' | 'eve', Person>;

  beforeAll(async () => {
    stack = await newStack();
    expect(await stack.start(['--cluster', '3'])).toMatchObject({ code: 0 });
    world = clusterWorld(stack);
    ({ nodes, work } = world);
    people = {
      ada: await enrolled(world, 'ada', 'Blue', 'Green'),
      bob: await enrolled(world, 'bob', 'Blue', 'Green'),
      cy: await enrolled(world, 'cy', 'Red'),
      dan: await enrolled(world, 'dan', 'Blue'),
      eve: await enrolled(world, 'eve', 'Blue'),
    };
    ada = await open(people.ada, 'ADA', 0);
    bob = await open(people.bob, 'BOB', 1);
    cy = await open(people.cy, 'CY', 2);
  }, 300_000);

  it('are listed in stack.json, the first one as the core', () => {
    const { core, pids } = stack.file();
    expect(core.nodes).toHaveLength(3);
    expect(core).toMatchObject({ ...core.nodes?.[0] });
    expect(pids.map(({ role }) => role)).toEqual(expect.arrayContaining(['nats', 'core', 'core-2', 'core-3']));
  });

  it('deliver each event once to those of the group, wherever they are, and to nobody else', async () => {
    ada.send(marker('m1'));
    await bob.hears("Ada's marker", isUid('m1'));
    ada.sendText(
      `<event version="2.0" uid="large" type="b-m-p-s-m" how="m-g" time="2026-11-22T05:00:00Z" start="2026-11-22T05:00:00Z" stale="2026-11-22T05:05:00Z"><point lat="1" lon="2" hae="3" ce="4" le="5"/><detail><remarks>${'x'.repeat(700_000)}</remarks></detail></event>`,
    );
    await bob.hears('a large event', isUid('large'), 10_000);
    bob.send(marker('m2'));
    await ada.hears("Bob's marker", isUid('m2'));
    await cy.isUpToDate();
    expect([count(bob, 'm1'), count(ada, 'm2')]).toEqual([1, 1]);
    expect(cy.heard.filter((event) => !event.type().startsWith('t-x'))).toEqual([]);
  });

  it('show the newest positions of all nodes to a device that connects, and send chat to one device', async () => {
    ada.report(47.25);
    await bob.hears('where Ada is', (event) => event.uid() === ada.uid && event.position()[1] === 47.25);
    const dan = await open(people.dan, 'DAN', 2);
    const seen = await dan.hears('where Ada is', (event) => event.uid() === ada.uid);
    expect(seen.position()[1]).toBe(47.25);
    await dan.hears('where Bob is', (event) => event.uid() === bob.uid);
    dan.chat({ uid: bob.uid, callsign: 'BOB' }, 'To Bob alone');
    await bob.hears('the chat', (event) => event.type() === 'b-t-f');
    await ada.isUpToDate();
    expect(ada.heard.filter((event) => event.type() === 'b-t-f')).toEqual([]);
    dan.leave();
    await ada.hears('that Dan has gone', (event) => event.type() === 't-x-d-d');
  });

  it('list the clients of every node on the first one, which can disconnect them', async () => {
    const admin = await apiDevice(nodes[0], work);
    const { body } = await asDevice(nodes[0], admin, '/Marti/api/subscriptions/all');
    const { data } = JSON.parse(body) as { data: { clientUid: string; subscriptionUid: string; node?: string }[] };
    const shown = data.filter(({ clientUid }) => clientUid.startsWith('ANDROID'));
    expect(Object.fromEntries(shown.map(({ clientUid, node }) => [clientUid, node]))).toEqual({
      [ada.uid]: 'core',
      [bob.uid]: 'core-2',
      [cy.uid]: 'core-3',
    });
    const { results } = await asAdministrator(() => stack).json<{ results: { uid: string; node?: string }[] }>(
      'GET',
      '/api/clients',
    );
    expect(results.find(({ uid }) => uid === bob.uid)?.node).toBe('core-2');
    const id = encodeURIComponent(cy.uid);
    const { status } = await asDevice(nodes[0], admin, `/Marti/api/subscriptions/delete/${id}`, ['-X', 'DELETE']);
    expect(status).toBe(200);
    await eventually('Cy is disconnected', () => !cy.isOpen);
    cy = await open(people.cy, 'CY', 2);
  });

  it('are measured each, and an event from each to the next arrives', async () => {
    interface Measured {
      message: string;
      data: { bus_up: boolean; nodes: { node: string; clients: number; streaming: string; ok: boolean }[] };
    }
    const measured = (name: string) => asAdministrator(() => stack).json<Measured>('GET', `/api/health/${name}`);
    const { data: core, message } = await measured('core');
    expect(message).toMatch(/ 3 nodes with \d+ connections\.$/);
    expect(core).toMatchObject({ bus_up: true });
    const expected = ['core', 'core-2', 'core-3'].map((node, index) => [
      node,
      stack.file().core.nodes?.[index]?.streaming,
    ]);
    expect(core.nodes.map(({ node, streaming }) => [node, streaming])).toEqual(expected);
    const { data: probe } = await measured('probe');
    expect(probe.nodes.map(({ node, ok }) => [node, ok])).toEqual(expected.map(([node]) => [node, true]));
  });

  it("take each other's tokens, and count wrong passwords together", async () => {
    const { username, password } = stack.file().webadmin;
    const from = (node: number, address: string, path: string, ...args: string[]) =>
      curl(nodes[node] as CorePlace, ['--interface', address, ...args, `${nodes[node]?.enrollment}${path}`]);
    const form = { grant_type: 'password', username, password };
    const body = new URLSearchParams(form).toString();
    const { access_token: token } = JSON.parse((await from(0, '127.0.0.8', '/oauth/token', '-d', body)).body) as {
      access_token: string;
    };
    const config = '/Marti/api/tls/config';
    const bearer = `Authorization: Bearer ${token}`;
    for (const node of [0, 1, 2]) expect((await from(node, '127.0.0.8', config, '-H', bearer)).status).toBe(200);
    for (let n = 0; n < 10; n++)
      expect((await from(n % 3, '127.0.0.9', config, '-u', `${username}:wrong-${n}`)).status).toBe(401);
    const isLocked = async (node: number): Promise<boolean> =>
      (await from(node, '127.0.0.9', config, '-u', `${username}:${password}`)).status === 429;
    for (const node of [0, 1, 2]) await eventually('the address is locked out', () => isLocked(node));
  });

  it('list and remove an emergency on each node, wherever its device is', async () => {
    const admin = await apiDevice(nodes[0], work);
    const listed = async (node: CorePlace): Promise<string[]> => {
      const { body } = await asDevice(node, admin, '/Marti/api/repeater/list');
      return (JSON.parse(body) as { data: { uid: string }[] }).data.map(({ uid }) => uid);
    };
    const alarm = marker('bob-9-1-1');
    alarm.raw.event._attributes.type = 'b-a-o-tbl';
    alarm.raw.event.detail = {
      ...alarm.raw.event.detail,
      emergency: { _attributes: { type: '911 Alert' }, _text: 'BOB' },
    };
    bob.send(alarm);
    await ada.hears('the emergency', isUid('bob-9-1-1'));
    for (const node of nodes) expect(await listed(node)).toEqual(['bob-9-1-1']);
    const remove = '/Marti/api/repeater/remove/bob-9-1-1';
    expect((await asDevice(nodes[2], admin, remove, ['-X', 'DELETE'])).body).toContain('"data":true');
    await ada.hears('that it is over', (event) => event.type() === 'b-a-o-can');
    for (const node of nodes) expect(await listed(node)).toEqual([]);
  });

  it('end a revoked certificate and follow a change of groups on every node', async () => {
    const admin = await apiDevice(nodes[0], work);
    const eve = await open(people.eve, 'EVE', 2);
    const certificate = `/Marti/api/certadmin/cert/${people.eve.hash}`;
    expect((await asDevice(nodes[0], admin, certificate, ['-X', 'DELETE'])).status).toBe(200);
    await eventually('Eve is disconnected', () => !eve.isOpen);
    // Longer than what a node knows counts as current.
    await delay(1_000);
    for (const node of nodes) await isRefused(node, people.eve, 'EVE');
    const blue = await world.identity.groups.named('core_Blue');
    await world.identity.groups.addMember(blue?.id ?? '', people.cy.accountId);
    expect((await asDevice(nodes[0], admin, '/Marti/api/groups/update/cy')).status).toBe(200);
    await cy.hears('that its groups have changed', (event) => event.type() === 't-x-g-c');
    await cy.hears('where Ada is', (event) => event.uid() === ada.uid);
    await world.identity.groups.removeMember(blue?.id ?? '', people.cy.accountId);
    expect((await asDevice(nodes[0], admin, '/Marti/api/groups/update/cy')).status).toBe(200);
  });

  it('lose nothing that was said while the message server was killed', async () => {
    const before = stack.pid('nats');
    signal('nats', 'SIGKILL');
    for (let n = 0; n < 50; n++) {
      ada.send(marker(`cut-${n}`));
      await ada.isUpToDate();
    }
    await isBack(stack, 'nats', before);
    await bob.hears('the last marker', isUid('cut-49'), 20_000);
    expect(Array.from({ length: 50 }, (_, n) => count(bob, `cut-${n}`))).toEqual(Array.from({ length: 50 }, () => 1));
    const rows = `SELECT count(DISTINCT uid)::int AS n FROM cot_router WHERE uid LIKE 'cut-%'`;
    await eventually(
      'all are stored',
      async () => (await query<{ n: number }>(stack.file().database, rows))[0]?.n === 50,
      10_000,
    );
  });

  it('serve the others while one node is killed, and say who has gone with it', async () => {
    const dan = await open(people.dan, 'DAN2', 2);
    const before = stack.pid('core-2');
    signal('core-2', 'SIGKILL');
    await eventually('Bob is disconnected', () => !bob.isOpen);
    ada.send(marker('meanwhile'));
    await dan.hears("Ada's marker", isUid('meanwhile'));
    await isBack(stack, 'core-2', before);
    const hasGone = ({ raw }: CoT): boolean => JSON.stringify(raw.event.detail?.link ?? {}).includes(bob.uid);
    await dan.hears('that Bob has gone', (event) => event.type() === 't-x-d-d' && hasGone(event), 20_000);
    bob = await open(people.bob, 'BOB', 1);
    await untilHeard(
      () => ada,
      () => bob,
      'after-kill',
    );
    await cy.isUpToDate();
    expect(cy.heard.filter(({ raw }) => raw.event._attributes.uid.startsWith('after-kill'))).toEqual([]);
    dan.leave();
  });

  it('serve the console while the first one is down, which uses the first one again once it is back', async () => {
    const { ask, json, newUser, newCertificate, revoked } = asAdministrator(() => stack);
    const usedNode = async () => (await json<{ data: { node: string } }>('GET', '/api/health/core')).data.node;
    const listed = async (): Promise<string[]> => {
      const answer = await ask('GET', '/api/clients');
      const { results } = answer.ok ? ((await answer.json()) as { results: { uid: string }[] }) : { results: [] };
      return results.map(({ uid }) => uid);
    };
    /** All of it by management. Resolves to the device that has enrolled. */
    const manage = async (username: string): Promise<Device> => {
      const user = await newUser(username);
      const { file } = await newCertificate(username, 'tablet');
      const { url } = await json<{ url: string }>('POST', `/api/users/${user.id}/enrollment`);
      const device = await enroll(nodes[1], work, username, new URL(url).searchParams.get('token') ?? '');
      const certificates = await json<{ results: { username: string }[] }>(
        'GET',
        `/api/ops/certs?username=${username}`,
      );
      expect(certificates.results.map((each) => each.username)).toEqual([username, username]);
      await json('POST', `/api/ops/certs/${encodeURIComponent(file)}/revoke`);
      await revoked(file);
      expect(await json('GET', '/api/missions')).toMatchObject({ count: 0 });
      return device;
    };

    const letGo = await holdDown(stack, 'core');
    await eventually('the devices of the others are listed', async () => (await listed()).includes(bob.uid));
    await eventually('another one is used', async () => (await usedNode()) === 'core-2', 60_000);
    const device = await openOn(nodes[2], await manage('fern'), 'FERN');
    await eventually('the new device is listed', async () => (await listed()).includes(device.uid));
    const message = async (): Promise<string> => (await json<{ message: string }>('GET', '/api/health/core')).message;
    await eventually('health misses it', async () => (await message()).startsWith('node core of the core'), 60_000);
    device.leave();
    letGo();
    await eventually('the first one is used', async () => (await usedNode()) === 'core', 60_000);
    await manage('gale');
    ada = await open(people.ada, 'ADA', 0);
    await untilHeard(
      () => bob,
      () => ada,
      'after-first',
    );
  });

  it('admit nobody on a node that slept through a revocation', async () => {
    const admin = await apiDevice(nodes[0], work);
    const dan = await open(people.dan, 'DAN3', 2);
    signal('core-3', 'SIGSTOP');
    const certificate = `/Marti/api/certadmin/cert/${people.dan.hash}`;
    expect((await asDevice(nodes[0], admin, certificate, ['-X', 'DELETE'])).status).toBe(200);
    // Longer than what it knows counts as current.
    await delay(1_500);
    const knocking = streamDevice(nodes[2], people.dan, 'DAN4');
    signal('core-3', 'SIGCONT');
    const again = await knocking;
    await eventually('Dan is disconnected', () => !dan.isOpen);
    await eventually('Dan is refused', () => !again.isOpen);
    expect(again.heard).toEqual([]);
    await untilHeard(
      () => bob,
      () => ada,
      'after-sleep',
    );
  });

  describe('with a fault', () =>
    faults(
      () => world,
      () => [ada, bob, cy],
    ));
});
