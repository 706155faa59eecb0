import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { ClusterNode, type ClusterParts } from '../cluster.ts';
import type { CertificateRecord, Retention } from '../model/parts.ts';
import type { StreamArrival } from '../model/stream.ts';
import { emergenciesOf } from '../services/stream-services.ts';
import type { RetentionRuns } from '../retention/retention-service.ts';
import { cot, cotWorld, settled } from './fake-cot-stream.ts';
import { MemoryHub } from './memory-bus.ts';

const nodes: ClusterNode[] = [];

afterEach(async () => {
  for (const node of nodes.splice(0)) await node.close();
});

/** Nodes of one cluster. Each may lose its database, its directory (`isDown`) and the bus. */
async function cluster() {
  const hub = new MemoryHub();
  const people = new Map<string, string[] | 'closed'>([
    ['ada', ['Ops']],
    ['ben', ['Ops']],
  ]);
  const places = new Map<string, number>();
  const start = (index: number) => clusterNode(hub, index, { people, places });
  const made = [0, 1].map(start);
  await settled();
  return { people, start, nodes: made as [(typeof made)[0], (typeof made)[0]] };
}

function clusterNode(
  hub: MemoryHub,
  index: number,
  shared: { people: Map<string, string[] | 'closed'>; places: Map<string, number> },
) {
  const bus = hub.bus();
  const log = memoryLog();
  const database = { isUp: true, rereads: 0 };
  const learned: string[] = [];
  const revocations = {
    reread: async () => {
      database.rereads++;
      if (!database.isUp) throw new Error('the database is unavailable');
    },
    learn: (entries: { serial: string }[]) => void learned.push(...entries.map(({ serial }) => serial)),
    refused: () => [{ serial: 'aa', revokedAt: new Date(0), expiresAt: new Date(1), subject: 'CN=ada' }],
    revoke: async (record: CertificateRecord) => record,
  } as unknown as ClusterParts['revocations'];
  const node = new ClusterNode({
    node: index === 0 ? 'core' : `core-${index + 1}`,
    run: `run-${index}`,
    index,
    bus,
    host: '127.0.0.1',
    ports: { api: 8443, enrollment: 8446, streaming: 8089 },
    maxClients: 100,
    nodeId: 'node1',
    people: { forget: () => undefined, forgetAll: () => undefined } as unknown as ClusterParts['people'],
    revocations,
    working: async () => [],
    log,
    now: () => new Date(),
    steadyMs: () => performance.now(),
  });
  nodes.push(node);
  const world = cotWorld({}, { others: node.mesh, ...shared });
  const injectors = { replace: () => undefined };
  const { stream } = world;
  const reloaded: string[] = [];
  const files = { areBroken: false };
  node.start({
    stream,
    relay: stream.relay,
    injectors,
    repeater: stream.repeater,
    retention: {
      reload: (file) => {
        reloaded.push(file);
        if (files.areBroken) throw new Error('the file is broken');
      },
    },
    readInjectors: async () => {
      if (!database.isUp) throw new Error('the database is unavailable');
      return [];
    },
  });
  const admits = async (): Promise<boolean> => {
    let isAdmitted = false;
    const socket = { destroyed: false, destroy: () => undefined };
    node.admitting(() => void (isAdmitted = true))({ socket } as unknown as StreamArrival);
    await settled();
    return isAdmitted;
  };
  return Object.assign(world, { node, bus, log, database, learned, reloaded, files, revocations, admits });
}

describe('a node of a cluster', () => {
  it('ends a revoked certificate without the database of its own', async () => {
    const {
      nodes: [a, b],
    } = await cluster();
    b.database.isUp = false;
    await a.node.revoking(a.revocations).revoke({} as CertificateRecord);
    await settled();
    expect(b.learned).toEqual(['aa']);
    expect(await b.admits()).toBe(true);
    a.node.told.injecting({ replace: () => undefined }).replace([]);
    await settled();
    expect(await b.admits()).toBe(true);
  });

  it('admits nobody while it reaches neither the others nor the database', async () => {
    const {
      nodes: [, b],
    } = await cluster();
    b.bus.turn(false);
    expect(await b.admits()).toBe(true);
    b.database.isUp = false;
    expect(await b.admits()).toBe(false);
    b.bus.turn(true);
    await settled();
    expect(await b.admits()).toBe(false);
    b.database.isUp = true;
    expect(await b.admits()).toBe(true);
  });

  it('tells later what it has revoked while it was cut off', async () => {
    const {
      nodes: [a, b],
    } = await cluster();
    a.bus.turn(false);
    await a.node.revoking(a.revocations).revoke({} as CertificateRecord);
    await settled();
    expect(b.learned).toEqual([]);
    a.bus.turn(true);
    await settled();
    expect(b.learned).toEqual(['aa']);
  });

  it('looks for revocations all the time: a node that revokes may have lost the others just now', async () => {
    const {
      nodes: [, b],
    } = await cluster();
    const before = b.database.rereads;
    await delay(1_000);
    expect(b.database.rereads - before).toBeGreaterThanOrEqual(2);
  });

  it('repeats no emergency that its person has cancelled or begun on another one', async () => {
    const {
      nodes: [a, b],
    } = await cluster();
    const alarm = (type: string, detail: string): string => cot('uid-ada-9-1-1', type, detail);
    const begun = alarm('b-a-o-tbl', '<emergency type="911 Alert">ADA</emergency>');
    const lists = (): number[] => [a, b].map(({ stream }) => stream.repeater.list().length);
    const first = await a.report('ada');
    await first.say(begun);
    const [second, ben] = [await b.report('ada'), await b.report('ben')];
    expect(lists()).toEqual([1, 0]);
    await ben.say(alarm('b-a-o-can', '<emergency cancel="true">ADA</emergency>'));
    expect(lists()).toEqual([1, 0]);
    b.clock.at = new Date(b.clock.at.getTime() + 1);
    await second.say(begun);
    expect(lists()).toEqual([0, 1]);
    a.clock.at = b.clock.at;
    await first.say(alarm('b-a-o-can', '<emergency cancel="true">ADA</emergency>'));
    expect(lists()).toEqual([0, 0]);
  });

  it('lists and removes the emergencies of all nodes, and repeats them as often', async () => {
    const { nodes } = await cluster();
    const [a, b] = nodes;
    const [ofA, ofB] = nodes.map(({ node, stream }) =>
      node.emergencies(emergenciesOf(stream.repeater, () => new Date())),
    );
    const uids = async () =>
      (await Promise.all([ofA?.list(), ofB?.list()])).map((all) => all?.map(({ uid }) => uid).toSorted());
    for (const [node, name] of [
      [a, 'ada'],
      [b, 'ben'],
    ] as const)
      await (await node.report(name)).say(cot(`e-${name}`, 'b-a-o-tbl', '<emergency type="911 Alert">X</emergency>'));
    expect(await uids()).toEqual([
      ['e-ada', 'e-ben'],
      ['e-ada', 'e-ben'],
    ]);
    expect(await ofA?.list()).toContainEqual(expect.objectContaining({ uid: 'e-ben', repeatType: '911 Alert' }));
    const cyd = await a.join('ada');
    cyd.forget();
    expect(await ofA?.remove('e-ben')).toBe(true);
    await settled();
    expect(b.stream.repeater.list()).toEqual([]);
    expect(cyd.names()).toEqual(['b-a-o-can e-ben']);
    expect(await ofA?.remove('e-ben')).toBe(false);
    expect(await ofB?.remove('e-ada')).toBe(true);
    expect(await uids()).toEqual([[], []]);
    a.node.told.repeating(a.stream.repeater).periodMs = 5_000;
    await settled();
    expect([a, b].map(({ stream }) => stream.repeater.periodMs)).toEqual([5_000, 5_000]);
  });

  it('says so when a node does not answer that may have an emergency', async () => {
    const { nodes } = await cluster();
    const [a, b] = nodes;
    const own = emergenciesOf(a.stream.repeater, () => new Date());
    await (await a.report('ada')).say(cot('e-ada', 'b-a-o-tbl', '<emergency type="911 Alert">X</emergency>'));
    const emergencies = a.node.emergencies(own);
    b.bus.isUp = false;
    expect((await emergencies.list()).map(({ uid }) => uid)).toEqual(['e-ada']);
    expect(a.log.events).toContainEqual(
      expect.objectContaining({ event: 'mesh.emergencies_missing', fields: { nodes: ['core-2'] } }),
    );
    await expect(emergencies.remove('e-ben')).rejects.toMatchObject({ code: 'unavailable' });
    expect(await emergencies.remove('e-ada')).toBe(true);
  });

  it('counts wrong passwords of all nodes, and leaves retention to the first one, which plans anew', async () => {
    const {
      nodes: [a, b],
    } = await cluster();
    for (let n = 0; n < 10; n++) {
      (n % 2 === 0 ? a : b).node.lockout.failed('192.0.2.7', performance.now());
      await settled();
    }
    const now = performance.now();
    const locked = [a, b].map(({ node }) => node.lockout.check('192.0.2.7', now).lockedUntilMs !== undefined);
    expect(locked).toEqual([true, true]);
    expect(b.node.lockout.check('192.0.2.8', now)).toEqual({});

    const order = { id: 'r1', limits: {}, maxRows: null };
    const runs = { begin: async () => ({ id: 'r1' }), runs: async () => [] } as unknown as RetentionRuns;
    expect(await a.node.running(runs).begin(order)).toEqual({ id: 'r1' });
    await expect(b.node.running(runs).begin(order)).rejects.toThrow('the first node of the cluster');
    expect(await b.node.running(runs).runs()).toEqual([]);

    for (const { reloaded } of [a, b]) reloaded.splice(0);
    const retention = { changeSchedule: () => true } as unknown as Retention;
    a.node.told.retaining(retention).changeSchedule('-');
    await settled();
    expect([a.reloaded, b.reloaded]).toEqual([[], ['schedule']]);
  });

  it('learns when it starts or was cut off what the others have counted of wrong passwords', async () => {
    const {
      start,
      nodes: [a, b],
    } = await cluster();
    const fail = async ({ node }: typeof a, address: string, times: number): Promise<void> => {
      for (let n = 0; n < times; n++) node.lockout.failed(address, performance.now());
      await settled();
    };
    const left = (address: string, nodes = [a, b]): number[] =>
      nodes.map(({ node }) => node.lockout.left(address, performance.now()));
    await fail(a, '192.0.2.7', 4);
    b.bus.turn(false);
    await fail(a, '192.0.2.7', 3);
    await fail(b, '192.0.2.7', 1);
    await fail(a, '192.0.2.8', 10);
    await fail(b, '192.0.2.9', 10);
    expect([left('192.0.2.7'), left('192.0.2.8'), left('192.0.2.9')]).toEqual([
      [3, 5],
      [0, 10],
      [10, 0],
    ]);
    b.bus.turn(true);
    await settled();
    const all = [a, b, start(2)];
    await settled();
    expect(left('192.0.2.7', all)).toEqual([3, 3, 3]);
    for (const address of ['192.0.2.8', '192.0.2.9']) expect(left(address, all)).toEqual([0, 0, 0]);
    await fail(b, '192.0.2.7', 3);
    expect(left('192.0.2.7', all)).toEqual([0, 0, 0]);
  });

  it('makes up for a deactivation while the directory was unavailable to it', async () => {
    const {
      people,
      nodes: [a, b],
    } = await cluster();
    const [ada, ben] = [await b.report('ada'), await b.report('ben')];
    b.isDown = true;
    people.set('ada', 'closed');
    await a.node.regroup(['Ada'], undefined);
    await settled();
    await b.node.readGroups();
    expect(ada.isOpen).toBe(true);
    expect((await b.join('ada')).isOpen).toBe(false);
    b.isDown = false;
    await b.node.readGroups();
    await settled();
    expect([ada.isOpen, ben.isOpen]).toEqual([false, true]);
    const before = b.requested;
    await b.node.readGroups();
    expect(b.requested).toBe(before);
  });

  it.each(['at once', 'later'])('reads all groups after a cut, when the directory answers %s', async (when) => {
    const {
      people,
      nodes: [, b],
    } = await cluster();
    const [ada, ben] = [await b.report('ada'), await b.report('ben')];
    b.isDown = when === 'later';
    b.bus.turn(false);
    people.set('ada', 'closed');
    b.bus.turn(true);
    await settled();
    if (b.isDown) {
      expect(ada.isOpen).toBe(true);
      expect((await b.join('ada')).isOpen).toBe(false);
      b.isDown = false;
      await b.node.readGroups();
      await settled();
    }
    expect([ada.isOpen, ben.isOpen]).toEqual([false, true]);
  });

  it('asks for the groups of an arriving device once while it is cut off, however often it rereads', async () => {
    const {
      nodes: [, b],
    } = await cluster();
    const { promise, resolve } = Promise.withResolvers<void>();
    const rereads: Promise<unknown>[] = [];
    const api = b.node.guarded(async () => new Response('ok'));
    const request = async (): Promise<Response> => api(new Request('https://core/'), {} as Parameters<typeof api>[1]);
    b.bus.turn(false);
    await request();
    b.groupsKnown = promise;
    const before = b.requested;
    const ada = await b.join('ada');
    for (let n = 0; n < 5; n++) rereads.push(request());
    await Promise.all(rereads);
    resolve();
    await settled();
    expect([ada.isOpen, b.requested - before, b.stream.list().length]).toEqual([true, 1, 1]);
  });

  it('asks for the groups of 16 people at once after a cut', async () => {
    const {
      nodes: [, b],
    } = await cluster();
    for (let n = 0; n < 40; n++) await b.join(`person${n}`);
    const answers: (() => void)[] = [];
    Object.defineProperty(b, 'groupsKnown', {
      get: () => new Promise<void>((resolve) => answers.push(resolve)),
    });
    b.bus.turn(false);
    b.bus.turn(true);
    await settled();
    const waiting: number[] = [];
    while (answers.length > 0) {
      waiting.push(answers.length);
      for (const answer of answers.splice(0)) answer();
      await settled();
    }
    expect(waiting).toEqual([16, 16, 8]);
  });

  it.each([false, true])('rereads the files of retention after a cut, broken: %s', async (areBroken) => {
    const {
      people,
      nodes: [, b],
    } = await cluster();
    const ada = await b.report('ada');
    b.files.areBroken = areBroken;
    people.set('ada', 'closed');
    b.bus.turn(false);
    b.reloaded.splice(0);
    b.bus.turn(true);
    await settled();
    expect([b.reloaded, ada.isOpen]).toEqual([['policy', 'schedule', 'archive'], false]);
  });

  it('ends one client whose groups cannot be changed, and changes the others', async () => {
    const {
      people,
      nodes: [, b],
    } = await cluster();
    const [ada, ben] = [await b.report('ada'), await b.report('ben')];
    const client = [...(b.stream.relay?.all() ?? [])].find(({ username }) => username === 'ada');
    Object.defineProperty(client, 'memberships', {
      get: () => [],
      set: () => {
        throw new Error('no room');
      },
    });
    people.set('ada', ['Sea']).set('ben', ['Sea']);
    expect(await b.stream.regroup(['ada', 'ben'], undefined)).toEqual([]);
    await settled();
    expect([ada.isOpen, ben.isOpen]).toEqual([false, true]);
    expect(b.stream.list().map(({ groups }) => groups[0]?.name)).toEqual(['Sea']);
  });

  it.each(['after it was told', 'while it was cut off'])(
    'repeats an emergency that its person has begun again %s, whatever it hears later',
    async (when) => {
      const {
        nodes: [a, b],
      } = await cluster();
      const begun = cot('uid-ada-9-1-1', 'b-a-o-tbl', '<emergency type="911 Alert">ADA</emergency>');
      const lists = (): number[] => [a, b].map(({ stream }) => stream.repeater.list().length);
      if (when === 'while it was cut off') a.bus.turn(false);
      const first = await a.report('ada');
      await first.say(begun);
      await first.leave();
      const second = await b.report('ada');
      b.clock.at = new Date(b.clock.at.getTime() + 1);
      await second.say(begun);
      b.bus.turn(false);
      b.bus.turn(true);
      a.bus.turn(true);
      await settled(60);
      expect(lists()).toEqual([0, 1]);
      await second.say(cot('uid-ada-9-1-1', 'b-a-o-can', '<emergency cancel="true">ADA</emergency>'));
      expect(lists()).toEqual([0, 0]);
    },
  );
});
