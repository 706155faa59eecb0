// Accounts at the identity provider.

import type { PatchedUserRequest, UserPasswordSetRequest, UserRequest } from '@goauthentik/api';
import { AppError } from '../domain/app-error.ts';
import type { Exclusive } from '../ports/exclusive.ts';
import type {
  Account,
  AccountChange,
  AccountQuery,
  Accounts,
  Attributes,
  Json,
  NewAccount,
  Page,
} from '../ports/identity.ts';
import { account, accountName, pageOf, type Wire } from './identity-answers.ts';
import { type Outcome, PAGE_SIZE, type Provider, type Query, valueOf } from './identity-request.ts';

const PATH = 'core/users';
const TYPES: Record<Account['kind'], readonly string[]> = {
  person: ['internal', 'external'],
  service: ['service_account'],
  system: ['internal_service_account'],
};
/** What is made. */
const TYPE_OF = { person: 'internal', service: 'service_account' } as const;
const MOST_ID = 2 ** 31 - 1;

const accountPage = pageOf(account);
const accountNames = pageOf(accountName);

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
  provider: Provider,
  exclusive: Exclusive,
): { accounts: Accounts; writeAttributes: WriteAttributes } {
  const asWriter = writerOf(exclusive);

  async function list(query: AccountQuery): Promise<Page<Account>> {
    if (query.kinds?.length === 0) return { results: [], count: 0 };
    const { page, pageSize } = query;
    if (pageSize <= PAGE_SIZE) return listPage(query);
    // The provider gives no more at once: the pages of its own that hold the wanted one.
    const begin = (page - 1) * pageSize;
    const first = Math.floor(begin / PAGE_SIZE) + 1;
    const last = Math.ceil((begin + pageSize) / PAGE_SIZE);
    const results: Account[] = [];
    let count = 0;
    for (let at = first; at <= last; at += 1) {
      const read = await listPage({ ...query, page: at, pageSize: PAGE_SIZE });
      results.push(...read.results);
      count = read.count;
      if (at * PAGE_SIZE >= count) break;
    }
    const skipped = begin - (first - 1) * PAGE_SIZE;
    return { results: results.slice(skipped, skipped + pageSize), count };
  }

  async function listPage(query: AccountQuery): Promise<Page<Account>> {
    const filters = filtersOf(query);
    const at = { page: String(query.page), page_size: String(query.pageSize) };
    const outcome = await provider.exchange('GET', PATH, accountPage, { query: { ...filters, ...at } });
    // The provider refuses to filter by a group that does not exist.
    if ('refused' in outcome && outcome.refused.members.join() === 'groups_by_name') return { results: [], count: 0 };
    const page = valueOf(outcome);
    if (page === undefined) return { results: [], count: await countOf(filters) };
    const { results, pagination } = page;
    if (pagination.next > 0 && results.length < query.pageSize) {
      throw provider.nonsense(`gives ${results.length} accounts a page where ${query.pageSize} were asked for`);
    }
    return { results, count: pagination.count };
  }

  /** Of a list whose page does not exist. */
  async function countOf(filters: Query): Promise<number> {
    const first = await provider.read(PATH, accountNames, { ...filters, page: '1', page_size: '1' });
    if (first === undefined) throw provider.nonsense('has no list of accounts. Correct IDENTITY_URL.');
    return first.pagination.count;
  }

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
      const found = await provider.first(PATH, accountNames, query, (each) => each.username === spelling);
      if (found !== undefined) return get(found.pk);
    }
    const query = { ...without, search: username };
    const found = await provider.first(PATH, accountNames, query, (each) => each.username.toLowerCase() === lower);
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
