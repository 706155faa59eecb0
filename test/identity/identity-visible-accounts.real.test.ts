// Pages without hidden accounts, from providers that sort names as their databases do, and what such a page costs.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import { httpIdentity } from '../../shared/identity/authentik/http.ts';
import type { Identity } from '../../shared/identity/port.ts';

type Compare = (one: string, other: string) => number;
const bytes: Compare = (one, other) => (one < other ? -1 : Number(one > other));
const glibc = new Intl.Collator('en', { ignorePunctuation: true });
const icu = new Intl.Collator('en');
const ORDERS: Record<string, Compare> = {
  bytes: bytes,
  'no case': (one, other) => bytes(one.toLowerCase(), other.toLowerCase()),
  'a language': (one, other) => icu.compare(one, other),
  'a language without punctuation': (one, other) => glibc.compare(one, other),
};

interface QueriedProvider {
  identity: Identity;
  calls: string[];
  /** It answers nothing until what is returned is called. */
  hold: () => () => void;
}

/** A provider of these people, with what it was asked. */
function providerOf(usernames: readonly string[], order: Compare): QueriedProvider {
  const sorted = usernames.toSorted((one, other) => order(one, other) || bytes(one, other));
  const calls: string[] = [];
  let held: Promise<void> | undefined;
  function hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    held = promise;
    return resolve;
  }
  async function answer(input: Parameters<typeof fetch>[0]): Promise<Response> {
    const { searchParams, href } = new URL(input instanceof Request ? input.url : input);
    calls.push(href);
    await held;
    const search = (searchParams.get('search') ?? '').toLowerCase();
    const exact = searchParams.get('username');
    const found = sorted.filter((name) => name.toLowerCase().includes(search) && (exact === null || name === exact));
    const size = Number(searchParams.get('page_size') ?? 20);
    const page = Number(searchParams.get('page') ?? 1);
    const results = found.slice((page - 1) * size, page * size);
    if (results.length === 0 && page > 1) return Response.json({ detail: 'Invalid page.' }, { status: 404 });
    const next = page * size < found.length ? page + 1 : 0;
    const shown = results.map((username) => ({
      pk: sorted.indexOf(username) + 1,
      username,
      name: '',
      is_active: true,
      attributes: {},
      groups_obj: [],
      type: 'internal',
    }));
    return Response.json({ pagination: { next, count: found.length }, results: shown });
  }
  const identity = httpIdentity({
    url: 'http://provider.invalid',
    token: new Secret('token'),
    fetch: answer,
    exclusive: (_, work) => work(),
  });
  return { identity, calls, hold };
}

async function allPages(identity: Identity, pageSize: number, without: string[], search?: string): Promise<string[][]> {
  const pages: string[][] = [];
  for (let page = 1; ; page += 1) {
    const query = { page, pageSize, without, ...(search === undefined ? {} : { search }) };
    const { results } = await identity.accounts.list(query);
    if (results.length === 0) return pages;
    pages.push(results.map(({ username }) => username));
  }
}

const WITHOUT = ['svc_', 'adm_', 'ak-outpost-', 'akadmin'];
const isHidden = (name: string): boolean => WITHOUT.some((prefix) => name.toLowerCase().startsWith(prefix));

describe.each(Object.entries(ORDERS))('a provider that sorts by %s', (_, order) => {
  it('is read page by page with nobody missing, nobody twice, and full pages', async () => {
    const one = fc.stringMatching(/^[A-Da-d][a-z._-]{0,3}$/);
    const other = fc.constantFrom(...WITHOUT, 'Svc_', 'AKADMIN').chain((prefix) => one.map((rest) => prefix + rest));
    const people = fc.uniqueArray(fc.oneof(one, other), {
      minLength: 12,
      maxLength: 60,
      selector: (name) => (glibc.compare(name, '') === 0 ? name : name.toLowerCase().replaceAll(/[._-]/g, '')),
    });
    await fc.assert(
      fc.asyncProperty(people, fc.integer({ min: 10, max: 30 }), async (usernames, pageSize) => {
        const { identity } = providerOf(usernames, order);
        const visible = usernames.filter((name) => !isHidden(name)).toSorted((a, b) => order(a, b) || bytes(a, b));
        const pages = await allPages(identity, pageSize, WITHOUT);
        expect(pages.flat()).toEqual(visible);
        for (const page of pages.slice(0, -1)) expect(page).toHaveLength(pageSize);
        expect((await identity.accounts.list({ page: 1, pageSize, without: WITHOUT })).count).toBe(visible.length);
      }),
      { numRuns: 60 },
    );
  });
});

describe('what a page costs', () => {
  it('is the same with a hundred people and with five thousand', async () => {
    const costs = async (users: number): Promise<number[]> => {
      const names = Array.from({ length: users }, (_, index) => `user${String(index).padStart(5, '0')}`);
      const { identity, calls } = providerOf(['akadmin', ...names], bytes);
      const of = async (page: number, pageSize: number, search?: string): Promise<number> => {
        const before = calls.length;
        await identity.accounts.list({ page, pageSize, without: WITHOUT, ...(search === undefined ? {} : { search }) });
        return calls.length - before;
      };
      return [await of(1, 50), await of(1, 90, 'user'), await of(1, 20, 'nobody')];
    };
    const few = await costs(100);
    expect(await costs(5_000)).toEqual(few);
    expect(few[0]).toBe(WITHOUT.length + 1);
  });

  it('is one wait for a search that finds no hidden account, however many pages of the provider it takes', async () => {
    const names = Array.from({ length: 500 }, (_, index) => `user${String(index).padStart(5, '0')}`);
    const { identity, calls, hold } = providerOf(names, bytes);
    const release = hold();
    const page = identity.accounts.list({ page: 1, pageSize: 200, without: WITHOUT, search: 'user' });
    await expect.poll(() => calls.length).toBe(WITHOUT.length + 2);
    release();
    expect((await page).results).toHaveLength(200);
    expect(calls.length).toBe(WITHOUT.length + 2);
  });

  it('is never a list of everybody', async () => {
    const names = Array.from({ length: 5_000 }, (_, index) => `user${index}`);
    const { identity, calls } = providerOf(['akadmin', 'svc_x', ...names], bytes);
    const { count } = await identity.accounts.list({ page: 30, pageSize: 200, without: WITHOUT });
    expect(count).toBe(5_000);
    expect(calls.length).toBeLessThanOrEqual(WITHOUT.length + 4);
  });
});
