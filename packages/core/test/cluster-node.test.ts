import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { CertificateRecord } from '../model/parts.ts';
import { closeNodes, cluster } from './cluster-node-world.ts';
import { settled } from './fake-cot-stream.ts';

afterEach(closeNodes);

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
    a.node.changes.injecting({ replace: () => undefined }).replace([]);
    await settled();
    expect(await b.admits()).toBe(true);
  });

  it('admits nobody while it reaches neither the others nor the database', async () => {
    const {
      nodes: [, b],
    } = await cluster();
    b.bus.turn(false);
    expect(await b.admits()).toBe(true);
    expect(b.refused).toEqual([]);
    b.database.isUp = false;
    expect(await b.admits()).toBe(false);
    expect(b.refused).toEqual([
      {
        username: 'ada',
        address: '192.0.2.7',
        reason: 'This node is cut off from the others and from the database',
      },
    ]);
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
});
