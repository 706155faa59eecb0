// A stack with several core nodes, for tests: people with certificates, devices on its nodes, and a
// node more whose connections can be cut.

import { execFileSync, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type CoT from '@tak-ps/node-cot';
import { CORE_VARIABLE, type CoreHandover } from '@holdfast/core/handover';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { httpIdentity } from '../../../shared/identity/authentik/http.ts';
import { exclusiveByDatabase } from '../../../shared/identity/exclusive.ts';
import type { Identity } from '../../../shared/identity/port.ts';
import { type CuttingProxy, cuttingProxy } from '../../support/cutting-proxy.ts';
import { coreOf, type CorePlace, type Device, enroll, workDirectory } from './core-client.ts';
import { cleanEnvironment, eventually, home, secretsOf, type TestStack } from './embedded.ts';
import { letIn, position, type StreamDevice, streamDevice } from './stream-device.ts';

export type Person = Device & { accountId: number };

export interface ClusterWorld {
  stack: TestStack;
  nodes: [CorePlace, CorePlace, CorePlace];
  work: string;
  identity: Identity;
}

export function hasNats(): boolean {
  try {
    execFileSync('sh', ['-c', `PATH=$PATH:/usr/sbin command -v nats-server`]);
    return true;
  } catch {
    return false;
  }
}

/** Of a stack that runs with three nodes. */
export function clusterWorld(stack: TestStack): ClusterWorld {
  const places = stack.file().core.nodes?.map((node) => ({ ...coreOf(stack), ...node })) ?? [];
  const state = new Secret(stack.file().state_database);
  const lock = { name: 'test', called: 'our database', variable: 'its URL' };
  const identity = httpIdentity({
    url: `http://127.0.0.1:${9000 + stack.offset}`,
    token: new Secret(secretsOf(stack)['IDENTITY_TOKEN'] ?? ''),
    fetch,
    exclusive: exclusiveByDatabase(keptDatabase(state, lock)),
  });
  return { stack, nodes: places as ClusterWorld['nodes'], work: workDirectory(stack), identity };
}

/** A person of these groups with a certificate from the first node. */
export async function enrolled(
  { identity, nodes, work }: ClusterWorld,
  username: string,
  ...groups: string[]
): Promise<Person> {
  const { id: accountId } = await identity.accounts.create({ username, name: username });
  for (const name of groups) {
    const group = (await identity.groups.named(`core_${name}`)) ?? (await identity.groups.create(`core_${name}`));
    await identity.groups.addMember(group.id, accountId);
  }
  const description = 'for its first certificate';
  const app = { identifier: `enroll-${username}`, accountId, description, expiresAt: null };
  const { key } = await identity.appPasswords.create(app);
  return { ...(await enroll(nodes[0], work, username, key)), accountId };
}

/** Connected to that node, let in, with a report of its own. */
export async function open(place: CorePlace, who: Device, callsign: string): Promise<StreamDevice> {
  const device = await letIn(place, who, callsign);
  device.report();
  return device;
}

/** It is closed, and was told nothing. */
export async function isRefused(place: CorePlace, who: Device, callsign: string): Promise<void> {
  const device = await streamDevice(place, who, callsign);
  await eventually(`${callsign} is refused`, () => !device.isOpen);
  if (device.heard.length > 0) throw new Error(`${callsign} has heard ${device.heard.length} events`);
}

export const marker = (uid: string): CoT => {
  const event = position(uid, uid, 1);
  event.raw.event._attributes.type = 'b-m-p-s-m';
  return event;
};
export const isUid =
  (uid: string) =>
  (event: CoT): boolean =>
    event.uid() === uid;
export const count = (device: StreamDevice, uid: string): number => device.heard.filter(isUid(uid)).length;

/** Says things until the other one hears one: how long a failure was felt. */
export async function untilHeard(from: () => StreamDevice, to: () => StreamDevice, name: string): Promise<void> {
  let n = 0;
  const hasHeard = (): boolean => {
    from().send(marker(`${name}-${n++}`));
    return to().heard.some((event) => event.uid().startsWith(`${name}-`));
  };
  await eventually(`${name} is heard`, hasHeard, 20_000);
}

export async function isBack(stack: TestStack, role: string, before: number): Promise<void> {
  await eventually(`${role} is back`, () => stack.pid(role) !== before && stack.pid(role) !== 0, 30_000);
}

/** Kills a process, and keeps its successor from listening until the result is called; for a minute at most. */
export async function holdDown(stack: TestStack, role: string): Promise<() => void> {
  const before = stack.pid(role);
  process.kill(before, 'SIGKILL');
  let next = 0;
  await eventually(`${role} starts again`, () => {
    next = stack.pid(role);
    if (next === before || next === 0) return false;
    return process.kill(next, 'SIGSTOP');
  });
  return () => void process.kill(next, 'SIGCONT');
}

/** One more node of the cluster, which reaches NATS and the database through proxies. */
export interface CutNode {
  place: CorePlace;
  pid: number;
  nats: CuttingProxy;
  database: CuttingProxy;
  /** Its log so far, in lines. */
  log: () => string[];
  stop: () => Promise<void>;
}

const PORTS_APART = 10;

export async function startCutNode({ stack, nodes }: ClusterWorld): Promise<CutNode> {
  const environment = readFileSync(`/proc/${stack.pid('core-3')}/environ`, 'utf8').split('\0');
  const entry = environment.find((text) => text.startsWith(`${CORE_VARIABLE}=`)) ?? '';
  const handover = JSON.parse(entry.slice(CORE_VARIABLE.length + 1)) as CoreHandover;
  if (handover.cluster === undefined) throw new Error('core-3 is no node of a cluster');
  const [nats, database] = [await cuttingProxy(handover.cluster.nats.url), await cuttingProxy(handover.databaseUrl)];
  const own: CoreHandover = {
    ...handover,
    databaseUrl: database.url,
    apiPort: handover.apiPort + PORTS_APART,
    enrollmentPort: handover.enrollmentPort + PORTS_APART,
    streamingPort: handover.streamingPort + PORTS_APART,
    cluster: {
      ...handover.cluster,
      node: 'core-4',
      index: 3,
      directory: join(stack.data, 'core/nodes/core-4'),
      nats: { ...handover.cluster.nats, url: nats.url },
    },
  };
  const logFile = join(stack.data, 'core-4.log');
  const output = openSync(logFile, 'w');
  // The channel ends it with this process.
  const child = spawn(process.execPath, [join(home, 'dist/core.js')], {
    env: cleanEnvironment({ [CORE_VARIABLE]: JSON.stringify(own) }),
    stdio: ['ignore', output, output, 'ipc'],
  });
  closeSync(output);
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const log = (): string[] => readFileSync(logFile, 'utf8').trimEnd().split('\n');
  await eventually('core-4 listens', () => log().some((line) => line.includes('core.listening')), 30_000);
  const place = {
    ...nodes[2],
    api: `https://127.0.0.1:${own.apiPort}`,
    enrollment: `https://127.0.0.1:${own.enrollmentPort}`,
    streaming: `tls://127.0.0.1:${own.streamingPort}`,
  };
  return {
    place,
    pid: child.pid ?? 0,
    nats,
    database,
    log,
    async stop() {
      child.kill('SIGTERM');
      await ended;
      await Promise.all([nats.close(), database.close()]);
    },
  };
}
