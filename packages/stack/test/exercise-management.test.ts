// What an exercise removes and what it leaves alone, on an API in memory.

import { expect, it } from 'vitest';
import { StackError } from '@holdfast/kit/app-error';
import { ExerciseManagement } from '../exercise/management.ts';
import { removalText } from '../exercise/simulate.ts';

interface ServiceAccount {
  username: string;
  kind: string;
  groups: string[];
  is_active: boolean;
}

const OWN: ServiceAccount = { username: 'svc_exercise', kind: 'data', groups: ['core_EXERCISE'], is_active: true };
const GATEWAY: ServiceAccount = { ...OWN, username: 'svc_gateway', groups: ['core_EXERCISE', 'core_blue'] };

/** Like the API: a channel's members are listed without service accounts, whose list has pages. */
class FakeApi {
  accounts: ServiceAccount[] = [];
  /** The visible members of each channel, and hidden ones that are no service accounts. */
  readonly channels = new Map<string, string[]>();
  keepsKeys = true;
  /** When the newest simulation of the console ended; undefined: there was none. */
  simulation: string | null | undefined;
  readonly requests: string[] = [];

  management(): ExerciseManagement {
    return new ExerciseManagement({ url: 'http://api', authorization: 'Basic x' }, (url, init) =>
      Promise.resolve(this.#answer(init?.method ?? 'GET', new URL(url as string), (init?.body ?? '{}') as string)),
    );
  }

  /** Channels and active service accounts. */
  left(): string[] {
    return [...this.channels.keys(), ...this.accounts.filter((each) => each.is_active).map((each) => each.username)];
  }

  #answer(method: string, { pathname, searchParams }: URL, body: string): Response {
    this.requests.push(`${method} ${pathname}`);
    const [, , resource, key = ''] = pathname.split('/');
    const given = JSON.parse(body) as { name: string; kind: string; groups: string[] };
    if (key === 'jobs')
      return Response.json({ results: this.simulation === undefined ? [] : [{ finished_at: this.simulation }] });
    if (resource === 'ops') return new Response('PEM');
    return resource === 'groups' ? this.#groups(method, key, given) : this.#accounts(method, key, given, searchParams);
  }

  #groups(method: string, id: string, { name }: { name: string }): Response {
    if (method === 'GET' && id === '')
      return Response.json([...this.channels.keys()].map((each) => ({ id: `id-${each}`, name: each })));
    const channel = id === '' ? `core_${name}` : id.slice('id-'.length);
    if (method === 'GET') return Response.json(this.#members(channel));
    if (method === 'DELETE') {
      for (const each of this.accounts) each.groups = each.groups.filter((group) => group !== channel);
      return new Response(null, { status: this.channels.delete(channel) ? 204 : 404 });
    }
    if (this.channels.has(channel)) return Response.json({ detail: 'taken' }, { status: 409 });
    this.channels.set(channel, []);
    return Response.json({ id: `id-${channel}`, name: channel }, { status: 201 });
  }

  #members(channel: string): object {
    const all = this.channels.get(channel) ?? [];
    const shown = all.filter((username) => !username.startsWith('adm_'));
    const services = this.accounts.filter(
      ({ username, groups }) => groups.includes(channel) && !all.includes(username),
    );
    const hidden = all.length - shown.length + services.length;
    return { members: shown.map((username) => ({ username })), hidden_members: hidden };
  }

  #accounts(
    method: string,
    key: string,
    order: Omit<ServiceAccount, 'username' | 'is_active'> & { name: string },
    query: URLSearchParams,
  ): Response {
    const certificate = { file: 'svc_exercise.p12', downloadable: this.keepsKeys };
    const view = (each: ServiceAccount): object => ({ ...each, id: this.accounts.indexOf(each), certificate });
    if (method === 'GET') {
      const [page, size] = [Number(query.get('page')), Number(query.get('page_size'))];
      const results = this.accounts.slice((page - 1) * size, page * size).map(view);
      return Response.json({ results, count: this.accounts.length });
    }
    if (method === 'DELETE') {
      const found = this.accounts[Number(key)];
      if (found === undefined) return Response.json({}, { status: 404 });
      found.is_active = false;
      return Response.json(view(found));
    }
    const made = { username: `svc_${order.name}`, kind: order.kind, groups: order.groups, is_active: true };
    this.accounts.push(made);
    return Response.json(view(made), { status: 201 });
  }
}

function apiWith(channels: Record<string, string[]>, ...accounts: ServiceAccount[]): FakeApi {
  const api = new FakeApi();
  for (const [name, members] of Object.entries(channels)) api.channels.set(name, members);
  api.accounts = accounts.map((each) => ({ ...each }));
  return api;
}

const deletions = (api: FakeApi): string[] => api.requests.filter((each) => each.startsWith('DELETE'));

it('sets up a channel and an account, and removes both', async () => {
  const api = apiWith({ core_blue: ['ada'] }, { ...GATEWAY, groups: ['core_blue'] });
  const management = api.management();
  expect(await management.clear()).toEqual({ account: false, channel: false, members: [] });
  expect(await management.prepare()).toEqual({ pem: 'PEM' });
  expect(api.left()).toEqual(['core_blue', 'core_EXERCISE', 'svc_gateway', 'svc_exercise']);
  expect(await management.remove()).toEqual({ account: true, channel: true, members: [] });
  expect(api.left()).toEqual(['core_blue', 'svc_gateway']);
});

it('leaves a simulation of the console alone while it runs', async () => {
  const api = apiWith({ core_EXERCISE: [] }, OWN);
  api.simulation = null;
  await expect(api.management().clear()).rejects.toThrow('started in the console is running');
  await expect(api.management().clean()).rejects.toHaveProperty('remedy', expect.stringContaining('page Simulation'));
  expect(deletions(api)).toEqual([]);
  api.simulation = '2026-06-15T12:40:00.000Z';
  expect(await api.management().clean()).toMatchObject({ account: true, channel: true });
});

it('removes at the start what an interrupted exercise has left', async () => {
  const many = Array.from({ length: 250 }, (_, number) => ({ ...GATEWAY, username: `svc_${number}`, groups: [] }));
  const api = apiWith({ core_EXERCISE: [] }, ...many, OWN);
  expect(await api.management().clear()).toEqual({ account: true, channel: true, members: [] });
  expect(api.left()).toHaveLength(250);
});

it.each<[string, FakeApi, string[]]>([
  ['an account in other channels', apiWith({}, { ...OWN, groups: ['core_blue'] }), ['svc_exercise', 'core_blue']],
  [
    'an account in one channel more',
    apiWith({ core_EXERCISE: [] }, { ...OWN, groups: ['core_EXERCISE', 'core_red'] }),
    ['core_red'],
  ],
  ['an account in no channel', apiWith({}, { ...OWN, groups: [] }), ['no channel']],
  ['an account of another kind', apiWith({ core_EXERCISE: [] }, { ...OWN, kind: 'admin' }), ['kind is admin']],
])('never deletes %s', async (_, api, names) => {
  for (const refused of [api.management().clear(), api.management().clean()]) {
    const error = await refused.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(StackError);
    for (const name of names) expect(String(error)).toContain(name);
  }
  expect(deletions(api)).toEqual([]);
});

it.each<[string, FakeApi, string]>([
  [
    'is empty and has no account',
    apiWith({ core_EXERCISE: [] }, { ...OWN, is_active: false }),
    'may not be of an exercise',
  ],
  ['has only a service account', apiWith({ core_EXERCISE: [] }, GATEWAY), 'svc_gateway'],
  ['has people', apiWith({ core_EXERCISE: ['ada', 'bob'] }), 'ada, bob'],
  ['has a hidden account', apiWith({ core_EXERCISE: ['adm_watch'] }, OWN), '1 hidden account'],
  ['has people beside the account', apiWith({ core_EXERCISE: ['ada'] }, OWN, GATEWAY), 'ada, svc_gateway'],
])('does not start when the channel %s', async (_, api, text) => {
  await expect(api.management().clear()).rejects.toThrow(text);
  await expect(api.management().clear()).rejects.toHaveProperty('remedy', expect.stringContaining('--clean'));
  expect(deletions(api)).toEqual([]);
});

it.each<[FakeApi, string[], string]>([
  [apiWith({}), [], ''],
  [apiWith({ core_EXERCISE: [] }), [], 'The channel EXERCISE is removed.'],
  [apiWith({ core_EXERCISE: ['svc_exercise'] }, OWN), [], 'svc_exercise and its certificate are removed.'],
  [apiWith({ core_EXERCISE: ['ada'] }, OWN), ['core_EXERCISE'], 'stays: its members are ada.'],
  [apiWith({ core_EXERCISE: ['adm_a', 'adm_b'] }, OWN), ['core_EXERCISE'], 'its members are 2 hidden accounts.'],
  [apiWith({ core_EXERCISE: [] }, { ...OWN, is_active: false }), [], 'The channel EXERCISE is removed.'],
  [apiWith({ core_EXERCISE: [] }, GATEWAY), ['core_EXERCISE', 'svc_gateway'], 'stays: its members are svc_gateway.'],
])('--clean removes the account, and a channel without other members: %#', async (api, left, text) => {
  expect(removalText(await api.management().clean())).toContain(text);
  expect(api.left()).toEqual(left);
});

it('leaves the channel to those who watch at the end, but never its own account', async () => {
  const api = apiWith({});
  const management = api.management();
  await management.prepare();
  api.channels.set('core_EXERCISE', ['u1', 'u2', 'u3', 'u4', 'u5']);
  api.accounts.push({ ...GATEWAY });
  const removal = await management.remove();
  expect(removal).toMatchObject({ account: true, channel: false });
  expect(removalText(removal)).toContain('svc_gateway, u1, u2, u3, u4 and 1 more');
  expect(api.left()).toEqual(['core_EXERCISE', 'svc_gateway']);
  expect(deletions(api)).toEqual(['DELETE /api/service-accounts/0']);
});

it('removes all of a run whose key can not be downloaded, and nothing that others made meanwhile', async () => {
  const api = apiWith({});
  api.keepsKeys = false;
  const management = api.management();
  await expect(management.prepare()).rejects.toThrow("can't be downloaded");
  expect(await management.remove()).toMatchObject({ account: true, channel: true });
  api.channels.set('core_EXERCISE', []);
  const late = api.management();
  await expect(late.prepare()).rejects.toThrow('status 409: taken');
  expect(await late.remove()).toEqual({ account: false, channel: false, members: [] });
  expect(api.left()).toEqual(['core_EXERCISE']);
});
