import { beforeEach, describe, expect, it } from 'vitest';
import type { CoreCluster, CoreNode } from '@holdfast/kit/core-wire';
import { measureIn as measure } from './fake-measure.ts';
import { type World, withNodes, world } from './fake-monitored.ts';

let of: World;
let cluster: CoreCluster;
let second: CoreNode;

beforeEach(() => {
  of = world();
  cluster = withNodes(of);
  second = cluster.nodes[1] as CoreNode;
});

describe('the module core of several nodes', () => {
  it('says how many there are, and shows each', async () => {
    const { status, message, data } = await measure('core', of);
    expect([status, message]).toEqual(['ok', expect.stringMatching(/ 3 nodes with 30 connections\.$/)]);
    expect(data).toMatchObject({ node: 'core', bus_up: true });
    expect(data['nodes']).toContainEqual(
      expect.objectContaining({ node: 'core-2', up: true, clients: 10, memory_pct: 30, error: null }),
    );
  });

  it('shows none of it with one node', async () => {
    of.core.stream = { clients: 10, maxClients: 1_000, thinningSeconds: 0 };
    const { message, data } = await measure('core', of);
    expect(message).not.toContain('node');
    expect(Object.keys(data).filter((key) => /node|bus/.test(key))).toEqual([]);
  });

  it.each([
    ['lost', 'warning', 'node core-2 of the core was last heard at 2026-03-04 05:06:00 UTC.'],
    ['stopped', 'note', 'node core-2 of the core was stopped at 2026-03-04 05:06:00 UTC.'],
  ] as const)('names a node that is %s', async (state, level, text) => {
    second.state = state;
    const { status, message } = await measure('core', of);
    expect([status, message]).toEqual([level, text]);
    expect((await measure('core', of, { failuresInRow: 2 })).status).toBe(state === 'lost' ? 'critical' : 'note');
  });

  it('says that the bus is down, and not that the others are lost', async () => {
    cluster.isBusUp = false;
    second.state = 'lost';
    const { message, remedies } = await measure('core', of);
    expect(message).toBe("node core of the core can't reach NATS: devices on other nodes don't see its devices.");
    expect(remedies[0]).toContain('docker compose logs --tail 100 nats');
  });

  it('names the port of a node that does not answer', async () => {
    Object.assign(of.tls[second.enrollment] ?? {}, { reachable: false, error: 'refused' });
    expect((await measure('core', of)).message).toBe('node core-2 of the core: https://192.0.2.2:8446 refused.');
  });

  it.each([
    [{ clients: 901 }, 'node core-2 of the core has 901 of at most 1000 connections.'],
    [{ memoryBytes: 910e6 }, 'node core-2 of the core uses 91 % of its memory limit (warning above 90 %).'],
  ])('warns of a node with %j', async (change, text) => {
    Object.assign(second, change);
    const { status, message } = await measure('core', of);
    expect([status, message]).toEqual(['warning', text]);
  });
});

describe('the probe of several nodes', () => {
  it('sends an event from each node to the next', async () => {
    const { status, message, data } = await measure('probe', of);
    expect([status, message]).toEqual(['ok', expect.stringMatching(/ Each of 3 nodes reached the next\.$/)]);
    const shown = data['nodes'] as { node: string; to: string; ok: boolean }[];
    expect(shown.map(({ node, to, ok }) => [node, to, ok])).toEqual([
      ['core', 'core-2', true],
      ['core-2', 'core-3', true],
      ['core-3', 'core', true],
    ]);
  });

  it('names the node that an event does not reach', async () => {
    const { coreDevices } = of.core;
    const places = new Map<string, string | undefined>();
    of.core.coreDevices = {
      ...coreDevices,
      async connect(hash, at) {
        const met = await coreDevices.connect(hash, at);
        if ('connection' in met) places.set(met.connection, at);
        return met;
      },
      received: async (connection, ...rest) =>
        places.get(connection) === second.streaming ? undefined : coreDevices.received(connection, ...rest),
    };
    const { status, message, data } = await measure('probe', of);
    expect([status, message]).toEqual([
      'warning',
      'node core: An event that was sent to this node did not arrive on core-2 within 4 s.',
    ]);
    expect(data['failed_stage']).toBeNull();
  });

  it('names a node that refuses it once', async () => {
    const { coreDevices } = of.core;
    of.core.coreDevices = {
      ...coreDevices,
      connect: async (hash, at) =>
        at === second.streaming ? { refused: 'the core ended the connection' } : coreDevices.connect(hash, at),
    };
    const { message, details, data } = await measure('probe', of);
    expect((data['nodes'] as { ok: boolean }[]).map(({ ok }) => ok)).toEqual([false, false, true]);
    expect(message).toBe(
      `node core-2: The stream at ${second.streaming} refused the probe: the core ended the connection.`,
    );
    expect(details).toHaveLength(1);
  });

  it('leaves out a node that is not there, and everything with fewer than two', async () => {
    second.state = 'lost';
    const shown = (await measure('probe', of)).data['nodes'] as { node: string }[];
    expect(shown.map(({ node }) => node)).toEqual(['core', 'core-3']);
    (cluster.nodes[2] as CoreNode).state = 'stopped';
    expect(await measure('probe', of)).toMatchObject({ status: 'ok' });
    expect((await measure('probe', of)).data).not.toHaveProperty('nodes');
  });
});
