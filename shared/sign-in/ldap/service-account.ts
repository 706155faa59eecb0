// Binds the directory's service account on connections, without hammering a directory that refuses
// it.

import { PresenceFilter } from 'ldapts';
import { AppError } from '@holdfast/kit/app-error';
import type { DirectoryBase } from '@holdfast/kit/directory';
import type { Log } from '@holdfast/kit/log';
import type { Secret } from '@holdfast/kit/secret';
import { answerFailure, isRefusal, UNWILLING } from './answers.ts';
import { type LdapConnection, ldapServerOf, openLdap } from './connection.ts';

export interface LdapServiceAccountOptions {
  username: string;
  password: Secret;
  dn: (base: DirectoryBase) => string;
  /** The directory for messages: `The directory at ldap://...`. */
  called: string;
  log: Log;
}

interface Refusal {
  code: number;
  at: number;
  /** Until it is tried again. */
  pauseMs: number;
}

/**
 * Repeated refusals would trigger the directory's lockout and block every sign-in through us: ten
 * within five minutes do, and these are nine. But at the first start of a stack the account gets
 * its password a few seconds after we have asked.
 */
const FIRST_PAUSE_MS = 2_000;
const MAX_PAUSE_MS = 60_000;
const LOG_PAUSE_MS = 60_000;

export class LdapServiceAccount {
  readonly #options: LdapServiceAccountOptions;
  readonly #accepted = new Set<DirectoryBase>();
  readonly #refusals = new Map<DirectoryBase, Refusal>();
  readonly #underWay = new Map<DirectoryBase, Promise<unknown>>();
  readonly #reportedAt = new Map<DirectoryBase, number>();

  constructor(options: LdapServiceAccountOptions) {
    this.#options = options;
  }

  async #send(connection: LdapConnection, base: DirectoryBase, until: number): Promise<void> {
    const text = this.#options.password.reveal();
    const code = text === '' ? UNWILLING : await connection.bind(this.#options.dn(base), text, until);
    if (code === 0) {
      this.#accepted.add(base);
      this.#refusals.delete(base);
      return;
    }
    if (!isRefusal(code)) throw answerFailure(this.#options.called, code, 'the bind of its service account');
    this.#accepted.delete(base);
    const pauseMs = Math.min(MAX_PAUSE_MS, 2 * (this.#refusals.get(base)?.pauseMs ?? FIRST_PAUSE_MS / 2));
    this.#refusals.set(base, { code, at: performance.now(), pauseMs });
    this.#tell(base, code);
  }

  /**
   * The first bind of a connection that is used for others: the embedded directory treats later
   * binds as made on their behalf, and its lockout does not count them. Rule
   * `signInWithoutIntroduction`: when the account is refused, people sign in without it. Until the
   * account is known to be good, one connection tries it and the others wait for the result.
   */
  async introduce(connection: LdapConnection, base: DirectoryBase, until: number): Promise<void> {
    while (!this.#accepted.has(base) && this.#underWay.has(base)) await this.#underWay.get(base);
    if (this.#refusedLately(base) !== undefined) return;
    if (this.#accepted.has(base)) return this.#send(connection, base, until);
    const sent = this.#send(connection, base, until);
    this.#underWay.set(
      base,
      sent.catch(() => {}),
    );
    try {
      await sent;
    } finally {
      this.#underWay.delete(base);
    }
  }

  #refusedLately(base: DirectoryBase): Refusal | undefined {
    const refusal = this.#refusals.get(base);
    return refusal !== undefined && performance.now() - refusal.at < refusal.pauseMs ? refusal : undefined;
  }

  #tell(base: DirectoryBase, code: number): void {
    const last = this.#reportedAt.get(base);
    if (last !== undefined && performance.now() - last < LOG_PAUSE_MS) return;
    this.#reportedAt.set(base, performance.now());
    this.#options.log.warn('directory.service_account_refused', {
      base,
      account: this.#options.username,
      result: code,
    });
  }

  #demand(base: DirectoryBase): void {
    const refusal = this.#refusals.get(base);
    if (refusal === undefined) return;
    const what = `refuses the service account ${this.#options.username} on the ${base} base (result ${refusal.code})`;
    throw new AppError('upstream', `${this.#options.called} ${what}. Remedy: check LDAP_BIND_PASSWORD.`);
  }

  /**
   * Binds unless the connection is already bound; rejects with an AppError `upstream` when the
   * account is refused.
   */
  async require(connection: LdapConnection, base: DirectoryBase, until: number): Promise<void> {
    if (connection.identity === this.#options.dn(base)) return;
    await this.introduce(connection, base, until);
    this.#demand(base);
  }

  /** The same for a probe: asks even a directory that has just refused. */
  async prove(connection: LdapConnection, base: DirectoryBase, until: number): Promise<void> {
    await this.#send(connection, base, until);
    this.#demand(base);
  }
}

/**
 * A realistic bind: the account signs in and finds its own entry. A directory that has just started
 * may answer and be empty.
 */
export interface TestBind {
  /** `ldap://host:port` or `ldaps://…` */
  url: string;
  /** Trusted in addition to the system's authorities, if the file exists. */
  caFile: string;
  dn: string;
  password: Secret;
  withinMs: number;
}

const MAX_BYTES = 1024 * 1024;
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
          code === INVALID_CREDENTIALS ? `refuses the password of ${dn}` : `answered the bind of ${dn} with ${code}`,
        );
      const filter = new PresenceFilter({ attribute: 'objectClass' });
      const found = await connection.search(
        dn,
        { base: dn, scope: 'base', filter, attributes: ['cn', 'memberOf'], maxEntries: 2, maxBytes: MAX_BYTES },
        until,
      );
      if (found.code !== 0 || found.entries.length !== 1) throw new Error(`does not return the own entry of ${dn}`);
    } finally {
      connection.close();
    }
  } catch (error) {
    throw new Error(`the directory ${place} ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}
