// What failures of nodes and of their connections change for devices, on a stack with three core
// nodes and one more that can be cut off.

import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type CoT from '@tak-ps/node-cot';
import {
  type ClusterWorld,
  count,
  type CutNode,
  enrolled,
  isBack,
  isRefused,
  isUid,
  marker,
  open,
  type Person,
  startCutNode,
  untilHeard,
} from './cluster-world.ts';
import { apiDevice, asDevice, type CorePlace } from './core-client.ts';
import { asAdministrator } from './devices-api.ts';
import { eventually, query } from './embedded.ts';
import { type StreamDevice, streamDevice } from './stream-device.ts';

/** Longer than it takes until a node counts as lost; a minute by hand. */
const SPLIT_MS = Number(process.env['HOLDFAST_TEST_SPLIT_MS'] ?? 7_000);
const ones = (length: number): number[] => Array.from({ length }, () => 1);
const uids = (device: StreamDevice, prefix: string): string[] =>
  device.heard.map((event) => event.uid()).filter((uid) => uid.startsWith(prefix));
const names = (prefix: string, length: number): string[] => Array.from({ length }, (_, n) => `${prefix}${n}`);
const hasGone =
  (uid: string) =>
  ({ raw }: CoT): boolean =>
    raw.event._attributes.type === 't-x-d-d' && JSON.stringify(raw.event.detail?.link ?? {}).includes(uid);

/** A device that connects again, to the next node, whenever its connection ends. */
class Roamer {
  readonly #places: readonly CorePlace[];
  readonly #who: Person;
  readonly #callsign: string;
  #at: number;
  #isStopped = false;
  device: StreamDevice | undefined;

  constructor(places: readonly CorePlace[], at: number, who: Person, callsign: string) {
    this.#places = places;
    this.#at = at;
    this.#who = who;
    this.#callsign = callsign;
    void this.#run();
  }

  get current(): StreamDevice {
    if (this.device === undefined) throw new Error(`${this.#callsign} was never connected`);
    return this.device;
  }

  stop(): void {
    this.#isStopped = true;
    this.device?.leave();
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const place = this.#places[this.#at++ % this.#places.length] as CorePlace;
      const device = await streamDevice(place, this.#who, this.#callsign);
      device.report();
      this.device = device;
      while (device.isOpen && !this.#isStopped) await delay(50);
      await delay(200);
    }
  }
}

/** `devices`: on the three nodes, the first two in one group, the third in another. */
export function faults(world: () => ClusterWorld, devices: () => StreamDevice[]): void {
  let node: CutNode;
  let people: Record<'fay' | 'gil' | 'hal' | 'ivy' | 'jon' | 'kim' | 'lou' | 'mia', Person>;
  let fay: StreamDevice;
  const place = (at: 0 | 1 | 2): CorePlace => world().nodes[at];
  const admin = asAdministrator(() => world().stack);
  const at = (which: number): StreamDevice => devices()[which] as StreamDevice;

  /** What the presence log has of a device, oldest first. */
  async function logged({ uid }: StreamDevice): Promise<string[]> {
    const rows = await query<{ kind: string }>(
      world().stack.file().database,
      `SELECT event_name AS kind FROM client_endpoint_event e
        JOIN client_endpoint c ON c.id = e.client_endpoint_id AND c.uid = '${uid}'
        JOIN connection_event_type t ON t.id = e.connection_event_type_id ORDER BY e.id`,
    );
    return rows.map(({ kind }) => kind);
  }

  async function revoke({ hash }: Person, on = place(0)): Promise<void> {
    const api = await apiDevice(on, world().work);
    const { status } = await asDevice(on, api, `/Marti/api/certadmin/cert/${hash}`, ['-X', 'DELETE']);
    expect(status).toBe(200);
  }

  /** Each is answered for before the next: the node has taken it. */
  async function sayAcknowledged(from: StreamDevice, prefix: string, length: number): Promise<void> {
    for (const name of names(prefix, length)) {
      from.send(marker(name));
      await from.isUpToDate();
    }
  }

  async function areStored(prefix: string, length: number): Promise<void> {
    const text = `SELECT count(DISTINCT uid)::int AS n FROM cot_router WHERE uid LIKE '${prefix}%'`;
    const stored = async (): Promise<boolean> =>
      (await query<{ n: number }>(world().stack.file().database, text))[0]?.n === length;
    await eventually(`${length} of ${prefix} are stored`, stored, 15_000);
  }

  beforeAll(async () => {
    people = {
      fay: await enrolled(world(), 'fay', 'Blue'),
      gil: await enrolled(world(), 'gil', 'Blue'),
      hal: await enrolled(world(), 'hal', 'Blue'),
      ivy: await enrolled(world(), 'ivy', 'Blue'),
      jon: await enrolled(world(), 'jon', 'Blue'),
      kim: await enrolled(world(), 'kim', 'Red'),
      lou: await enrolled(world(), 'lou', 'Blue'),
      mia: await enrolled(world(), 'mia', 'Blue'),
    };
    node = await startCutNode(world());
    fay = await open(node.place, people.fay, 'FAY');
    await at(0).hears('where Fay is', isUid(fay.uid), 10_000);
  });

  afterAll(() => node.stop());

  it('make up for a split with traffic on both sides, and let nobody in who was put off meanwhile', async () => {
    const [gil, hal, kim] = [
      await open(node.place, people.gil, 'GIL'),
      await open(node.place, people.hal, 'HAL'),
      await open(node.place, people.kim, 'KIM'),
    ];
    const lou = await open(place(0), people.lou, 'LOU');
    node.nats.mood('closed');
    const healsAt = Date.now() + SPLIT_MS;
    await revoke(people.lou, node.place);
    await eventually('Lou is disconnected, though the others could not be told', () => !lou.isOpen);
    await sayAcknowledged(at(0), 'west-', 20);
    await sayAcknowledged(fay, 'east-', 20);
    await revoke(people.gil);
    await eventually('Gil is disconnected', () => !gil.isOpen);
    await admin.json('DELETE', `/api/users/${people.hal.accountId}`);
    await eventually('Hal is disconnected', () => !hal.isOpen);
    for (const who of [people.gil, people.hal])
      for (const where of [place(0), node.place]) await isRefused(where, who, 'AGAIN');
    await at(0).hears('that Fay is out of reach', hasGone(fay.uid), 10_000);
    await delay(Math.max(0, healsAt - Date.now()));
    expect(await logged(fay)).toEqual(['Connected']);
    node.nats.mood('good');
    await fay.hears('the last one', isUid('west-19'), 10_000);
    await at(1).hears('the last one', isUid('east-19'), 10_000);
    await Promise.all([fay, kim, ...devices()].map((device) => device.isUpToDate()));
    expect([uids(fay, 'west-'), uids(at(1), 'east-')]).toEqual([names('west-', 20), names('east-', 20)]);
    for (const stranger of [kim, at(2)]) expect([...uids(stranger, 'west-'), ...uids(stranger, 'east-')]).toEqual([]);
    await areStored('west-', 20);
    await areStored('east-', 20);
    kim.leave();
  });

  it('go on without the database: a revocation counts, who is known comes back, and nothing is lost', async () => {
    const ivy = await open(node.place, people.ivy, 'IVY');
    node.database.mood('closed');
    const linesBefore = node.log().length;
    await sayAcknowledged(fay, 'adrift-', 10);
    await at(1).hears('the last one', isUid('adrift-9'));
    await revoke(people.ivy);
    await eventually('Ivy is disconnected', () => !ivy.isOpen);
    await isRefused(node.place, people.ivy, 'AGAIN');
    await isRefused(node.place, people.jon, 'JON');
    fay.leave();
    fay = await open(node.place, people.fay, 'FAY');
    await delay(1_500);
    expect(node.log().length - linesBefore).toBeLessThan(30);
    node.database.mood('good');
    await areStored('adrift-', 10);
    (await open(node.place, people.jon, 'JON')).leave();
    expect(names('adrift-', 10).map((name) => count(at(1), name))).toEqual(ones(10));
  });

  it('admit nobody on a node that reaches neither NATS nor the database, and serve who is there', async () => {
    const jon = await open(node.place, people.jon, 'JON');
    node.nats.mood('closed');
    node.database.mood('closed');
    await isRefused(node.place, people.fay, 'FAY2');
    await sayAcknowledged(fay, 'alone-', 5);
    await jon.hears('the last one', isUid('alone-4'));
    node.database.mood('good');
    node.nats.mood('good');
    await at(1).hears('the last one', isUid('alone-4'), 10_000);
    expect(names('alone-', 5).map((name) => count(at(1), name))).toEqual(ones(5));
    await areStored('alone-', 5);
    const again = await open(node.place, people.fay, 'FAY2');
    for (const device of [again, jon]) device.leave();
  });

  it('lose nothing with a node that runs only now and then', async () => {
    let isSlow = true;
    const slowly = async (): Promise<void> => {
      for (let n = 0; n < 5; n++) {
        process.kill(node.pid, 'SIGSTOP');
        await delay(700);
        process.kill(node.pid, 'SIGCONT');
        await delay(100);
      }
      isSlow = false;
    };
    const slow = slowly();
    let sent = 0;
    while (isSlow) {
      at(0).send(marker(`slow-${sent}`));
      fay.send(marker(`tide-${sent++}`));
      await delay(20);
    }
    await slow;
    await fay.hears('the last one', isUid(`slow-${sent - 1}`), 10_000);
    await at(1).hears('the last one', isUid(`tide-${sent - 1}`), 10_000);
    expect([uids(fay, 'slow-'), uids(at(1), 'tide-')]).toEqual([names('slow-', sent), names('tide-', sent)]);
    expect([...uids(at(2), 'slow-'), ...uids(at(2), 'tide-')]).toEqual([]);
  });

  it('lose no node while NATS does not answer', async () => {
    const before = devices().map(({ heard }) => heard.length);
    const nats = world().stack.pid('nats');
    process.kill(nats, 'SIGSTOP');
    await sayAcknowledged(at(0), 'hang-', 10);
    await delay(6_500);
    process.kill(nats, 'SIGCONT');
    await at(1).hears('the last one', isUid('hang-9'), 10_000);
    expect(uids(at(1), 'hang-')).toEqual(names('hang-', 10));
    const notices = devices().flatMap(({ heard }, which) =>
      heard.slice(before[which]).filter((event) => event.type() === 't-x-d-d'),
    );
    expect(notices).toEqual([]);
  });

  it('are restarted one after the other, and devices that connect again go on', async () => {
    const { stack, nodes } = world();
    const [gus, lea] = [await enrolled(world(), 'gus', 'Blue'), await enrolled(world(), 'lea', 'Blue')];
    const roamers = [new Roamer(nodes, 0, gus, 'GUS'), new Roamer(nodes, 1, lea, 'LEA')] as const;
    const [from, to] = roamers.map((roamer) => () => roamer.current) as [() => StreamDevice, () => StreamDevice];
    for (const role of ['core-2', 'core-3', 'core']) {
      const before = stack.pid(role);
      process.kill(before, 'SIGTERM');
      await sayAcknowledged(fay, `rolling-${role}-`, 5);
      await isBack(stack, role, before);
      await untilHeard(from, to, `forth-${role}`);
      await untilHeard(to, from, `back-${role}`);
    }
    await areStored('rolling-', 15);
    for (const roamer of roamers) roamer.stop();
  });

  it('start all again while one is cut off: the log has its devices, and ends those of the others', async () => {
    const { stack } = world();
    const [mia, before] = [await open(place(1), people.mia, 'MIA'), await logged(fay)];
    expect(before.at(-1)).toBe('Connected');
    node.nats.mood('closed');
    const roles = ['core', 'core-2', 'core-3'].map((role) => [role, stack.pid(role)] as const);
    for (const [, pid] of roles) process.kill(pid, 'SIGKILL');
    for (const [role, pid] of roles) await isBack(stack, role, pid);
    // Two times longer than a node that starts waits for the others.
    await delay(5_000);
    expect(await logged(fay)).toEqual(before);
    node.nats.mood('good');
    await eventually('Mia has gone', async () => (await logged(mia)).at(-1) === 'Disconnected', 20_000);
    expect(await logged(fay)).toEqual(before);
    node.nats.mood('closed');
    for (const [role] of roles) process.kill(stack.pid(role), 'SIGKILL');
    process.kill(node.pid, 'SIGKILL');
    await eventually('Fay has gone', async () => (await logged(fay)).at(-1) === 'Disconnected', 30_000);
  });
}
