// The stream of the core by itself, for what fan-out costs without a database: the listener of 8089
// and the stream, a directory in memory where everybody is in one group, an archive that takes
// everything and keeps nothing. Run as a process of its own: node bench/cot-core.ts JSON, where the
// JSON is a CotCoreOrder; prints its port when it listens. Answers each message of its parent with
// what the stream has counted.

import 'reflect-metadata';
import { readFileSync, writeSync } from 'node:fs';
import { NatsBus } from '@holdfast/core/nats-bus';
import { readServerIdentity } from '@holdfast/core/tls/server-identity';
import type { ThinningRow } from '@holdfast/kit/core-wire';
import { jsonLog } from '@holdfast/kit/log';
import { Mesh } from '../packages/core/mesh/mesh.ts';
import type { Archive, PlacedMembership } from '../packages/core/model/stream.ts';
import { framings, stamps } from '../packages/core/stream/framings.ts';
import { LargeEvents } from '../packages/core/stream/large-events.ts';
import { Stream } from '../packages/core/stream/stream.ts';
import { Admission } from '../packages/core/tls/admission.ts';
import { createLiveConnections } from '../packages/core/tls/connections.ts';
import { ownConnectionLimit } from '../packages/core/tls/connection-limit.ts';
import { CoreListener } from '../packages/core/tls/core-listener.ts';
import type { CotFiles } from './cot-order.ts';

export interface CotCoreOrder extends CotFiles {
  port: number;
  thinning?: ThinningRow[];
  maxConnections?: number;
  /** One node of several, whose clients are all in the group at that place. */
  cluster?: { node: string; index: number; place: number; nats: { url: string; username: string; password: string } };
}

const { port, thinning = [], maxConnections, cluster, ...files } = JSON.parse(process.argv[2] ?? '{}') as CotCoreOrder;
/** Who comes and goes is no news here. */
const log = {
  ...jsonLog({ role: 'cot-core', write: (bytes) => writeSync(2, bytes) }),
  info: () => undefined,
};
const LOOK_EVERY_MS = 400;
const identity = readServerIdentity(files);
const now = (): Date => new Date();
const everybody: PlacedMembership[] = [
  { name: '__ANON__', direction: 'IN', place: cluster?.place ?? 0 },
  { name: '__ANON__', direction: 'OUT', place: cluster?.place ?? 0 },
];

let taken = 0;
const archive: Archive = {
  store: () => void taken++,
  isFullFor: () => false,
  onRoom: () => undefined,
  counts: () => ({ waiting: 0, capacity: Infinity, stored: taken, skipped: 0, lost: 0 }),
  close: async () => undefined,
};

const nodeId = '0123456789abcdef0123456789abcdef';
const mesh = cluster && meshOf(cluster);
const parts = {
  nodeId,
  serverVersion: '5.7-RELEASE-0',
  groups: { of: async () => everybody, forget: () => undefined },
  archive,
  presence: { came: () => undefined, went: () => undefined },
  missions: { post: async () => [] },
  largeEvents: new LargeEvents({ apiUrl: 'https://127.0.0.1:8443', now }),
  log,
  now,
  thinning,
};
const stream = new Stream(parts, mesh);
const listener = new CoreListener({
  name: 'stream',
  port,
  addresses: ['127.0.0.1'],
  identity,
  admission: new Admission({ ca: identity.ca, revocations: { isRevoked: () => false }, now }),
  live: createLiveConnections(),
  accepted: (arrival) => stream.accepted(arrival),
  log,
  maxConnections: maxConnections ?? ownConnectionLimit().streaming,
});
await listener.listen();
if (mesh !== undefined && stream.relay !== undefined) {
  mesh.start(stream.relay);
  setInterval(() => void mesh.look().catch(() => undefined), LOOK_EVERY_MS);
}

function meshOf({ node, index, nats }: NonNullable<CotCoreOrder['cluster']>): Mesh {
  const ca = readFileSync(files.ca, 'utf8');
  return new Mesh({
    node,
    run: node,
    index,
    announcement: () => ({
      version: '5.7-RELEASE-0',
      startedAt: '2026-11-26T00:00:00.000Z',
      api: 'https://127.0.0.1:8443',
      enrollment: 'https://127.0.0.1:8446',
      streaming: `tls://127.0.0.1:${port}`,
      maxClients: 10_000,
      memoryCapBytes: 1,
      memoryBytes: 0,
    }),
    bus: new NatsBus({ ...nats, ca, node, log }),
    redeliver: framings(8 * 1024 * 1024).redeliver,
    stampAt: stamps(nodeId),
    control: () => undefined,
    missed: () => undefined,
    joined: () => undefined,
    went: () => undefined,
    came: () => undefined,
    working: async () => [],
    log,
    now,
    steadyMs: () => performance.now(),
  });
}

// An exit of our own: a profile is written only then.
for (const signal of ['SIGTERM', 'disconnect']) process.once(signal, () => process.exit(0));
process.on('message', () => process.send?.({ ...stream.counts(), stored: taken }));
process.stdout.write(`${port}\n`);
