// Several nodes over a bus in memory, with the same people and groups.

import type { ThinningRow } from '@holdfast/kit/core-wire';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { Mesh } from '../mesh/mesh.ts';
import type { Presence } from '../model/stream.ts';
import type { NodeRun } from '../store/node-sessions.ts';
import { framings, stamps } from '../stream/framings.ts';
import { cotWorld, settled } from './fake-cot-stream.ts';
import { announcementOf, MemoryHub } from './memory-bus.ts';

export const meshes: Mesh[] = [];
const START_MS = Date.parse('2026-11-22T05:30:00Z');

/** To be called after each test. */
export async function closeMeshes(): Promise<void> {
  for (const mesh of meshes.splice(0)) await mesh.close();
}

/** Nodes with the same people and groups. */
export function cluster(count = 2, thinning: ThinningRow[] = []) {
  const hub = new MemoryHub();
  const places = new Map<string, number>();
  const people = new Map<string, string[] | 'closed'>();
  const clock = { ms: 0 };
  const now = (): Date => new Date(START_MS + clock.ms);
  const went: Presence[] = [];
  const came: Presence[] = [];
  /** What nodes were told that is no event. */
  const told: string[] = [];
  /** Nodes that work with the database; undefined: it does not answer. */
  const database: { working: NodeRun[] | undefined } = { working: [] };
  let runs = 0;
  const start = (index: number) => {
    const bus = hub.bus();
    const log = memoryLog();
    const node = index === 0 ? 'core' : `core-${index + 1}`;
    const run = `run-${++runs}`;
    const mesh = new Mesh({
      node,
      run,
      index,
      announcement: () => announcementOf(node),
      bus,
      redeliver: framings(8 * 1024 * 1024).redeliver,
      stampAt: stamps('node1'),
      control: (message) => void told.push(`${node} ${message.toString()}`),
      missed: () => void told.push(`${node} missed`),
      joined: () => undefined,
      went: (who) => void went.push(who),
      came: (who) => void came.push(who),
      working: async () => {
        if (database.working === undefined) throw new Error('the database is unavailable');
        return database.working;
      },
      log,
      now,
      steadyMs: () => clock.ms,
    });
    meshes.push(mesh);
    const world = cotWorld({}, { others: mesh, places, people, thinning, now });
    if (world.stream.relay === undefined) throw new Error('a node of a cluster has a relay');
    mesh.start(world.stream.relay);
    return Object.assign(world, { node, run, mesh, bus, meshLog: log });
  };
  const nodes = Array.from({ length: count }, (_, index) => start(index));
  return {
    hub,
    people,
    clock,
    went,
    came,
    database,
    told,
    /** Another one, or one that was there again. */
    start,
    nodes: nodes as [(typeof nodes)[0], (typeof nodes)[0], ...typeof nodes],
  };
}

/** All nodes send their beat, that many seconds later. */
export async function beat({ clock, nodes }: ReturnType<typeof cluster>, seconds = 1, but?: object): Promise<void> {
  for (let n = 0; n < seconds; n++) {
    clock.ms += 1_000;
    for (const node of nodes) {
      if (node === but) continue;
      await node.mesh.look().catch(() => undefined);
      node.mesh.peers.beat();
    }
    await settled();
  }
}
