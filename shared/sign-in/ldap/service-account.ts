// The service account of the directory: proves it on connections, and does not hammer a directory that refuses it.

import { PresenceFilter } from 'ldapts';
import { AppError } from '@holdfast/kit/app-error';
import type { DirectoryBase } from '@holdfast/kit/directory';
import type { Log } from '@holdfast/kit/log';
import type { Secret } from '@holdfast/kit/secret';
import { type LdapConnection, ldapServerOf, openLdap } from './connection.ts';
import { answerFailure, isRefusal, UNWILLING } from './results.ts';

export interface LdapServiceAccountOptions {
  username: string;
  password: Secret;
  dn: (base: DirectoryBase) => string;
  /** The directory in words: `The directory at ldap://...`. */
  called: string;
  log: Log;
}

export interface LdapServiceAccount {
  /**
   * The first bind of a connection that is used for others: the embedded directory takes its later binds as made on
   * behalf of those, and its lock-out does not count them. Rule `signInWithoutIntroduction`: when the account is refused,
   * people sign in without it.
   */
  introduce(connection: LdapConnection, base: DirectoryBase, until: number): Promise<void>;
  /** Binds unless the connection is bound so; rejects with an AppError `upstream` when the account is refused. */
  require(connection: LdapConnection, base: DirectoryBase, until: number): Promise<void>;
  /** The same for a probe: asks even a directory that has just refused. */
  prove(connection: LdapConnection, base: DirectoryBase, until: number): Promise<void>;
}

interface Refusal {
  code: number;
  at: number;
}

/** Many refusals in a row would make the directory's lock-out close its door to everybody who signs in through us. */
const PAUSE_MS = 120_000;
const LOG_PAUSE_MS = 60_000;

export function ldapServiceAccount(options: LdapServiceAccountOptions): LdapServiceAccount {
  const { username, password, dn, called, log } = options;
  const accepted = new Set<DirectoryBase>();
  const refusals = new Map<DirectoryBase, Refusal>();
  const underWay = new Map<DirectoryBase, Promise<unknown>>();
  const toldAt = new Map<DirectoryBase, number>();

  async function send(connection: LdapConnection, base: DirectoryBase, until: number): Promise<void> {
    const text = password.reveal();
    const code = text === '' ? UNWILLING : await connection.bind(dn(base), text, until);
    if (code === 0) {
      accepted.add(base);
      refusals.delete(base);
      return;
    }
    if (!isRefusal(code)) throw answerFailure(called, code, 'the bind of its service account');
    accepted.delete(base);
    refusals.set(base, { code, at: performance.now() });
    tell(base, code);
  }

  /** As long as it is not known that the account is good, one connection asks and the others wait for its answer. */
  async function bind(connection: LdapConnection, base: DirectoryBase, until: number): Promise<void> {
    while (!accepted.has(base) && underWay.has(base)) await underWay.get(base);
    if (refusedLately(base) !== undefined) return;
    if (accepted.has(base)) return send(connection, base, until);
    const sent = send(connection, base, until);
    underWay.set(
      base,
      sent.catch(() => {}),
    );
    try {
      await sent;
    } finally {
      underWay.delete(base);
    }
  }

  function refusedLately(base: DirectoryBase): Refusal | undefined {
    const refusal = refusals.get(base);
    return refusal !== undefined && performance.now() - refusal.at < PAUSE_MS ? refusal : undefined;
  }

  function tell(base: DirectoryBase, code: number): void {
    const last = toldAt.get(base);
    if (last !== undefined && performance.now() - last < LOG_PAUSE_MS) return;
    toldAt.set(base, performance.now());
    log.warn('directory.service_account_refused', { base, account: username, result: code });
  }

  function demand(base: DirectoryBase): void {
    const refusal = refusals.get(base);
    if (refusal === undefined) return;
    const what = `refuses the service account ${username} on the ${base} base (result ${refusal.code})`;
    throw new AppError('upstream', `${called} ${what}. Remedy: check LDAP_BIND_PASSWORD.`);
  }

  return {
    introduce: bind,

    async require(connection, base, until) {
      if (connection.identity === dn(base)) return;
      await bind(connection, base, until);
      demand(base);
    },

    async prove(connection, base, until) {
      await send(connection, base, until);
      demand(base);
    },
  };
}

// A bind as it is done in earnest: the account signs in and finds its own entry. A directory that has just come up may answer and
// be empty.

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
