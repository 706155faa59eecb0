// Signs people in over LDAP with a bind under their own name, and reads their own entry as
// themselves.

import { AndFilter, EqualityFilter, PresenceFilter } from 'ldapts';
import { AppError } from '@holdfast/kit/app-error';
import type { Directory, DirectoryBase, DirectoryEntry } from '@holdfast/kit/directory';
import { escapeNameValue, parseDistinguishedName } from '@holdfast/kit/distinguished-name';
import type { Log } from '@holdfast/kit/log';
import type { Secret } from '@holdfast/kit/secret';
import { answerFailure, INSUFFICIENT, isRefusal, type LdapEntry, NO_SUCH_OBJECT } from './answers.ts';
import { type LdapConnection, LdapFailure, type LdapServer, ldapServerOf, openLdap } from './connection.ts';
import { LdapConnections } from './connections.ts';
import { type LdapGroup, leafName, searchGroups } from './groups.ts';
import { LdapServiceAccount } from './service-account.ts';

export interface LdapDirectoryOptions {
  /** `ldap://host:port` or `ldaps://host:port`; the certificate is always verified. */
  url: string;
  coreBase: string;
  webBase: string;
  /** Exists on both bases as `cn=<username>,ou=users,<base>`. */
  serviceAccount: { username: string; password: Secret };
  /** Trusted in addition to the system's authorities, if the file exists. */
  tlsCaFile?: string | undefined;
  log: Log;
  /** Pooled connections, of both bases together. */
  maxConnections?: number;
  /** For each call as a whole, including the wait. */
  withinMs?: number;
  /** How long an unused connection is kept. */
  idleMs?: number;
}

const MAX_WAITING = 256;
const MAX_NAME_CHARACTERS = 150;
const MAX_PASSWORD_BYTES = 1024;
/** A person with ten thousand groups, a group with a hundred thousand members. */
const USER_LIMITS = { maxEntries: 1, maxBytes: 1024 * 1024 };
const GROUP_LIMITS = { maxEntries: 20, maxBytes: 8 * 1024 * 1024 };

/** The directory, and the queries of the core beyond the port. */
export class LdapDirectory implements Directory {
  readonly #options: LdapDirectoryOptions;
  readonly #withinMs: NonNullable<LdapDirectoryOptions['withinMs']>;
  readonly #server: LdapServer;
  readonly #called: string;
  readonly #bases: Record<DirectoryBase, string>;
  readonly #service: LdapServiceAccount;
  readonly #connections: LdapConnections<DirectoryBase>;

  constructor(options: LdapDirectoryOptions) {
    this.#options = options;
    this.#withinMs = options.withinMs ?? 5000;
    this.#server = ldapServerOf(options.url, options.tlsCaFile);
    const { protocol, hostname } = new URL(options.url);
    this.#called = `The directory at ${protocol}//${hostname}:${this.#server.port}`;
    this.#bases = { core: options.coreBase, web: options.webBase };
    this.#service = new LdapServiceAccount({
      ...options.serviceAccount,
      dn: (base) => this.#serviceName(base),
      called: this.#called,
      log: options.log,
    });
    this.#connections = new LdapConnections<DirectoryBase>({
      open: (base, until) => this.#openIntroduced(base, until),
      maxConnections: options.maxConnections ?? 8,
      maxWaiting: MAX_WAITING,
      idleMs: options.idleMs ?? 60_000,
    });
  }

  #serviceName(base: DirectoryBase): string {
    return this.#userName(base, this.#options.serviceAccount.username);
  }

  #userName(base: DirectoryBase, username: string): string {
    return `cn=${escapeNameValue(username)},ou=users,${this.#bases[base]}`;
  }

  async #explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof LdapFailure)) throw error;
      throw new AppError(error.code, `${this.#called} ${error.message}`, { cause: error });
    }
  }

  async #openIntroduced(base: DirectoryBase, until: number): Promise<LdapConnection> {
    const connection = await openLdap(this.#server, until);
    try {
      await this.#service.introduce(connection, base, until);
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  async #readUser(connection: LdapConnection, base: DirectoryBase, as: string, username: string, until: number) {
    const dn = this.#userName(base, username);
    const attributes = ['cn', 'memberOf', 'ak-active'];
    const filter = new PresenceFilter({ attribute: 'objectClass' });
    const found = await connection.search(as, { base: dn, scope: 'base', filter, attributes, ...USER_LIMITS }, until);
    return { code: found.code, entry: found.entries[0] };
  }

  async signIn(base: DirectoryBase, username: string, password: string): Promise<DirectoryEntry | undefined> {
    if (!canBeName(username) || !canBePassword(password)) return undefined;
    const until = performance.now() + this.#withinMs;
    return this.#explained(() =>
      this.#connections.use(base, until, async (connection) => {
        const dn = this.#userName(base, username);
        const bindAndRead = async () => {
          const bound = await connection.bind(dn, password, until);
          if (isRefusal(bound)) return undefined;
          if (bound !== 0) throw answerFailure(this.#called, bound, 'a sign-in');
          return this.#readUser(connection, base, dn, username, until);
        };
        const first = await bindAndRead();
        // As in `find`: another connection of the same user may have ended between the two.
        const read = first?.code === INSUFFICIENT ? await bindAndRead() : first;
        if (read === undefined) return undefined;
        const { code, entry } = read;
        if (code !== 0) throw answerFailure(this.#called, code, "reading a user's own entry");
        if (entry === undefined)
          throw new AppError('upstream', `${this.#called} accepted a sign-in but does not show the user's own entry`);
        const found = described(entry, username, this.#bases[base]);
        return found?.isActive === true ? found : undefined;
      }),
    );
  }

  async find(username: string): Promise<DirectoryEntry | undefined> {
    if (!canBeName(username)) return undefined;
    const until = performance.now() + this.#withinMs;
    return this.#explained(() =>
      this.#connections.use('core', until, async (connection) => {
        await this.#service.require(connection, 'core', until);
        const read = () => this.#readUser(connection, 'core', this.#serviceName('core'), username, until);
        let { code, entry } = await read();
        if (code === INSUFFICIENT) {
          // authentik tracks the bound user by name: closing any connection of that name makes it
          // forget this one.
          await this.#service.prove(connection, 'core', until);
          ({ code, entry } = await read());
        }
        if (code === NO_SUCH_OBJECT) return undefined;
        if (code !== 0) throw answerFailure(this.#called, code, "the service account's search for a user");
        return entry && described(entry, username, this.#bases.core);
      }),
    );
  }

  async probe(base: DirectoryBase, group: string): Promise<number | undefined> {
    const until = performance.now() + this.#withinMs;
    return this.#explained(async () => {
      const connection = await openLdap(this.#server, until);
      try {
        await this.#service.prove(connection, base, until);
        return await this.#countMembers(connection, base, group, until);
      } finally {
        connection.close();
      }
    });
  }

  async #countMembers(
    connection: LdapConnection,
    base: DirectoryBase,
    group: string,
    until: number,
  ): Promise<number | undefined> {
    const kind = new EqualityFilter({ attribute: 'objectClass', value: 'groupOfNames' });
    const filter = new AndFilter({ filters: [kind, new EqualityFilter({ attribute: 'cn', value: group })] });
    const search = { base: `ou=groups,${this.#bases[base]}`, scope: 'sub', filter, ...GROUP_LIMITS } as const;
    const { code, entries } = await connection.search(
      this.#serviceName(base),
      { ...search, attributes: ['cn', 'member'] },
      until,
    );
    if (code === NO_SUCH_OBJECT) return undefined;
    if (code !== 0) throw answerFailure(this.#called, code, 'the search for a group');
    const found = entries.find((entry) => nameIn(entry, group) !== undefined);
    return found && new Set(found.attributes.get('member')).size;
  }

  /**
   * Groups of the core base whose name contains the text in any case, sorted by name. Errors as of
   * `find`.
   */
  async groups(containing: string): Promise<LdapGroup[]> {
    const until = performance.now() + this.#withinMs;
    const place = {
      base: this.#bases.core,
      as: this.#serviceName('core'),
      service: this.#service,
      called: this.#called,
    };
    return this.#explained(() =>
      this.#connections.use('core', until, (connection) => searchGroups(connection, containing, place, until)),
    );
  }

  /** Ends after the work that is running. */
  close(): Promise<void> {
    return this.#connections.close();
  }
}

function canBeName(text: string): boolean {
  return text !== '' && text.length <= MAX_NAME_CHARACTERS && !text.includes('\0') && text.isWellFormed();
}

/** An empty password would be an anonymous bind, which some directories accept as a success. */
function canBePassword(text: string): boolean {
  return text !== '' && Buffer.byteLength(text) <= MAX_PASSWORD_BYTES && !text.includes('\0') && text.isWellFormed();
}

/**
 * authentik also returns people it refuses; a directory without the attribute has no such people.
 */
function isActive({ attributes }: LdapEntry): boolean {
  return attributes.get('ak-active')?.[0]?.toUpperCase() !== 'FALSE';
}

/**
 * The name as the entry spells it, if it is that name: a directory may treat spaces or other
 * letters as equal.
 */
function nameIn({ attributes }: LdapEntry, name: string): string | undefined {
  return attributes.get('cn')?.find((value) => value.toLowerCase() === name.toLowerCase());
}

function described(entry: LdapEntry, request: string, base: string): DirectoryEntry | undefined {
  const username = nameIn(entry, request);
  if (username === undefined) return undefined;
  const place = parseDistinguishedName(`ou=groups,${base}`) ?? [];
  const names = (entry.attributes.get('memberof') ?? []).map((name) => leafName(name, place));
  const known = new Map(names.filter((name) => name !== undefined).map((name) => [name.toLowerCase(), name]));
  return { dn: entry.dn, username, isActive: isActive(entry), groups: [...known.values()] };
}
