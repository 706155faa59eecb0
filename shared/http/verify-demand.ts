// What /auth/verify is asked for, by its query: a role, or the core base. Anything that is not understood is refused: a
// demand with a slip of the pen would else let everybody in.

import { AppError } from '../domain/app-error.ts';

export type VerifyDemand = { base: 'core' } | { base: 'web'; role: 'viewer' | 'admin' | undefined };

/** Throws `malformed` for names and values that are unknown or given twice, and for a role together with the core base. */
export function verifyDemandOf(query: URLSearchParams): VerifyDemand {
  for (const name of query.keys()) {
    if (name !== 'role' && name !== 'base')
      throw new AppError('malformed', `There is no parameter "${shown(name)}" here. Use role, or base, or none.`);
    if (query.getAll(name).length > 1) throw new AppError('malformed', `Give the parameter ${name} once.`);
  }
  const role = query.get('role') ?? undefined;
  const base = query.get('base') ?? undefined;
  if (base !== undefined && base !== 'core')
    throw new AppError('malformed', `base is "${shown(base)}"; it can only be core, or be left out.`);
  if (role !== undefined && role !== 'viewer' && role !== 'admin')
    throw new AppError('malformed', `role is "${shown(role)}"; it can be viewer or admin, or be left out.`);
  if (base === undefined) return { base: 'web', role };
  if (role === undefined) return { base };
  throw new AppError('malformed', 'With base=core no role can be demanded: the core judges rights by itself.');
}

function shown(text: string): string {
  return text.slice(0, 50);
}
