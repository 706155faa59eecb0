// Provides the building blocks of admin API routes: path with handlers, caller, limited bodies and
// queries.

import type { Context } from 'hono';
import type { z } from 'zod';
import { readBody } from '@holdfast/kit/body';
import type { ClientCertificate, CoreCaller, CoreConnection, CoreRole, UsersFile } from '../model/parts.ts';
import { CoreFault, PageFault } from './answers.ts';

export interface AdminEnv {
  Bindings: { connection: CoreConnection; caller: CoreCaller };
}
export type AdminContext = Context<AdminEnv>;

export const METHODS = ['GET', 'POST', 'PUT', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

/** What is done on one path. */
export type Handlers = Partial<Record<Method, (c: AdminContext) => Promise<Response> | Response>>;

export interface AdminRoute {
  path: string;
  handlers: Handlers;
}

export const CORE_ROLES = [
  'ROLE_ADMIN',
  'ROLE_READONLY',
  'ROLE_ANONYMOUS',
  'ROLE_NON_ADMIN_UI',
  'ROLE_WEBTAK',
] as const satisfies readonly CoreRole[];

/**
 * The caller behind a client certificate: the name is its CN, the right its entry in the users
 * file.
 */
export function callerOf(certificate: ClientCertificate, users: Pick<UsersFile, 'roleOf'>): CoreCaller {
  return { username: certificate.commonName, by: 'certificate', role: users.roleOf(certificate), certificate };
}

export function isAdmin({ role }: Pick<CoreCaller, 'role'>): boolean {
  return role === 'ROLE_ADMIN';
}

const MAX_ADMIN_BYTES = 4_000_000;
/** A few hundred groups with their descriptions; a device may send many at once. */
const MAX_DEVICE_BYTES = 256 * 1024;

/** Rejects with the page of 413, or of 400 for what is no UTF-8. */
export async function readText(
  c: AdminContext,
  maxBytes = isAdmin(c.env.caller) ? MAX_ADMIN_BYTES : MAX_DEVICE_BYTES,
): Promise<string> {
  const tooLarge = (): PageFault => new PageFault(413, `The body is too large: at most ${maxBytes} bytes are allowed.`);
  const bytes = await readBody(c.req.raw.body, maxBytes, tooLarge);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new PageFault(400, 'The body is not UTF-8.', { cause });
  }
}

/** JSON as the schema has it; else 400 that names the member. */
export async function readJson<T>(c: AdminContext, schema: z.ZodType<T>): Promise<T> {
  return jsonAs(schema, await readText(c));
}

/** The same of a text that was read. */
export function jsonAs<T>(schema: z.ZodType<T>, text: string): T {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (cause) {
    throw new PageFault(400, 'The body is not JSON.', { cause });
  }
  return checked(schema, given);
}

export function checked<T>(schema: z.ZodType<T>, given: unknown): T {
  const read = schema.safeParse(given);
  if (read.success) return read.data;
  const { path = [], message = '' } = read.error.issues[0] ?? {};
  throw invalid(`${path.length === 0 ? 'the body' : path.join('.')}: ${message}`);
}

export function invalid(why: string): CoreFault {
  return new CoreFault('invalid', `Invalid Request: ${why}`);
}

/** `true` in any case; everything else is false. */
export function flag(c: AdminContext, name: string): boolean {
  return c.req.query(name)?.toLowerCase() === 'true';
}

/** A whole number of the query, at least `least`; `usual` when it is not there. */
export function wholeNumber(c: AdminContext, name: string, usual: number, least: number): number {
  const text = c.req.query(name);
  if (text === undefined || text === '') return usual;
  const value = /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least) return value;
  throw invalid(`${name} must be a whole number from ${least}, not "${text}"`);
}

/** A text of the query that must be there. */
export function demanded(c: AdminContext, name: string): string {
  const text = c.req.query(name);
  if (text === undefined || text === '') throw invalid(`${name} is missing`);
  return text;
}
