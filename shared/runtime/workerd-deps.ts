// Everything that functions and jobs need, in workerd: databases by a fresh connection for each
// piece of work, the rest from the Node host.

import { z } from 'zod';
import { AppError } from '@holdfast/kit/app-error';
import { type DatabaseOptions, freshConnections } from '@holdfast/kit/kept-database';
import type { Log } from '@holdfast/kit/log';
import type { Secret } from '@holdfast/kit/secret';
import { bytesOfBase64 } from '@holdfast/kit/text';
import type { Notifier } from '../alerts/port.ts';
import type { Asset, Assets } from '../host/port.ts';
import type { Deps } from '../http/deps.ts';
import { exclusiveByDatabase } from '../identity/exclusive.ts';
import type { Exclusive } from '../identity/port.ts';
import { handoverSchema, loadSettings } from '../settings/load.ts';
import type { Thresholds } from '../settings/status.ts';
import {
  CORE,
  CORE_LOCK,
  DEVICE_LOCK,
  EXCLUSIVE,
  FEED_LOCK,
  FIGURES,
  isMethod,
  PEOPLE_LOCK,
  sharedDeps,
  STATE,
} from './both-hosts.ts';
import type { Outcome, WireAsset } from './host-binding.ts';
import type { HostPorts } from './node-deps.ts';

/**
 * The HOST service binding, the worker's side: ports whose methods are calls to the Node host.
 * A service binding of workerd.
 */
export interface ServiceBinding {
  fetch(url: string, init: RequestInit): Promise<Response>;
}

export type HostCall = (port: string, method: string, args: unknown[]) => Promise<unknown>;

/** Calls through the binding; rethrows what the host's method threw. */
export function hostCall(host: ServiceBinding, token: string): HostCall {
  return async function call(port, method, args) {
    const response = await host.fetch('http://host/', {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ port, method, args: withoutLast(args) }),
    });
    if (!response.ok) throw new Error(`the host answered ${response.status} to ${port}.${method}`);
    const outcome = (await response.json()) as Outcome;
    if (!('error' in outcome)) return outcome.value;
    const { code, message } = outcome.error;
    throw code === undefined ? new Error(message) : new AppError(code, message);
  };
}

/** JSON would make null of what was left out. */
function withoutLast(args: unknown[]): unknown[] {
  return args.slice(0, args.findLastIndex((each) => each !== undefined) + 1);
}

/** A port of the host. */
export function hostPort(call: HostCall, port: string): object {
  const methodOf =
    (method: string) =>
    async (...args: unknown[]) =>
      call(port, method, args);
  return new Proxy({}, { get: (_, name) => (isMethod(name) ? methodOf(name) : undefined) });
}

/** Those that the host has registered. */
function hostPorts(call: HostCall, names: readonly string[]): HostPorts {
  const ports = names.map((name) => [name, hostPort(call, name)] as const);
  return { ...Object.fromEntries(ports), assets: hostAssets(call) } as unknown as HostPorts;
}

function hostAssets(call: HostCall): Assets {
  return {
    async read(name): Promise<Asset | undefined> {
      const asset = (await call('assets', 'read', [name])) as WireAsset | undefined;
      return asset && { ...asset, body: bytesOfBase64(asset.body) };
    },
  };
}

/** The bindings of the worker, as packages/stack/dev-workerd.ts sets them. */
export interface WorkerEnv {
  HOST: ServiceBinding;
  /** Proves the host to the worker and the worker to the host. */
  HOST_TOKEN: string;
  /** JSON of WorkerFacts. */
  FACTS: string;
}

const factsSchema = z.object({
  handover: handoverSchema,
  startedAt: z.iso.datetime(),
  nodeVersion: z.string(),
  timeZone: z.string(),
  thresholds: z.custom<Thresholds>(),
  /** Of the host, by their names. */
  ports: z.array(z.string()),
});

export type WorkerFacts = z.infer<typeof factsSchema>;

export function workerdDeps(env: WorkerEnv): Deps {
  const {
    handover,
    startedAt,
    nodeVersion,
    timeZone,
    thresholds,
    ports: names,
  } = factsSchema.parse(JSON.parse(env.FACTS));
  const loaded = loadSettings(handover.layers, handover.mode);
  const { DATABASE_URL: stateUrl, CORE_DATABASE_URL: coreUrl } = loaded.settings;
  const uncoded = 'connection';
  const call = hostCall(env.HOST, env.HOST_TOKEN);
  const connections = (url: Secret | undefined, place: DatabaseOptions) => freshConnections(url, { ...place, uncoded });
  const lock = (place: DatabaseOptions): Exclusive =>
    exclusiveByDatabase(connections(stateUrl, place), { queued: false });
  const shared = sharedDeps({
    startedAt: new Date(startedAt),
    loaded,
    thresholds,
    listen: handover.tls?.address,
    mode: handover.mode,
    nodeVersion,
    timeZone,
    figures: connections(coreUrl, FIGURES),
    core: { run: connections(coreUrl, CORE) },
    state: connections(stateUrl, STATE),
    exclusive: lock(EXCLUSIVE),
    smtp: () => hostPort(call, 'smtp') as Notifier,
  });
  const ports = hostPorts(call, names);
  return {
    ...shared,
    ...ports,
    monitored: { ...shared.monitored, ...ports },
    log: consoleLog(),
    peopleLock: lock(PEOPLE_LOCK),
    deviceLock: lock(DEVICE_LOCK),
    feedLock: lock(FEED_LOCK),
    coreLock: lock(CORE_LOCK),
    together: (_, work) => work(),
  };
}

/** One line per event at once: nothing may run after the request. */
function consoleLog(): Log {
  const line =
    (level: string): Log['info'] =>
    (event, fields = {}) => {
      console.log(JSON.stringify({ time: new Date().toISOString(), level, role: 'worker', event, ...fields }));
    };
  return { info: line('info'), warn: line('warn'), error: line('error') };
}
