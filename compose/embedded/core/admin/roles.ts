// Who asks on 8443, and what the roles of the core are.

import type { ClientCertificate, CoreCaller, CoreRole, UsersFile } from '../parts.ts';

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
