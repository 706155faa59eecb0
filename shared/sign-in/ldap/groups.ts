// Reads groups of a directory as its service account sees them: names, descriptions and members.

import { AndFilter, EqualityFilter, type Filter, SubstringFilter } from 'ldapts';
import { AppError } from '@holdfast/kit/app-error';
import { parseDistinguishedName, partsAbove, type RelativeName } from '@holdfast/kit/distinguished-name';
import { nameKey } from '@holdfast/kit/names';
import { answerFailure, INSUFFICIENT, type LdapEntry, NO_SUCH_OBJECT } from './answers.ts';
import type { LdapConnection, LdapSearch } from './connection.ts';
import type { LdapServiceAccount } from './service-account.ts';

export interface LdapGroup {
  dn: string;
  name: string;
  description: string | undefined;
  /** The `cn` of each. */
  members: string[];
}

export interface LdapGroupsOptions {
  base: string;
  /** The distinguished name of the service account there. */
  as: string;
  service: LdapServiceAccount;
  called: string;
}

const LIMITS = { maxEntries: 20_000, maxBytes: 64 * 1024 * 1024 };
const MAX_TEXT_CHARACTERS = 150;
const MAX_DN_CHARACTERS = 2000;
const SIZE_LIMIT_EXCEEDED = 4;

/** Groups directly below `ou=groups` whose name contains the text in any case, sorted by name. */
export async function searchGroups(
  connection: LdapConnection,
  containing: string,
  { base, as, service, called }: LdapGroupsOptions,
  until: number,
): Promise<LdapGroup[]> {
  if (containing.length > MAX_TEXT_CHARACTERS || containing.includes('\0') || !containing.isWellFormed()) return [];
  const search = {
    base: `ou=groups,${base}`,
    scope: 'sub' as const,
    filter: filterOf(containing),
    attributes: ['cn', 'description', 'member'],
    ...LIMITS,
  } satisfies LdapSearch;
  await service.require(connection, 'core', until);
  let found = await connection.search(as, search, until);
  if (found.code === INSUFFICIENT) {
    await service.prove(connection, 'core', until);
    found = await connection.search(as, search, until);
  }
  if (found.code === NO_SUCH_OBJECT) return [];
  if (found.code === SIZE_LIMIT_EXCEEDED)
    throw new AppError(
      'upstream',
      `${called} has more groups with "${containing}" than it returns at once. Search for a longer part of the name.`,
    );
  if (found.code !== 0) throw answerFailure(called, found.code, 'the search for groups');
  const groups = placeOf('groups', base);
  const users = placeOf('users', base);
  return found.entries
    .flatMap((entry) => readGroup(entry, groups, users))
    .filter(({ name }) => nameKey(name).includes(nameKey(containing)))
    .toSorted((a, b) => compare(a.name, b.name));
}

/** Values go into the request unescaped: `*` and `(` are literal there. */
function filterOf(containing: string): Filter {
  const kind = new EqualityFilter({ attribute: 'objectClass', value: 'groupOfNames' });
  if (containing === '') return kind;
  return new AndFilter({ filters: [kind, new SubstringFilter({ attribute: 'cn', any: [containing] })] });
}

function placeOf(unit: string, base: string): RelativeName[] {
  return parseDistinguishedName(`ou=${unit},${base}`) ?? [];
}

function readGroup(
  { dn, attributes }: LdapEntry,
  groups: readonly RelativeName[],
  users: readonly RelativeName[],
): LdapGroup[] {
  const name = leafName(dn, groups);
  if (name === undefined) return [];
  const members = (attributes.get('member') ?? []).map((member) => leafName(member, users));
  return [
    {
      dn,
      name,
      description: attributes.get('description')?.[0],
      members: members.filter((member) => member !== undefined),
    },
  ];
}

/** The `cn` of an entry directly in that place. */
export function leafName(dn: string, place: readonly RelativeName[]): string | undefined {
  const parts = dn.length > MAX_DN_CHARACTERS ? undefined : parseDistinguishedName(dn);
  const [part, ...others] = (parts && partsAbove(parts, place)) ?? [];
  const [pair, ...joined] = part ?? [];
  if (pair?.type.toLowerCase() !== 'cn' || others.length > 0 || joined.length > 0) return undefined;
  return pair.value;
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
