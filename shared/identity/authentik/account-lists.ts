// Lists accounts at the identity provider: any range of a query's results, in the provider's own
// order.

import { mapConcurrent } from '@holdfast/kit/concurrency';
import type { Page } from '@holdfast/kit/json';
import type { Account, AccountQuery } from '../port.ts';
import { account, accountName, pageOf } from './answers.ts';
import { type IdentityProvider, PAGE_SIZE, type Query, valueOf } from './request.ts';

/**
 * A page of accounts that skips certain name prefixes. The provider can't exclude names, so
 * searches find the excluded accounts and the page is read longer by that many. The cost depends on
 * their number alone.
 */
interface Wanted {
  provider: IdentityProvider;
  path: string;
  /** `length` accounts from `begin` on, counted from 0; fewer at the end. */
  stretch: (filters: Query, begin: number, length: number) => Promise<Page<Account>>;
  filters: Query;
  /** Username prefixes. */
  without: readonly string[];
  /** Counted from 0 among the remaining accounts. */
  begin: number;
  length: number;
}

/** Concurrent searches. */
const CONCURRENCY = 4;
const names = pageOf(accountName);

export async function visibleAccounts(wanted: Wanted): Promise<Page<Account>> {
  const { stretch, filters, begin, length } = wanted;
  // A search seldom finds any of them, and then this is the page already.
  const likely = filters['search'] === undefined ? undefined : stretch(filters, begin, length);
  likely?.catch(() => undefined);
  const hidden = await hiddenNames(wanted);
  const read = await (hidden.length === 0 && likely !== undefined
    ? likely
    : stretch(filters, begin, length + hidden.length));
  const count = Math.max(0, read.count - hidden.length);
  // Each excluded account before the range has shifted it by one.
  const passed = begin === 0 ? 0 : await countBefore(wanted, hidden, read);
  const visible = read.results.filter(({ username }) => !isHidden(wanted, username));
  return { results: visible.slice(passed, passed + length), count };
}

function isHidden({ without }: Pick<Wanted, 'without'>, username: string): boolean {
  const lower = username.toLowerCase();
  return without.some((prefix) => lower.startsWith(prefix.toLowerCase()));
}

/** The excluded accounts that match the filters. */
async function hiddenNames(wanted: Wanted): Promise<string[]> {
  const { provider, path, filters } = wanted;
  const { search, ...others } = filters;
  const prefixes = [...new Set(wanted.without.map((prefix) => prefix.toLowerCase()))];
  const found = await inBatches(prefixes, (prefix) => {
    const query = { ...others, ...BARE, search: prefix };
    return hiddenBy(wanted, query);
  });
  const all = [...new Set(found.flat())];
  if (search === undefined) return all;
  // The provider decides what a search matches.
  const isFound = await inBatches(all, async (username) => {
    const query = { ...filters, ...BARE, username, page: '1', page_size: '1' };
    return ((await provider.read(path, names, query))?.pagination.count ?? 0) > 0;
  });
  return all.filter((_, index) => isFound[index]);
}

const BARE = { include_groups: 'false', include_roles: 'false' };

async function hiddenBy(wanted: Wanted, query: Query): Promise<string[]> {
  const { provider, path } = wanted;
  const first = await provider.exchange('GET', path, names, { query: { ...query, page: '1', page_size: '100' } });
  // A group that does not exist has no members.
  if ('refused' in first && first.refused.members.join() === 'groups_by_name') return [];
  const page = valueOf(first);
  if (page === undefined) throw provider.nonsense('has no list of accounts. Correct IDENTITY_URL.');
  const found = page.pagination.next === 0 ? page.results : await provider.all(path, names, query);
  return found.map(({ username }) => username).filter((username) => isHidden(wanted, username));
}

async function inBatches<T, R>(all: readonly T[], ask: (one: T) => Promise<R>): Promise<R[]> {
  const answers: R[] = [];
  for (let at = 0; at < all.length; at += CONCURRENCY)
    answers.push(...(await Promise.all(all.slice(at, at + CONCURRENCY).map(ask))));
  return answers;
}

type Compare = (one: string, other: string) => number;

const byBytes: Compare = (one, other) => (one < other ? -1 : Number(one > other));
const withoutCase: Compare = (one, other) => byBytes(one.toLowerCase(), other.toLowerCase());

/**
 * How many come before the range. The provider does not report its order, but its results reveal
 * it.
 */
async function countBefore(
  { stretch, filters, begin }: Wanted,
  hidden: readonly string[],
  { results, count }: Page<Account>,
): Promise<number> {
  const usernames = results.map(({ username }) => username);
  const elsewhere = hidden.filter((username) => !usernames.includes(username));
  const [first] = usernames;
  if (first === undefined || begin + usernames.length >= count) return elsewhere.length;
  const before = (order: Compare): number => elsewhere.filter((username) => order(username, first) < 0).length;
  const orders = ordersOfProviders().filter((order) => isSorted(usernames, order));
  if (new Set(orders.map(before)).size <= 1) return before(orders[0] ?? byBytes);
  // Accounts of a short range may fit several orders: the start of the list shows which one it is.
  const beginning = (await stretch(filters, 0, Math.min(begin, PAGE_SIZE))).results.map(({ username }) => username);
  if (beginning.length === begin) return elsewhere.filter((username) => beginning.includes(username)).length;
  return before(orders.find((order) => isSorted(beginning, order)) ?? orders[0] ?? byBytes);
}

/**
 * Bytes, letters without case, and the collations of languages, which may pass over punctuation.
 */
function ordersOfProviders(): Compare[] {
  const language = new Intl.Collator('en');
  const lettersFirst = new Intl.Collator('en', { ignorePunctuation: true });
  return [
    byBytes,
    withoutCase,
    (one, other) => language.compare(one, other),
    (one, other) => lettersFirst.compare(one, other),
  ];
}

function isSorted(usernames: readonly string[], compare: Compare): boolean {
  return usernames.every((username, index) => index === 0 || compare(usernames[index - 1] ?? '', username) <= 0);
}

export const PATH = 'core/users';
const TYPES: Record<Account['kind'], readonly string[]> = {
  person: ['internal', 'external'],
  service: ['service_account'],
  system: ['internal_service_account'],
};

const accountPage = pageOf(account);
export const accountNames = pageOf(accountName);

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
    // The provider returns no more at once: these are its own pages that contain the wanted ones.
    const first = Math.floor(begin / PAGE_SIZE);
    const last = Math.ceil((begin + length) / PAGE_SIZE);
    const numbers = Array.from({ length: last - first }, (_, index) => first + index + 1);
    const read = await mapConcurrent(numbers, CONCURRENCY, (page) => pageIfThere(filters, page, PAGE_SIZE));
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
      throw provider.nonsense(`returned ${results.length} accounts on a page of ${pageSize}`);
    }
    return { results, count: pagination.count };
  }

  /** For a list whose page does not exist. */
  async function countOf(filters: Query): Promise<number> {
    const first = await provider.read(PATH, accountNames, { ...filters, page: '1', page_size: '1' });
    if (first === undefined) throw provider.nonsense('has no list of accounts. Correct IDENTITY_URL.');
    return first.pagination.count;
  }

  return list;
}

/** The size of pages of which one contains the whole range; undefined when none does. */
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
