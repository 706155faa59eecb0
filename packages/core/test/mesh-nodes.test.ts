import { afterEach, describe, expect, it } from 'vitest';
import { DAY_MS } from '@holdfast/kit/time';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { Nodes } from '../mesh/nodes.ts';
import { Peers } from '../mesh/peers.ts';
import { RemoteClients } from '../mesh/remote-clients.ts';
import { settled } from './fake-cot-stream.ts';
import { announcementOf, type MemoryBus, MemoryHub } from './memory-bus.ts';

const clock = { ms: 0 };
const started: Peers[] = [];
let runs = 0;

afterEach(() => {
  for (const peers of started.splice(0)) peers.close();
});

/** A node without clients. */
async function node(name: string, hub: MemoryHub): Promise<{ peers: Peers; bus: MemoryBus }> {
  const bus = hub.bus();
  const nothing = (): void => undefined;
  const peers = new Peers({
    node: name,
    run: `run-${++runs}`,
    announcement: () => announcementOf(name),
    bus,
    clients: new RemoteClients(),
    local: () => [],
    left: nothing,
    joined: nothing,
    sequence: () => 0,
    reached: nothing,
    went: nothing,
    came: nothing,
    working: async () => [],
    schedule: nothing,
    log: memoryLog(),
    now: () => new Date(clock.ms),
    steadyMs: () => clock.ms,
  });
  started.push(peers);
  peers.start();
  await settled();
  return { peers, bus };
}

const states = (peers: Peers) => peers.states().map((each) => `${each.node} ${each.state}`);

async function beat(all: readonly { peers: Peers }[], seconds: number): Promise<void> {
  for (let n = 0; n < seconds; n++) {
    clock.ms += 1_000;
    for (const { peers } of all) {
      peers.proven();
      peers.beat();
    }
    await settled();
  }
}

describe('the list of nodes', () => {
  it('shows what each one says of itself, and when it was heard last', async () => {
    const hub = new MemoryHub();
    const [a, b] = [await node('core', hub), await node('core-10', hub)];
    const c = await node('core-2', hub);
    await beat([a, b, c], 3);
    const heardAt = new Date(clock.ms).toISOString();
    const expected = ['core', 'core-2', 'core-10'].map((name) => ({
      node: name,
      state: 'up',
      heardAt,
      clients: 0,
      ...announcementOf(name),
    }));
    expect(a.peers.states()).toEqual(expected);
    expect(c.peers.states()).toEqual(expected);
  });

  it('has nodes that were lost or stopped, also on a node that starts later', async () => {
    const hub = new MemoryHub();
    const [a, b, c, d] = [
      await node('core', hub),
      await node('core-2', hub),
      await node('core-3', hub),
      await node('core-4', hub),
    ];
    const heardMs = clock.ms;
    b.bus.isUp = false;
    d.peers.close();
    await d.bus.close();
    await beat([a, c], 7);
    expect(states(a.peers)).toEqual(['core up', 'core-2 lost', 'core-3 up', 'core-4 stopped']);
    expect(a.peers.states()[1]?.heardAt).toBe(new Date(heardMs).toISOString());
    const later = await node('core-5', hub);
    expect(states(later.peers)).toEqual(states(c.peers));
    expect(states(later.peers)).toContain('core-2 lost');
    b.bus.isUp = true;
    await beat([a, b, c, later], 2);
    expect(states(later.peers)).toEqual(['core up', 'core-2 up', 'core-3 up', 'core-4 stopped', 'core-5 up']);
  });

  it('forgets a node a day after it has stopped and a week after it was lost', () => {
    const time = { ms: 0 };
    const nodes = new Nodes(() => new Date(time.ms));
    for (const name of ['core-2', 'core-3']) nodes.announced(name, announcementOf(name));
    nodes.ended('core-2', 'stopped');
    nodes.ended('core-3', 'lost');
    const names = () => nodes.list(new Map()).map((each) => each.node);
    time.ms = DAY_MS + 1;
    expect(names()).toEqual(['core-3']);
    time.ms = 7 * DAY_MS + 1;
    expect(names()).toEqual([]);
  });
});
