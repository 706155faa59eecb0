// Where CoreConfig.xml sends a release for its database and its directory, and as whom: what the programs will use is what is tried
// before they start.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DOMParser, type Element } from '@xmldom/xmldom';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import { Secret } from '@holdfast/kit/secret';

export interface DirectoryAccount {
  url: string;
  /** The entry that is looked for, too. */
  dn: string;
  password: Secret;
}

export interface Coordinates {
  databaseUrl: Secret;
  /** undefined: this core takes its people from no directory. */
  directory: DirectoryAccount | undefined;
}

/** Where a release looks for its configuration, in this order. */
const PLACES = ['conf/CoreConfig.xml', 'CoreConfig.xml'];
const REMEDY = 'docker compose up configuration writes it; or put back a copy of it from a backup';

/** Throws a StackError that names the file. */
export function readCoordinates(home: string): Coordinates {
  const path = PLACES.map((place) => join(home, place)).find((place) => existsSync(place));
  if (path === undefined) throw new StackError(`${join(home, 'CoreConfig.xml')} is missing.`, REMEDY);
  const root = rootOf(path);
  const connection = first(root, 'connection');
  const jdbc = /^jdbc:postgresql:\/\/([^/?#\s]+)\/([^/?#\s]+)/.exec(connection?.getAttribute('url') ?? '');
  if (connection === undefined || jdbc === null)
    throw new StackError(`${path} names no PostgreSQL database (repository/connection).`, REMEDY);
  const [user, password] = ['username', 'password'].map((name) =>
    encodeURIComponent(connection.getAttribute(name) ?? ''),
  );
  return {
    databaseUrl: new Secret(`postgres://${user}:${password}@${jdbc[1]}/${jdbc[2]}`),
    directory: directoryIn(root),
  };
}

function directoryIn(root: Element): DirectoryAccount | undefined {
  const ldap = first(root, 'ldap');
  const [url, dn, password] = ['url', 'serviceAccountDN', 'serviceAccountCredential'].map(
    (name) => ldap?.getAttribute(name) ?? '',
  );
  if (!url || !dn || !password) return undefined;
  return { url, dn, password: new Secret(password) };
}

function first(root: Element, name: string): Element | undefined {
  return root.getElementsByTagNameNS('*', name)[0];
}

function rootOf(path: string): Element {
  const onError = (_level: string, message: string): never => {
    throw new Error(message.split('\n')[0]);
  };
  try {
    const root = new DOMParser({ onError }).parseFromString(readFileSync(path, 'utf8'), 'text/xml').documentElement;
    if (root !== null) return root;
  } catch (error) {
    throw new StackError(`${path} cannot be read: ${messageOf(error)}.`, REMEDY, error);
  }
  throw new StackError(`${path} is empty.`, REMEDY);
}
