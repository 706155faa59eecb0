import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { VIEWER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
  for (const username of ['john', 'john-doe']) await world.account({ username });
  for (const [username, name] of [
    ['john', 'doe'],
    ['john-doe', 'phone'],
  ])
    await world.ask('POST', '/api/ops/certs', { username, name });
  world.deps.theCore.calls = 0;
});

interface User {
  username: string;
  certs?: { file: string; state: string; downloadable: boolean; revoked_at: string | null }[];
  certs_error?: string;
}
const users = async (query: string): Promise<User[]> =>
  ((await (await world.ask('GET', `/api/users${query}`, undefined, VIEWER)).json()) as { results: User[] }).results;
const user = async (username: string): Promise<User> =>
  (await (await world.ask('GET', `/api/users/${(await world.named(username)).id}`)).json()) as User;
const unavailable = (): Promise<never> => Promise.reject(new AppError('unavailable', 'Our database does not answer'));

describe('the certificates of users', () => {
  it('are in the list when it is asked for them, with one call of the core for each user', async () => {
    const listed = await users('?include=certs');
    expect(Object.fromEntries(listed.map(({ username, certs }) => [username, certs?.map(({ file }) => file)]))).toEqual(
      {
        john: ['john~doe.p12'],
        'john-doe': ['john-doe~phone.p12'],
        nora: [],
        vera: [],
        webadmin: [],
      },
    );
    expect(world.deps.theCore.calls).toBe(5);
    expect(await users('?include=certs&page_size=1')).toHaveLength(1);
    expect(world.deps.theCore.calls).toBe(6);
  });

  it('are asked for all at once', async () => {
    const { core } = world.deps;
    let [running, most] = [0, 0];
    world.deps.core = {
      ...core,
      async certificates(username) {
        most = Math.max(most, (running += 1));
        const found = await core.certificates(username);
        running -= 1;
        return found;
      },
    };
    await users('?include=certs');
    expect(most).toBe(5);
  });

  it('cost no call of the core when nobody asks for them', async () => {
    expect((await users('')).map(({ certs }) => certs)).toEqual(Array(5).fill(undefined));
    expect(world.deps.theCore.calls).toBe(0);
  });

  it('are with one user always, its own and no others', async () => {
    const john = await user('john');
    expect([john.certs?.map(({ file }) => file), john.certs_error]).toEqual([['john~doe.p12'], undefined]);
    expect((await user('john-doe')).certs?.map(({ file }) => file)).toEqual(['john-doe~phone.p12']);
  });

  it('are what Holdfast has written down while the core does not answer, and it says why', async () => {
    const { certificateStore, theCore } = world.deps;
    const device = theCore.enrolledByDevice('john');
    await certificateStore.wantRevoked([{ ...device }], '2026-03-04T05:06:07.000Z');
    theCore.mood = 'down';
    const john = await user('john');
    expect(john.certs_error).toBe('The core does not answer');
    expect(john.certs?.map(({ file, state, downloadable }) => [file, state, downloadable]).toSorted()).toEqual([
      [`${device.hash.replaceAll(':', '').slice(0, 16).toLowerCase()}.pem`, 'revoking', false],
      ['john~doe.p12', 'active', true],
    ]);
    const checkedAt = '2026-03-04T05:07:00.000Z';
    await certificateStore.settle(device.hash, { state: 'revoked', checkedAt, problem: null, streams: 'none' });
    expect((await user('john')).certs?.find(({ state }) => state === 'revoked')?.revoked_at).toBe(checkedAt);
  });

  it('are in the list what Holdfast has written down while the core does not answer, and the page says why', async () => {
    const page = async (query: string) => {
      const response = await world.ask('GET', `/api/users${query}`);
      return { status: response.status, ...((await response.json()) as { results: User[]; certs_error?: string }) };
    };
    const before = await page('?include=certs');
    expect([before.status, 'certs_error' in before]).toEqual([200, false]);
    world.deps.theCore.enrolledByDevice('john');
    world.deps.theCore.mood = 'down';
    expect(await page('?include=certs')).toEqual({ ...before, certs_error: 'The core does not answer' });
    expect(await page('')).not.toHaveProperty('certs_error');
    const store = world.deps.certificateStore;
    world.deps.certificateStore = { ...store, made: unavailable, revocations: unavailable };
    expect((await page('?include=certs')).status).toBe(503);
    world.deps.theCore.mood = 'up';
    expect((await page('?include=certs')).status).toBe(503);
    expect((await page('')).status).toBe(200);
  });

  it('do not keep a user from being read while our own database does not answer', async () => {
    world.deps.certificateStore = { ...world.deps.certificateStore, made: unavailable, revocations: unavailable };
    expect(await user('john')).toMatchObject({
      username: 'john',
      certs: [],
      certs_error: 'Our database does not answer',
    });
    world.deps.certificateStore = {
      ...world.deps.certificateStore,
      made: () => Promise.reject(new Error('a fault of ours')),
    };
    expect((await world.ask('GET', `/api/users/${(await world.named('john')).id}`)).status).toBe(500);
  });
});
