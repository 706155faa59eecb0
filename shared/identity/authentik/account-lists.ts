// Lists of accounts at the identity provider: any stretch of what a query finds, by the provider's own order.

import { mapConcurrent } from '@holdfast/kit/concurrency';
import type { Page } from '@holdfast/kit/json';
import type { Account, AccountQuery } from '../port.ts';
import { account, accountName, pageOf } from './answers.ts';
import { type IdentityProvider, PAGE_SIZE, type Query, valueOf } from './request.ts';
import { visibleAccounts } from './visible-accounts.ts';

export const PATH = 'core/users';
/** Pages that are read at once. */
const AT_ONCE = 4;
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

/**
 * Lists of accounts at the identity provider: any stretch of what a query finds, by the provider's own order.
 * The size of pages of which one holds the whole stretch; undefined when none does.
 */
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
