// The HOST service binding, Node's side: what a worker cannot do itself (files, raw TLS, containers, the health cache)
// as calls by name, with JSON in and out. Only what EXPOSED names can be called, only with the token of this host.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import { constantTimeEqual } from '@holdfast/kit/secret';
import type { Asset } from '../host/port.ts';
import { callSchema, EXPOSED, type ExposedPort, type Outcome, type WireAsset } from './host-calls.ts';
import type { NodeDeps } from './node-deps.ts';

type Method = (...args: unknown[]) => unknown;

/** Answers the calls of a worker. */
export function hostBinding(deps: NodeDeps, token: string): (request: Request) => Promise<Response> {
  const { disks, coreFiles, tls, hostNames, containers, configurationFiles } = deps.monitored;
  const assets = { read: async (name: string) => onTheWire(await deps.assets.read(name)) };
  const ports: Record<ExposedPort, object | undefined> = {
    directory: deps.directory,
    doors: deps.doors,
    signIns: deps.signIns,
    audit: deps.audit,
    core: deps.core,
    coreEnrollment: deps.coreEnrollment,
    coreDevices: deps.coreDevices,
    coreRetention: deps.coreRetention,
    retentionFiles: deps.retentionFiles,
    coreVacuum: deps.coreVacuum,
    coreNotices: deps.coreNotices,
    coreAuthority: deps.coreAuthority,
    adminGrants: deps.adminGrants,
    clientKeys: deps.clientKeys,
    bundles: deps.bundles,
    disks,
    coreFiles,
    tls,
    hostNames,
    containers,
    configurationFiles,
    health: deps.health,
    alerts: deps.alerts,
    smtp: deps.notify.email?.notifier,
    heartbeat: deps.heartbeat,
    jobStatistics: deps.jobStatistics,
    requests: deps.requests,
    process: deps.process,
    logFiles: deps.logFiles,
    assets,
  };

  return async function answer(request) {
    const given = request.headers.get('authorization') ?? '';
    if (!(await constantTimeEqual(given, `Bearer ${token}`)))
      return new Response('not the token of this host', { status: 403 });
    const call = callSchema.safeParse(await request.json().catch(() => undefined));
    const method = call.success ? methodOf(ports, call.data) : undefined;
    if (!call.success || method === undefined) return new Response('no such call', { status: 404 });
    return Response.json(await outcomeOf(() => method(...call.data.args)));
  };
}

function methodOf(
  ports: Record<ExposedPort, object | undefined>,
  call: { port: string; method: string },
): Method | undefined {
  if (!Object.hasOwn(EXPOSED, call.port)) return undefined;
  const port = call.port as ExposedPort;
  if (!(EXPOSED[port] as readonly string[]).includes(call.method)) return undefined;
  const target = ports[port] as Record<string, Method> | undefined;
  return target === undefined ? undefined : (...args) => target[call.method]?.(...args);
}

async function outcomeOf(call: () => unknown): Promise<Outcome> {
  try {
    return { value: await call() };
  } catch (error) {
    const code = error instanceof AppError ? { code: error.code } : {};
    return { error: { ...code, message: messageOf(error) } };
  }
}

function onTheWire(asset: Asset | undefined): WireAsset | undefined {
  return asset && { ...asset, body: Buffer.from(asset.body).toString('base64') };
}
