// Parses query parameters by type, with authentik's errors. An empty one counts as not given.

import { isKeepable } from '../model/names.ts';
import type { TimeFilter } from '../store/account-list.ts';
import { type AttributeCondition, readAttributeQuery } from '../store/attribute-query.ts';
import { FieldRefusal, type Found, noChoice, type Paging } from '../store/database.ts';
import { HIGHEST_PK, type IdentityContext, notFound, readTime, UUID } from './body.ts';

const USUAL_PAGE_SIZE = 20;
const MAX_PAGE_SIZE = 100;
const MAX_VALUES = 200;

export interface QueryReader {
  text(name: string): string | undefined;
  flag(name: string): boolean | undefined;
  uuid(name: string): string | undefined;
  time(name: string): Date | undefined;
  /** `name`, `name__gt` and `name__lt`. */
  span(name: string): TimeFilter;
  /** Every value of a parameter that may be repeated. */
  texts(name: string): string[];
  uuids(name: string): string[];
  pks(name: string): number[];
  choices<T extends string>(name: string, known: readonly T[]): T[];
  attributes(): AttributeCondition[];
  paging(): Paging;
}

export function queryOf(c: IdentityContext): QueryReader {
  function texts(name: string): string[] {
    const values = (c.req.queries(name) ?? []).filter((value) => value !== '');
    if (!values.every(isKeepable)) throw new FieldRefusal({ [name]: 'Null characters are not allowed.' });
    if (values.length > MAX_VALUES) throw new FieldRefusal({ [name]: `At most ${MAX_VALUES} values.` });
    return values;
  }
  /** The last one counts, as in the provider. */
  const text = (name: string): string | undefined => texts(name).at(-1);

  function read<T>(name: string, convert: (value: string) => T | undefined, fault: string): T | undefined {
    const value = text(name);
    if (value === undefined) return undefined;
    const converted = convert(value);
    if (converted === undefined) throw new FieldRefusal({ [name]: fault });
    return converted;
  }

  const time = (name: string): Date | undefined => read(name, readTimeOrDay, 'Enter a valid date/time.');

  function choices<T extends string>(name: string, known: readonly T[]): T[] {
    return texts(name).map((value) => {
      const choice = known.find((each) => each === value);
      if (choice === undefined) throw noChoice(name, value);
      return choice;
    });
  }

  return {
    text,
    flag: (name) => read(name, readFlag, 'Must be true or false.'),
    uuid: (name) => read(name, (value) => (UUID.test(value) ? value : undefined), 'Enter a valid UUID.'),
    time,
    span: (name) => ({ exactly: time(name), after: time(`${name}__gt`), before: time(`${name}__lt`) }),
    texts,
    uuids: (name) =>
      texts(name).map((value) => {
        if (!UUID.test(value)) throw new FieldRefusal({ [name]: `“${value}” is not a valid UUID.` });
        return value.toLowerCase();
      }),
    pks: (name) =>
      texts(name).map((value) => {
        if (!/^\d{1,10}$/.test(value) || Number(value) > HIGHEST_PK) throw noChoice(name, value);
        return Number(value);
      }),
    choices,
    attributes: () => {
      const value = c.req.query('attributes');
      return value === undefined || value === '' ? [] : readAttributeQuery(value);
    },
    paging: () => ({
      page: readPage(c.req.query('page')),
      pageSize: readPageSize(c.req.query('page_size')),
      ordering: (c.req.query('ordering') ?? '')
        .split(',')
        .slice(0, 8)
        .map((each) => each.trim()),
    }),
  };
}

function readFlag(value: string): boolean | undefined {
  const lower = value.toLowerCase();
  if (lower === 'true' || lower === '1') return true;
  return lower === 'false' || lower === '0' ? false : undefined;
}

function readTimeOrDay(value: string): Date | undefined {
  return readTime(/^\d{4}-\d\d-\d\d$/.test(value) ? `${value}T00:00Z` : value);
}

const INVALID_PAGE = 'Invalid page.';

function readPage(value: string | undefined): number {
  if (value === undefined || value === '') return 1;
  if (!/^[1-9]\d{0,6}$/.test(value)) throw notFound(INVALID_PAGE);
  return Number(value);
}

function readPageSize(value: string | undefined): number {
  if (value === undefined || !/^0*[1-9]\d*$/.test(value)) return USUAL_PAGE_SIZE;
  return Math.min(Number(value), MAX_PAGE_SIZE);
}

/** The envelope of every list. A page beyond the last is 404. */
export function envelope<T, S>({ results, count }: Found<T>, { page, pageSize }: Paging, show: (one: T) => S) {
  const pages = Math.max(1, Math.ceil(count / pageSize));
  if (page > pages) throw notFound(INVALID_PAGE);
  return {
    pagination: {
      next: page < pages ? page + 1 : 0,
      previous: page - 1,
      count,
      current: page,
      total_pages: pages,
      start_index: count === 0 ? 0 : (page - 1) * pageSize + 1,
      end_index: Math.min(page * pageSize, count),
    },
    results: results.map(show),
    autocomplete: {},
  };
}
