// A bind as it is done in earnest: the account signs in and finds its own entry. A directory that has just come up may answer and
// be empty.

import { PresenceFilter } from 'ldapts';
import type { Secret } from '../domain/secret.ts';
import { ldapServerOf, openLdap } from './ldap-connection.ts';

export interface TestBind {
  /** `ldap://host:port` or `ldaps://…` */
  url: string;
  /** Trusted beside the system's authorities, if the file exists. */
  caFile: string;
  dn: string;
  password: Secret;
  withinMs: number;
}

const MOST_BYTES = 1024 * 1024;
const INVALID_CREDENTIALS = 49;

/** Rejects with a sentence that names the directory, never with the password. */
export async function testBind({ url, caFile, dn, password, withinMs }: TestBind): Promise<void> {
  const until = performance.now() + withinMs;
  const server = ldapServerOf(url, caFile);
  const place = `${server.host}:${server.port}`;
  try {
    const connection = await openLdap(server, until);
    try {
      const code = await connection.bind(dn, password.reveal(), until);
      if (code !== 0)
        throw new Error(
          code === INVALID_CREDENTIALS ? `refuses the password of ${dn}` : `answers the bind of ${dn} with ${code}`,
        );
      const filter = new PresenceFilter({ attribute: 'objectClass' });
      const found = await connection.search(
        dn,
        { base: dn, scope: 'base', filter, attributes: ['cn', 'memberOf'], mostEntries: 2, mostBytes: MOST_BYTES },
        until,
      );
      if (found.code !== 0 || found.entries.length !== 1) throw new Error(`does not show ${dn} its own entry`);
    } finally {
      connection.close();
    }
  } catch (error) {
    throw new Error(`the directory ${place} ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}
