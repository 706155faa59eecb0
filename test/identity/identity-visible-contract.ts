// Lists that leave some accounts out: held against the fake and against providers over HTTP.

import { expect, it } from 'vitest';
import type { AccountQuery } from '../../shared/identity/port.ts';
import { type Bench, unique } from './identity-bench-contract.ts';

/** To be called within the description of the whole contract. */
export function identityVisibleContract({ identity, account, prefix, forgetGroup }: Bench): void {
  /** Every page of that size, one after the other, with the count that each of them tells. */
  async function pages(query: Omit<AccountQuery, 'page'>): Promise<{ names: string[][]; counts: number[] }> {
    const names: string[][] = [];
    const counts: number[] = [];
    for (let page = 1; ; page += 1) {
      const { results, count } = await identity().accounts.list({ ...query, page });
      counts.push(count);
      if (results.length === 0) return { names, counts };
      names.push(results.map(({ username }) => username.split('.').at(-1) ?? ''));
    }
  }

  it('leaves out by the beginning of names, with full pages and the right count', async () => {
    const word = `v${unique()}`;
    const base = `${prefix}-${word}.`;
    // Hidden ones before, between and after the others, two beside each other, one in another case.
    for (const each of ['a', 'c', 'e', 'f', 'h', 'j']) await account({ username: `${base}${each}` });
    const hidden = ['0x', 'bx', 'by', 'gx', 'zx'];
    for (const each of hidden) await account({ username: `${base}${each}` });
    const without = [`${base}0`, `${base}B`, `${base}g`, `${base.toUpperCase()}Z`];
    for (const pageSize of [1, 2, 3, 4, 5, 6, 7, 100, 200]) {
      const { names, counts } = await pages({ pageSize, search: word, without });
      expect([pageSize, names.flat()]).toEqual([pageSize, ['a', 'c', 'e', 'f', 'h', 'j']]);
      for (const page of names.slice(0, -1)) expect(page).toHaveLength(pageSize);
      expect(new Set(counts)).toEqual(new Set([6]));
    }
    expect(await identity().accounts.list({ page: 99, pageSize: 50, search: word, without })).toEqual({
      results: [],
      count: 6,
    });
    expect((await pages({ pageSize: 4, search: word, without: [base] })).counts).toEqual([0]);
    expect((await pages({ pageSize: 100, search: word, without: [] })).names.flat()).toHaveLength(11);
  });

  it('leaves out only what the other conditions find', async () => {
    const word = `w${unique()}`;
    const base = `${prefix}-${word}.`;
    const group = await identity().groups.create(`core_${prefix}-${word}`);
    forgetGroup(group.id);
    for (const each of ['a', 'b', 'hx', 'hy', 'z']) {
      const { id } = await account({ username: `${base}${each}`, attributes: { app_letter: each.length } });
      if (each !== 'hy') await identity().groups.addMember(group.id, id);
      if (each === 'b' || each === 'hx') await identity().accounts.change(id, { isActive: false });
    }
    await account({ username: `${base}hp`, kind: 'service' });
    const without = [`${base}h`];
    const find = async (query: Partial<AccountQuery>): Promise<[string, number]> => {
      const { names, counts } = await pages({ pageSize: 1, search: word, without, ...query });
      return [names.flat().join(''), counts[0] ?? -1];
    };
    expect(await find({})).toEqual(['abz', 3]);
    expect(await find({ isActive: true })).toEqual(['az', 2]);
    expect(await find({ isActive: false })).toEqual(['b', 1]);
    expect(await find({ group: group.name })).toEqual(['abz', 3]);
    expect(await find({ group: group.name, isActive: true })).toEqual(['az', 2]);
    expect(await find({ group: `${group.name}-none` })).toEqual(['', 0]);
    expect(await find({ kinds: ['service'] })).toEqual(['', 0]);
    expect(await find({ attributes: { app_letter: 1 } })).toEqual(['abz', 3]);
    expect(await find({ search: `${word}.a` })).toEqual(['a', 1]);
    expect(await find({ search: `${word}.h` })).toEqual(['', 0]);
    expect(await find({ search: `${word}-nobody` })).toEqual(['', 0]);
  });

  it('finds a name that only stands elsewhere', async () => {
    const word = `y${unique()}`;
    await account({ username: `${prefix}-${word}`, name: `adm_${word}`, email: `svc_${word}@example.org` });
    const { results, count } = await identity().accounts.list({
      page: 1,
      pageSize: 10,
      search: word,
      without: [`adm_${word}`, `svc_${word}`, word],
    });
    expect([results.map(({ username }) => username), count]).toEqual([[`${prefix}-${word}`], 1]);
  });
}
