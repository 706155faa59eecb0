// What the nodes of a cluster do together: emergencies, wrong passwords, retention.

import { afterEach, describe, expect, it } from 'vitest';
import type { Retention } from '../model/parts.ts';
import type { RetentionRuns } from '../retention/retention-service.ts';
import { emergenciesOf } from '../services/stream-services.ts';
import { closeNodes, cluster } from './cluster-node-world.ts';
import { cot, settled } from './fake-cot-stream.ts';

afterEach(closeNodes);

describe('a node of a cluster', () => {
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
    a.node.changes.repeating(a.stream.repeater).periodMs = 5_000;
    await settled();
    expect([a, b].map(({ stream }) => stream.repeater.periodMs)).toEqual([5_000, 5_000]);
  });

  it('follows no period that an administrator could not set', async () => {
    const {
      nodes: [a, b],
    } = await cluster();
    for (const ms of [0, -1, 999, 1e12]) {
      a.node.mesh.tell(Buffer.from(JSON.stringify({ changed: 'period', ms })));
      await settled();
      expect(b.stream.repeater.periodMs).toBe(10_000);
    }
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
    a.node.changes.retaining(retention).changeSchedule('-');
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
