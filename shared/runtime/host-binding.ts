// The HOST service binding, Node's side: what a worker cannot do itself (files, raw TLS,
// containers, the health cache) as calls by name, with JSON in and out. Only ports that the host
// has registered answer, only with the token of this host.

import { z } from 'zod';
import { AppError, type ErrorCode, messageOf } from '@holdfast/kit/app-error';
import { constantTimeEqual } from '@holdfast/kit/secret';
import type { Asset, Assets } from '../host/port.ts';
import { isMethod } from './both-hosts.ts';

/** Ports by their names; undefined where the settings leave one out. */
export type PortsByName = Readonly<Record<string, object | undefined>>;

const callSchema = z.object({ port: z.string(), method: z.string(), args: z.array(z.unknown()) });
type Call = z.infer<typeof callSchema>;

/** What comes back: a value (absent for undefined), or what was thrown. */
export type Outcome = { value?: unknown } | { error: { code?: ErrorCode; message: string } };

/** An asset on its way: Base64 instead of bytes. */
export type WireAsset = Omit<Asset, 'body'> & { body: string };

/** Answers the calls of a worker. */
export function hostBinding(
  ports: PortsByName & { assets?: Assets },
  token: string,
): (request: Request) => Promise<Response> {
  const { assets } = ports;
  const served: PortsByName = {
    ...ports,
    assets: assets && { read: async (name: string) => onTheWire(await assets.read(name)) },
  };

  return async function answer(request) {
    const given = request.headers.get('authorization') ?? '';
    if (!(await constantTimeEqual(given, `Bearer ${token}`)))
      return new Response('not the token of this host', { status: 403 });
    const call = callSchema.safeParse(await request.json().catch(() => undefined));
    const method = call.success ? methodOf(served, call.data) : undefined;
    if (method === undefined) return new Response('no such call', { status: 404 });
    return Response.json(await outcomeOf(method));
  };
}

/** The names that a worker has ports for. */
export function portNames(ports: PortsByName): string[] {
  return Object.keys(ports).filter((name) => ports[name] !== undefined);
}

function methodOf(ports: PortsByName, { port, method: name, args }: Call): (() => unknown) | undefined {
  const target = Object.hasOwn(ports, port) ? ports[port] : undefined;
  if (target === undefined || !isMethod(name) || name in Object.prototype) return undefined;
  const method: unknown = Reflect.get(target, name);
  return typeof method === 'function' ? () => Reflect.apply(method, target, args) as unknown : undefined;
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
