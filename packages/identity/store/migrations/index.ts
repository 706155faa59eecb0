// Lists the migrations of the provider's database in order. To add one: a new file and a line here.
// Never change an old one.

import identity from './0001-identity.sql';

/** The same shape as the migrations of the stack's state. */
export interface IdentityMigration {
  /** Counts from 1 without gaps. */
  number: number;
  name: string;
  sql: string;
}

export const IDENTITY_MIGRATIONS: readonly IdentityMigration[] = [{ number: 1, name: 'identity', sql: identity }];
