// Nodes of one cluster over a bus in memory, without a database and a directory of their own.

import { memoryLog } from '../../../test/http/fake-deps.ts';
import { ClusterNode, type ClusterParts } from '../cluster.ts';
import type { RefusedConnection } from '../model/parts.ts';
import type { CertificateRecord } from '../model/parts.ts';
import type { StreamArrival } from '../model/stream.ts';
import { clientCertificate } from './fake-core-admin.ts';
import { cotWorld, settled } from './fake-cot-stream.ts';
import { MemoryHub } from './memory-bus.ts';

const nodes: ClusterNode[] = [];

/** To be called after each test. */
export async function closeNodes(): Promise<void> {
  for (const node of nodes.splice(0)) await node.close();
}

/** Nodes of one cluster. Each may lose its database, its directory (`isDown`) and the bus. */
export async function cluster() {
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
  const refused: RefusedConnection[] = [];
  const admits = async (): Promise<boolean> => {
    let isAdmitted = false;
    const arrival = {
      socket: { destroyed: false, destroy: () => undefined },
      clientAddress: '192.0.2.7',
      known: { certificate: clientCertificate('ada') },
    } as unknown as StreamArrival;
    node.admitting(
      () => void (isAdmitted = true),
      (who) => void refused.push(who),
    )(arrival);
    await settled();
    return isAdmitted;
  };
  return Object.assign(world, { node, bus, log, database, learned, reloaded, files, revocations, admits, refused });
}
