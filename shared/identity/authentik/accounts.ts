// Accounts at the identity provider.

import type { PatchedUserRequest, UserPasswordSetRequest, UserRequest } from '@goauthentik/api';
import { AppError } from '@holdfast/kit/app-error';
import { mapConcurrent } from '@holdfast/kit/concurrency';
import type { Attributes, Json, Page } from '@holdfast/kit/json';
import type { Account, AccountChange, AccountQuery, Accounts, Exclusive, NewAccount } from '../port.ts';
import { account, accountName, pageOf, type Wire } from './answers.ts';
import { type IdentityProvider, type Outcome, PAGE_SIZE, type Query, valueOf } from './request.ts';
import { visibleAccounts } from './visible-accounts.ts';

// Lists of accounts at the identity provider: any stretch of what a query finds, by the provider's own order.

export const PATH = 'core/users';
/** Pages that are read at once. */
const AT_ONCE = 4;
const TYPES: Record<Account['kind'], readonly string[]> = {
  person: ['internal', 'external'],
  service: ['service_account'],
  system: ['internal_service_account'],
};

const accountPage = pageOf(account);
const accountNames = pageOf(accountName);

export function accountLists(provider: IdentityProvider): (query: AccountQuery) => Promise<Page<Account>> {
  async function list(query: AccountQuery): Promise<Page<Account>> {
    if (query.kinds?.length === 0) return { results: [], count: 0 };
    const { page, pageSize, without = [] } = query;
    const begin = (page - 1) * pageSize;
    const filters = filtersOf(query);
    if (without.length === 0) return stretch(filters, begin, pageSize);
    return visibleAccounts({ provider, path: PATH, stretch, filters, without, begin, length: pageSize });
  }

  async function stretch(filters: Query, begin: number, length: number): Promise<Page<Account>> {
    const size = pageSizeFor(begin, length);
    if (size !== undefined) {
      const { results, count } = await providerPage(filters, Math.floor(begin / size) + 1, size);
      const skipped = begin % size;
      return { results: results.slice(skipped, skipped + length), count };
    }
    // The provider gives no more at once: the pages of its own that hold the wanted ones.
    const first = Math.floor(begin / PAGE_SIZE);
    const last = Math.ceil((begin + length) / PAGE_SIZE);
    const numbers = Array.from({ length: last - first }, (_, index) => first + index + 1);
    const read = await mapConcurrent(numbers, AT_ONCE, (page) => pageIfThere(filters, page, PAGE_SIZE));
    const pages = read.filter((page) => page !== undefined);
    const skipped = begin - first * PAGE_SIZE;
    return {
      results: pages.flatMap(({ results }) => results).slice(skipped, skipped + length),
      count: pages[0]?.count ?? (await countOf(filters)),
    };
  }

  async function providerPage(filters: Query, page: number, pageSize: number): Promise<Page<Account>> {
    return (await pageIfThere(filters, page, pageSize)) ?? { results: [], count: await countOf(filters) };
  }

  /** Undefined beyond the end of the list. */
  async function pageIfThere(filters: Query, page: number, pageSize: number): Promise<Page<Account> | undefined> {
    const at = { page: String(page), page_size: String(pageSize) };
    const outcome = await provider.exchange('GET', PATH, accountPage, { query: { ...filters, ...at } });
    // The provider refuses to filter by a group that does not exist.
    if ('refused' in outcome && outcome.refused.members.join() === 'groups_by_name') return { results: [], count: 0 };
    const read = valueOf(outcome);
    if (read === undefined) return undefined;
    const { results, pagination } = read;
    if (pagination.next > 0 && results.length < pageSize) {
      throw provider.nonsense(`gives ${results.length} accounts a page where ${pageSize} were asked for`);
    }
    return { results, count: pagination.count };
  }

  /** Of a list whose page does not exist. */
  async function countOf(filters: Query): Promise<number> {
    const first = await provider.read(PATH, accountNames, { ...filters, page: '1', page_size: '1' });
    if (first === undefined) throw provider.nonsense('has no list of accounts. Correct IDENTITY_URL.');
    return first.pagination.count;
  }

  return list;
}

/** The size of pages of which one holds the whole stretch; undefined when none does. */
function pageSizeFor(begin: number, length: number): number | undefined {
  for (let size = length; size <= PAGE_SIZE; size += 1) if ((begin % size) + length <= size) return size;
  return undefined;
}

function filtersOf({ search, kinds, isActive, group, attributes }: AccountQuery): Query {
  return {
    ordering: 'username',
    ...(search === undefined || search === '' ? {} : { search }),
    ...(kinds === undefined ? {} : { type: kinds.flatMap((kind) => TYPES[kind]) }),
    ...(isActive === undefined ? {} : { is_active: String(isActive) }),
    ...(group === undefined ? {} : { groups_by_name: group }),
    ...(attributes === undefined ? {} : { attributes: JSON.stringify(attributes) }),
  };
}

/** What is made. */
const TYPE_OF = { person: 'internal', service: 'service_account' } as const;
const MOST_ID = 2 ** 31 - 1;

const accountNamesOfIdentityAccounts = pageOf(accountName);

/** Changes attributes by what they are now; resolves with the account as it is afterwards. */
export type WriteAttributes = (id: number, changesOf: (now: Attributes) => Attributes) => Promise<Account>;

/**
 * The provider writes an account as a whole, also when a call names one member of it: whatever changes one, or its
 * password, goes through here.
 */
function writerOf(exclusive: Exclusive): <T>(id: number, work: () => Promise<T>) => Promise<T> {
  return (id, work) => exclusive(`identity-account:${id}`, work);
}

export function identityAccounts(
  provider: IdentityProvider,
  exclusive: Exclusive,
): { accounts: Accounts; writeAttributes: WriteAttributes } {
  const asWriter = writerOf(exclusive);
  const list = accountLists(provider);

  async function get(id: number): Promise<Account | undefined> {
    return isId(id) ? provider.read(`${PATH}/${id}`, account) : undefined;
  }

  async function named(username: string): Promise<Account | undefined> {
    if (username === '') return undefined;
    const without = { include_groups: 'false', include_roles: 'false' };
    const lower = username.toLowerCase();
    // A search for a short name finds half of everybody: the spellings that are likely come first.
    for (const spelling of new Set([username, lower])) {
      const query = { ...without, username: spelling };
      const found = await provider.first(
        PATH,
        accountNamesOfIdentityAccounts,
        query,
        (each) => each.username === spelling,
      );
      if (found !== undefined) return get(found.pk);
    }
    const query = { ...without, search: username };
    const found = await provider.first(
      PATH,
      accountNamesOfIdentityAccounts,
      query,
      (each) => each.username.toLowerCase() === lower,
    );
    return found && get(found.pk);
  }

  async function create(wanted: NewAccount): Promise<Account> {
    const { username } = wanted;
    return exclusive(`identity-username:${username.toLowerCase()}`, async () => {
      if ((await named(username)) !== undefined) throw taken(username);
      const outcome = await provider.exchange('POST', PATH, account, { body: userOf(wanted) });
      // Somebody else may have been faster; the words of the refusal are nothing to rely on.
      const isName = 'refused' in outcome && outcome.refused.members.includes('username');
      if (isName && (await named(username)) !== undefined) throw taken(username);
      return existing(outcome, 'There is no list of accounts');
    });
  }

  async function patch(id: number, body: Wire<PatchedUserRequest>): Promise<Account> {
    return existing(await provider.exchange('PATCH', `${PATH}/${id}`, account, { body }), noAccount(id));
  }

  async function change(id: number, { name, email, isActive, kind }: AccountChange): Promise<Account> {
    const body: Wire<PatchedUserRequest> = {
      ...(name === undefined ? {} : { name }),
      ...(email === undefined ? {} : { email }),
      ...(isActive === undefined ? {} : { is_active: isActive }),
      ...(kind === undefined ? {} : { type: TYPE_OF[kind] }),
    };
    if (Object.keys(body).length === 0) return present(id);
    mustBeId(id);
    return asWriter(id, () => patch(id, body));
  }

  async function present(id: number): Promise<Account> {
    const found = await get(id);
    if (found === undefined) throw new AppError('not_found', noAccount(id));
    return found;
  }

  async function writeAttributes(id: number, changesOf: (now: Attributes) => Attributes): Promise<Account> {
    mustBeId(id);
    return asWriter(id, async () => {
      const now = await present(id);
      const attributes = merged(now.attributes, changesOf(now.attributes));
      return sameJson(now.attributes, attributes) ? now : patch(id, { attributes });
    });
  }

  async function setPassword(id: number, password: string): Promise<void> {
    mustBeId(id);
    const body: Wire<UserPasswordSetRequest> = { password };
    const call = { body, secrets: [password] };
    await asWriter(id, async () => {
      const outcome = await provider.act('POST', `${PATH}/${id}/set_password`, call);
      if ('refused' in outcome && outcome.refused.error.fields.length === 0) throw badPassword();
      existing(outcome, noAccount(id));
    });
  }

  async function remove(id: number): Promise<void> {
    if (isId(id)) valueOf(await provider.act('DELETE', `${PATH}/${id}`));
  }

  const changeAttributes = (id: number, changes: Attributes): Promise<Account> => writeAttributes(id, () => changes);
  const accounts = { list, get, named, create, change, changeAttributes, setPassword, delete: remove };
  return { accounts, writeAttributes };
}

function userOf({ username, name, email, kind = 'person', attributes }: NewAccount): Wire<UserRequest> {
  return {
    username,
    name,
    type: TYPE_OF[kind],
    ...(email === undefined ? {} : { email }),
    ...(attributes === undefined ? {} : { attributes }),
  };
}

/** What was done; throws what was refused, and `not_found` with that text when something is missing. */
export function existing<T>(outcome: Outcome<T>, text: string): T {
  if ('missing' in outcome) throw new AppError('not_found', text);
  if ('refused' in outcome) throw outcome.refused.error;
  return outcome.done;
}

export function noAccount(id: number): string {
  return `There is no account with the id ${id}`;
}

export function isId(id: number): boolean {
  return Number.isInteger(id) && id > 0 && id <= MOST_ID;
}

function mustBeId(id: number): void {
  if (!isId(id)) throw new AppError('not_found', noAccount(id));
}

function taken(username: string): AppError {
  return new AppError(
    'conflict',
    `There is an account with the name ${JSON.stringify(username)}, in some case, already`,
  );
}

function badPassword(): AppError {
  const message = 'The identity provider refuses this password, and does not say why: it may be empty, or too weak';
  return new AppError('invalid', message, { fields: [{ path: 'password', message: 'refused' }] });
}

/** A null removes; attributes that are not named stay, also those that are null. */
export function merged(now: Attributes, changes: Attributes): Attributes {
  const all = new Map(Object.entries(now));
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) all.delete(name);
    else all.set(name, value);
  }
  return Object.fromEntries(all);
}

/** The order of members does not count. */
function sameJson(one: Json, other: Json): boolean {
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const others = new Map(Object.entries(other));
  const members = Object.entries(one);
  return (
    members.length === others.size &&
    members.every(([name, value]) => {
      const counterpart = others.get(name);
      return counterpart !== undefined && sameJson(value, counterpart);
    })
  );
}
