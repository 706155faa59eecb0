// What a file of routes of the admin API is made of and from.

import type { Context } from 'hono';
import type { ClientCertificate, CoreCaller, CoreConnection, CoreRole, UsersFile } from '../model/parts.ts';

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

// Who asks on 8443, and what the roles of the core are.

export const CORE_ROLES = [
  'ROLE_ADMIN',
  'ROLE_READONLY',
  'ROLE_ANONYMOUS',
  'ROLE_NON_ADMIN_UI',
  'ROLE_WEBTAK',
] as const satisfies readonly CoreRole[];

/** The caller behind a client certificate: the name is its CN, the right its entry in the users file. */
export function callerOf(certificate: ClientCertificate, users: Pick<UsersFile, 'roleOf'>): CoreCaller {
  return { username: certificate.commonName, by: 'certificate', role: users.roleOf(certificate), certificate };
}

export function isAdmin({ role }: Pick<CoreCaller, 'role'>): boolean {
  return role === 'ROLE_ADMIN';
}
