// The directory over LDAP: signs people in by a bind under their own name, and reads their own entry as themselves.

import { AndFilter, EqualityFilter, PresenceFilter } from 'ldapts';
import { AppError } from '@holdfast/kit/app-error';
import type { Directory, DirectoryBase, DirectoryEntry } from '@holdfast/kit/directory';
import { escapeNameValue, parseDistinguishedName } from '@holdfast/kit/distinguished-name';
import type { Log } from '@holdfast/kit/log';
import type { Secret } from '@holdfast/kit/secret';
import type { LdapEntry } from './answers.ts';
import { type LdapConnection, LdapFailure, ldapServerOf, openLdap } from './connection.ts';
import { ldapConnections } from './connections.ts';
import { type LdapGroup, leafName, searchGroups } from './groups.ts';
import { answerFailure, INSUFFICIENT, isRefusal, NO_SUCH_OBJECT } from './results.ts';
import { ldapServiceAccount } from './service-account.ts';

export interface LdapDirectoryOptions {
  /** `ldap://host:port` or `ldaps://host:port`; the certificate is always verified. */
  url: string;
  coreBase: string;
  webBase: string;
  /** Exists on both bases as `cn=<username>,ou=users,<base>`. */
  serviceAccount: { username: string; password: Secret };
  /** Trusted beside the system's authorities, if the file exists. */
  tlsCaFile?: string | undefined;
  log: Log;
  /** Kept connections, of both bases together. */
  maxConnections?: number;
  /** For each call as a whole, the waiting included. */
  withinMs?: number;
  /** How long a connection is kept that nobody uses. */
  idleMs?: number;
}

const MOST_WAITING = 256;
const MOST_NAME_CHARACTERS = 150;
const MOST_PASSWORD_BYTES = 1024;
/** A person with ten thousand groups, a group with a hundred thousand members. */
const USER_LIMITS = { mostEntries: 1, mostBytes: 1024 * 1024 };
const GROUP_LIMITS = { mostEntries: 20, mostBytes: 8 * 1024 * 1024 };

/** The directory, and what the core asks beyond the port. */
export interface LdapDirectory extends Directory {
  /** Groups of the core base whose name contains the text in any case, sorted by name. Errors as of `find`. */
  groups(containing: string): Promise<LdapGroup[]>;
  /** Ends after the work that is under way. */
  close(): Promise<void>;
}

export function ldapDirectory(options: LdapDirectoryOptions): LdapDirectory {
  const { withinMs = 5000 } = options;
  const server = ldapServerOf(options.url, options.tlsCaFile);
  const { protocol, hostname } = new URL(options.url);
  const called = `The directory at ${protocol}//${hostname}:${server.port}`;
  const bases: Record<DirectoryBase, string> = { core: options.coreBase, web: options.webBase };
  const serviceName = (base: DirectoryBase): string => userName(base, options.serviceAccount.username);
  const service = ldapServiceAccount({ ...options.serviceAccount, dn: serviceName, called, log: options.log });
  const connections = ldapConnections<DirectoryBase>({
    open: (base, until) => openIntroduced(base, until),
    mostConnections: options.maxConnections ?? 8,
    mostWaiting: MOST_WAITING,
    idleMs: options.idleMs ?? 60_000,
  });

  function userName(base: DirectoryBase, username: string): string {
    return `cn=${escapeNameValue(username)},ou=users,${bases[base]}`;
  }

  async function explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof LdapFailure)) throw error;
      throw new AppError(error.code, `${called} ${error.message}`, { cause: error });
    }
  }

  async function openIntroduced(base: DirectoryBase, until: number): Promise<LdapConnection> {
    const connection = await openLdap(server, until);
    try {
      await service.introduce(connection, base, until);
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  async function readUser(
    connection: LdapConnection,
    base: DirectoryBase,
    as: string,
    username: string,
    until: number,
  ) {
    const dn = userName(base, username);
    const attributes = ['cn', 'memberOf', 'ak-active'];
    const filter = new PresenceFilter({ attribute: 'objectClass' });
    const found = await connection.search(as, { base: dn, scope: 'base', filter, attributes, ...USER_LIMITS }, until);
    return { code: found.code, entry: found.entries[0] };
  }

  async function signIn(base: DirectoryBase, username: string, password: string): Promise<DirectoryEntry | undefined> {
    if (!canBeName(username) || !canBePassword(password)) return undefined;
    const until = performance.now() + withinMs;
    return explained(() =>
      connections.use(base, until, async (connection) => {
        const dn = userName(base, username);
        const bindAndRead = async () => {
          const bound = await connection.bind(dn, password, until);
          if (isRefusal(bound)) return undefined;
          if (bound !== 0) throw answerFailure(called, bound, 'a sign-in');
          return readUser(connection, base, dn, username, until);
        };
        const first = await bindAndRead();
        // As in `find`: another connection of the same user may have ended between the two.
        const read = first?.code === INSUFFICIENT ? await bindAndRead() : first;
        if (read === undefined) return undefined;
        const { code, entry } = read;
        if (code !== 0) throw answerFailure(called, code, 'a user who reads the own entry');
        if (entry === undefined)
          throw new AppError('upstream', `${called} signs a user in, but does not show the own entry`);
        const found = described(entry, username, bases[base]);
        return found?.isActive === true ? found : undefined;
      }),
    );
  }

  async function find(username: string): Promise<DirectoryEntry | undefined> {
    if (!canBeName(username)) return undefined;
    const until = performance.now() + withinMs;
    return explained(() =>
      connections.use('core', until, async (connection) => {
        await service.require(connection, 'core', until);
        const read = () => readUser(connection, 'core', serviceName('core'), username, until);
        let { code, entry } = await read();
        if (code === INSUFFICIENT) {
          // authentik keeps who is bound by name: the end of any connection of that name makes it forget this one.
          await service.prove(connection, 'core', until);
          ({ code, entry } = await read());
        }
        if (code === NO_SUCH_OBJECT) return undefined;
        if (code !== 0) throw answerFailure(called, code, 'the service account that looks for a user');
        return entry && described(entry, username, bases.core);
      }),
    );
  }

  async function probe(base: DirectoryBase, group: string): Promise<number | undefined> {
    const until = performance.now() + withinMs;
    return explained(async () => {
      const connection = await openLdap(server, until);
      try {
        await service.prove(connection, base, until);
        return await countMembers(connection, base, group, until);
      } finally {
        connection.close();
      }
    });
  }

  async function countMembers(
    connection: LdapConnection,
    base: DirectoryBase,
    group: string,
    until: number,
  ): Promise<number | undefined> {
    const kind = new EqualityFilter({ attribute: 'objectClass', value: 'groupOfNames' });
    const filter = new AndFilter({ filters: [kind, new EqualityFilter({ attribute: 'cn', value: group })] });
    const search = { base: `ou=groups,${bases[base]}`, scope: 'sub', filter, ...GROUP_LIMITS } as const;
    const { code, entries } = await connection.search(
      serviceName(base),
      { ...search, attributes: ['cn', 'member'] },
      until,
    );
    if (code === NO_SUCH_OBJECT) return undefined;
    if (code !== 0) throw answerFailure(called, code, 'the search for a group');
    const found = entries.find((entry) => nameIn(entry, group) !== undefined);
    return found && new Set(found.attributes.get('member')).size;
  }

  async function groups(containing: string): Promise<LdapGroup[]> {
    const until = performance.now() + withinMs;
    const place = { base: bases.core, as: serviceName('core'), service, called };
    return explained(() =>
      connections.use('core', until, (connection) => searchGroups(connection, containing, place, until)),
    );
  }

  return { signIn, find, probe, groups, close: () => connections.close() };
}

function canBeName(text: string): boolean {
  return text !== '' && text.length <= MOST_NAME_CHARACTERS && !text.includes('\0') && text.isWellFormed();
}

/** An empty password would be a bind without one, which some directories take for a success. */
function canBePassword(text: string): boolean {
  return text !== '' && Buffer.byteLength(text) <= MOST_PASSWORD_BYTES && !text.includes('\0') && text.isWellFormed();
}

/** authentik shows the people whom it refuses as well; a directory without the attribute has no such people. */
function isActive({ attributes }: LdapEntry): boolean {
  return attributes.get('ak-active')?.[0]?.toUpperCase() !== 'FALSE';
}

/** The name as the entry spells it, if it is that name: a directory may take blanks or other letters for the same. */
function nameIn({ attributes }: LdapEntry, name: string): string | undefined {
  return attributes.get('cn')?.find((value) => value.toLowerCase() === name.toLowerCase());
}

function described(entry: LdapEntry, asked: string, base: string): DirectoryEntry | undefined {
  const username = nameIn(entry, asked);
  if (username === undefined) return undefined;
  const place = parseDistinguishedName(`ou=groups,${base}`) ?? [];
  const names = (entry.attributes.get('memberof') ?? []).map((name) => leafName(name, place));
  const known = new Map(names.filter((name) => name !== undefined).map((name) => [name.toLowerCase(), name]));
  return { dn: entry.dn, username, isActive: isActive(entry), groups: [...known.values()] };
}
