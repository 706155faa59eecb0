import { describe, expect, it } from 'vitest';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { settle } from '../mesh/settle.ts';
import { Sender } from '../mesh/sender.ts';
import { RemoteClients } from '../mesh/remote-clients.ts';
import { subjects } from '../mesh/subjects.ts';
import { WriteOffs } from '../mesh/write-offs.ts';
import type { RemoteClient } from '../stream/other-nodes.ts';
import { settled } from './fake-cot-stream.ts';
import { MemoryHub } from './memory-bus.ts';

/** A node that starts; `step` is called in each pause. */
async function started(node: string, step: (made: ReturnType<typeof world>, pauses: number) => void) {
  const made = world();
  let pauses = 0;
  const log = memoryLog();
  await settle({
    node,
    bus: made.bus,
    peers: made.peers,
    working: async () => made.working.map((other) => ({ node: other, run: 'run' })),
    everybodyWent: async () => {
      if (!made.isDatabaseUp) throw new Error('the database is unavailable');
      made.ended++;
    },
    isClosed: () => pauses > 10,
    pause: async () => step(made, ++pauses),
    log,
  });
  return { ...made, pauses, logged: log.events.map(({ event }) => event) };
}

function world() {
  const peers = { nodes: [] as string[], areSettled: false, settled: 0, settle: () => void peers.settled++ };
  return { bus: { isUp: true }, peers, isDatabaseUp: true, ended: 0, working: [] as string[] };
}

describe('clients in the tables when a node starts', () => {
  it('are ended by the only node, and by the first of those that start together', async () => {
    expect(await started('core', () => undefined)).toMatchObject({ ended: 1, pauses: 1, peers: { settled: 1 } });
    const first = await started('core', ({ peers }) => void peers.nodes.push('core-2'));
    expect(first).toMatchObject({ ended: 1, peers: { settled: 1 } });
    const second = await started('core-2', ({ peers }, pauses) => {
      peers.nodes = ['core'];
      peers.areSettled = pauses === 3;
    });
    expect(second).toMatchObject({ ended: 0, pauses: 3, peers: { settled: 1 } });
  });

  it('are left alone when another node was there, and taken over when the first one fails', async () => {
    const left = await started('core', ({ peers }) => {
      peers.nodes = ['core-2'];
      peers.areSettled = true;
    });
    expect(left).toMatchObject({ ended: 0, peers: { settled: 1 } });
    const heir = await started('core-2', ({ peers }, pauses) => void (peers.nodes = pauses < 3 ? ['core'] : []));
    expect(heir).toMatchObject({ ended: 1, pauses: 3 });
  });

  it('wait for a node that works with the database and is not heard, until it comes or ends', async () => {
    const waits = await started('core', (made, pauses) => {
      made.working = ['core', 'core-2', ...(pauses < 4 ? ['core-3'] : [])];
      made.peers.nodes = ['core-2'];
    });
    expect(waits).toMatchObject({ ended: 1, pauses: 4, logged: [] });
    const joined = await started('core', ({ working, peers }, pauses) => {
      working.push('core-2');
      peers.areSettled = pauses === 4;
    });
    expect(joined).toMatchObject({ ended: 0, pauses: 4, peers: { settled: 1 } });
  });

  it('are ended once the bus has been up for a while and the database answers, which is logged once', async () => {
    const late = await started('core', (made, pauses) => {
      made.bus.isUp = pauses >= 3;
      made.isDatabaseUp = pauses >= 6;
    });
    expect(late).toMatchObject({ ended: 1, pauses: 6, logged: ['presence.not_ended'] });
    expect(await started('core', (made) => void (made.bus.isUp = false))).toMatchObject({ ended: 0 });
  });
});

describe('what is kept for nodes that are cut off', () => {
  it('is the newest, and says when something is missing', () => {
    const hub = new MemoryHub();
    const [bus, log] = [hub.bus(), memoryLog()];
    const sender = new Sender({
      node: 'core',
      bus,
      nodesOf: () => [],
      log,
      now: () => new Date(),
      maxKeptBytes: 1_000,
    });
    for (let n = 0; n < 30; n++) sender.tell(Buffer.from(`message ${n} ${'x'.repeat(80)}`));
    const before = hub.published;
    const all = () => true;
    expect(sender.replay(subjects.replay('core-2'), { after: 0, sinceMs: 0 }, all)).toEqual({
      upTo: 30,
      isWhole: false,
    });
    const kept = hub.published - before;
    expect([kept >= 5, kept <= 10]).toEqual([true, true]);
    expect(sender.replay(subjects.replay('core-2'), { after: 30 - kept, sinceMs: 0 }, all)).toEqual({
      upTo: 30,
      isWhole: true,
    });
    expect(log.events.map(({ event }) => event)).toEqual(['mesh.dropped']);
    expect(sender.replay(subjects.replay('core-2'), { after: 0, sinceMs: 0 }, () => false)).toMatchObject({ upTo: 30 });
    expect(hub.published - before).toBe(2 * kept);
  });
});

describe('clients of lost nodes', () => {
  it('are all written by the next node, when the one that was to write those of two nodes is lost too', async () => {
    const went: string[] = [];
    let atMs = 0;
    const writeOffs = new WriteOffs({
      node: 'core-4',
      clients: new RemoteClients(),
      local: () => [],
      went: ({ uid }) => void went.push(uid),
      came: () => undefined,
      working: async () => [],
      steadyMs: () => atMs,
    });
    const client = (uid: string) => ({ uid, username: uid, logged: { uid } }) as unknown as RemoteClient;
    const lost = (node: string, uid: string) => ({ node, run: `run of ${node}`, clients: [client(uid)], messageMs: 0 });
    writeOffs.lost(lost('core-2', 'ada'), () => ['core', 'core-3']);
    writeOffs.lost(lost('core-3', 'ben'), () => ['core']);
    writeOffs.lost(lost('core', 'cyd'), () => []);
    await settled();
    atMs = 5_000;
    await writeOffs.look();
    expect(went.toSorted()).toEqual(['ada', 'ben', 'cyd']);
  });
});
