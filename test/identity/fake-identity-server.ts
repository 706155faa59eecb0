// A provider over HTTP for the tests of its client: the wire format of authentik's API v3 over plain records. Any call
// can be given a mood of its own.

import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Attributes, Json } from '@holdfast/kit/json';
import { attributesMatch } from '../../packages/identity/test/fake-attribute-query.ts';

export interface WireUser {
  pk: number;
  username: string;
  name: string;
  is_active: boolean;
  type: string;
  email: string;
  attributes: Attributes;
  date_joined: string;
  last_login: string | null;
}

export interface WireGroup {
  pk: string;
  name: string;
  users: number[];
}

export interface WireToken {
  identifier: string;
  intent: string;
  user: number;
  description: string;
  expires: string | null;
  expiring: boolean;
  key: string;
}

export interface WireCall {
  method: string;
  /** Below /api/v3, with its slashes. */
  path: string;
  query: URLSearchParams;
  body: Record<string, Json>;
  headers: IncomingMessage['headers'];
}

/** Answers a call by itself and returns true, or leaves it. */
export type Mood = (call: WireCall, response: ServerResponse) => boolean | void;

export interface IdentityServer {
  url: string;
  token: string;
  calls: WireCall[];
  users: Map<number, WireUser>;
  groups: Map<string, WireGroup>;
  tokens: Map<string, WireToken>;
  passwords: Map<number, string>;
  /** The longest life of an app password without a ceiling of its own; a provider as installed has a day. */
  lifetimeMinutes: number;
  mood: Mood;
  lastPk: number;
  close: () => void;
}

class Refused extends Error {
  readonly status: number;
  readonly body: unknown;

  constructor(status: number, body: unknown) {
    super(`refused with ${status}`);
    this.status = status;
    this.body = body;
  }
}

type Reply = [status: number, body?: unknown];

export async function identityServer(prefix = ''): Promise<IdentityServer> {
  const token = randomBytes(30).toString('hex');
  const server = createServer((request, response) => void answer(world, `${prefix}/api/v3`, request, response));
  const world: IdentityServer = {
    url: '',
    token,
    calls: [],
    users: new Map(),
    groups: new Map(),
    tokens: new Map(),
    passwords: new Map(),
    lifetimeMinutes: 24 * 60,
    mood: () => false,
    lastPk: 0,
    close: () => server.close().closeAllConnections(),
  };
  await once(server.listen(0, '127.0.0.1'), 'listening');
  world.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`;
  addUser(world, { username: 'akadmin', name: 'Administrator', type: 'internal' });
  addUser(world, { username: 'ak-outpost-1', name: 'Outpost', type: 'internal_service_account' });
  world.tokens.set('own-api', { ...tokenOf({ identifier: 'own-api', user: 1, expiring: false }), key: token });
  return world;
}

async function answer(world: IdentityServer, base: string, request: IncomingMessage, response: ServerResponse) {
  const { pathname, searchParams: query } = new URL(request.url ?? '', 'http://provider');
  let text = '';
  for await (const chunk of request) text += String(chunk);
  const body = (text === '' ? {} : JSON.parse(text)) as Record<string, Json>;
  const { method = '', headers } = request;
  const call = { method, path: pathname.slice(base.length), query, body, headers };
  world.calls.push(call);
  if (world.mood(call, response) === true) return;
  let reply: Reply = [404, '<h1>Not Found</h1>'];
  try {
    if (headers.authorization !== `Bearer ${world.token}`) reply = [403, { detail: 'Token invalid/expired' }];
    else if (pathname.startsWith(`${base}/`) && pathname.endsWith('/')) reply = route(world, call);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    reply = [error.status, error.body];
  }
  sayJson(response, ...reply);
}

export function sayJson(response: ServerResponse, status: number, body?: unknown): true {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { 'content-type': typeof body === 'string' ? 'text/html' : 'application/json' }).end(text);
  return true;
}

function route(world: IdentityServer, call: WireCall): Reply {
  const [, area, kind = '', id = '', action = ''] = call.path.split('/').map(decodeURIComponent);
  if (call.path === '/admin/version/') return [200, { version_current: '2026.8.3' }];
  if (call.path === '/core/users/me/') return [200, { user: { username: 'akadmin', is_superuser: true }, users: [] }];
  if (area === 'core' && kind === 'users') return users(world, call, id, action);
  if (area === 'core' && kind === 'groups') return groups(world, call, id, action);
  if (area === 'core' && kind === 'tokens') return tokens(world, call, id, action);
  return [404, '<h1>Not Found</h1>'];
}

function users(world: IdentityServer, { method, query, body }: WireCall, id: string, action: string): Reply {
  const shown = (user: WireUser) => toUserView(world, user);
  if (id === '' && method === 'POST') return [201, shown(addUser(world, checkedUser(world, body, true)))];
  if (id === '') return page(query, listedUsers(world, query), shown);
  const user = world.users.get(Number(id)) ?? missing();
  if (action === 'set_password') {
    if (body['password'] === '') throw new Refused(400, { password: ['This field may not be blank.'] });
    world.passwords.set(user.pk, textOf(body['password']));
    return [204];
  }
  if (method === 'PATCH') Object.assign(user, checkedUser(world, body, false));
  if (method !== 'DELETE') return [200, shown(user)];
  world.users.delete(user.pk);
  for (const group of world.groups.values()) group.users = group.users.filter((pk) => pk !== user.pk);
  for (const token of world.tokens.values()) if (token.user === user.pk) world.tokens.delete(token.identifier);
  return [204];
}

function listedUsers(world: IdentityServer, query: URLSearchParams): WireUser[] {
  const group = query.get('groups_by_name');
  const members = group === null ? undefined : [...world.groups.values()].find(({ name }) => name === group)?.users;
  if (group !== null && members === undefined) throw new Refused(400, { groups_by_name: ['Select a valid choice.'] });
  const words = (query.get('search') ?? '').toLowerCase().split(/[\s,]+/);
  const types = query.getAll('type');
  const attributes = JSON.parse(query.get('attributes') ?? '{}') as Attributes;
  return [...world.users.values()]
    .filter(
      (user) =>
        words.every((word) => `${user.username}\n${user.name}\n${user.email}`.toLowerCase().includes(word)) &&
        user.username === (query.get('username') ?? user.username) &&
        (types.length === 0 || types.includes(user.type)) &&
        String(user.is_active) === (query.get('is_active') ?? String(user.is_active)) &&
        (members === undefined || members.includes(user.pk)) &&
        attributesMatch(user.attributes, attributes),
    )
    .toSorted((one, other) => (one.username < other.username ? -1 : 1));
}

function addUser(world: IdentityServer, wanted: Partial<WireUser>): WireUser {
  const pk = (world.lastPk += 1);
  const date_joined = new Date().toISOString().replace('Z', '123+00:00');
  const fresh = { name: '', email: '', is_active: true, type: 'internal', attributes: {}, last_login: null };
  const user = { username: '', ...fresh, ...wanted, pk, date_joined };
  world.users.set(pk, user);
  return user;
}

/** Unique with regard to case, as the database is. */
function checkedUser(world: IdentityServer, body: Record<string, Json>, isNew: boolean): Partial<WireUser> {
  const errors: Record<string, string[]> = {};
  const { username = '', email = '' } = body as { username?: string; email?: string };
  if (isNew && username === '') errors['username'] = ['This field may not be blank.'];
  if (username.length > 150) errors['username'] = ['Ensure this field has no more than 150 characters.'];
  if ([...world.users.values()].some((user) => user.username === username)) {
    errors['username'] = ['This field must be unique.'];
  }
  if (email !== '' && !email.includes('@')) errors['email'] = ['Enter a valid email address.'];
  if (Object.keys(errors).length > 0) throw new Refused(400, errors);
  return body;
}

function toUserView(world: IdentityServer, user: WireUser): object {
  const groups_obj = [...world.groups.values()]
    .filter((group) => group.users.includes(user.pk))
    .map(({ pk, name }) => ({ pk, name, num_pk: 1, attributes: {} }));
  return { ...user, groups: groups_obj.map(({ pk }) => pk), groups_obj, avatar: '', uid: 'f'.repeat(64) };
}

function groups(world: IdentityServer, { method, query, body }: WireCall, id: string, action: string): Reply {
  const shown = (group: WireGroup, withUsers = true) => {
    const users_obj = group.users.map((pk) => ({ pk, username: world.users.get(pk)?.username, name: '' }));
    return { ...group, users_obj: withUsers ? users_obj : null };
  };
  const all = [...world.groups.values()];
  if (id === '' && method === 'POST') {
    const name = textOf(body['name']);
    if (name === '') throw new Refused(400, { name: ['This field may not be blank.'] });
    if (all.some((group) => group.name === name)) throw new Refused(400, { name: ['This field must be unique.'] });
    const made = { pk: randomUUID(), name, users: [] };
    world.groups.set(made.pk, made);
    return [201, shown(made)];
  }
  if (id === '') {
    const words = (query.get('search') ?? '').toLowerCase().split(/[\s,]+/);
    const found = all.filter(
      ({ name }) => words.every((word) => name.toLowerCase().includes(word)) && name === (query.get('name') ?? name),
    );
    return page(query, found, (group) => shown(group, query.get('include_users') !== 'false'));
  }
  const group = world.groups.get(id) ?? missing();
  if (action !== '') {
    const pk = Number(body['pk']);
    if (!world.users.has(pk)) missing();
    const others = group.users.filter((user) => user !== pk);
    group.users = action === 'add_user' ? [...others, pk] : others;
    return [204];
  }
  if (method !== 'DELETE') return [200, shown(group)];
  world.groups.delete(id);
  return [204];
}

function tokens(world: IdentityServer, { method, query, body }: WireCall, id: string, action: string): Reply {
  const shown = (token: WireToken) => {
    const owner = world.users.get(token.user);
    return { ...token, key: undefined, pk: randomUUID(), managed: null, user_obj: owner && toUserView(world, owner) };
  };
  if (id === '' && method === 'POST') {
    const made = tokenOf(body);
    checkToken(world, made);
    world.tokens.set(made.identifier, made);
    return [201, shown(made)];
  }
  if (id === '') {
    const owner = query.get('user__username');
    const found = [...world.tokens.values()].filter(
      ({ user, intent }) =>
        (owner === null || world.users.get(user)?.username === owner) && intent === (query.get('intent') ?? intent),
    );
    return page(query, found, shown);
  }
  const token = world.tokens.get(id) ?? missing();
  if (action === 'view_key') return [200, { key: token.key }];
  if (method !== 'DELETE') return [200, shown(token)];
  world.tokens.delete(id);
  return [204];
}

function checkToken(world: IdentityServer, { identifier, user, expires, expiring }: WireToken): void {
  const owner = world.users.get(user);
  if (!/^[-\w]{1,255}$/.test(identifier)) throw new Refused(400, { identifier: ['Enter a valid slug.'] });
  if (world.tokens.has(identifier)) throw new Refused(400, { identifier: ['This field must be unique.'] });
  if (owner === undefined) throw new Refused(400, { user: [`Invalid pk "${user}" - object does not exist.`] });
  const own = /^minutes=(\d+)$/.exec(textOf(owner.attributes['goauthentik.io/user/token-maximum-lifetime']));
  const most = Date.now() + Number(own?.[1] ?? world.lifetimeMinutes) * 60_000;
  if (expiring && Date.parse(expires ?? '') > most) {
    throw new Refused(400, { expires: [`Token expires exceeds maximum lifetime (${new Date(most).toISOString()}).`] });
  }
}

function tokenOf(body: Record<string, Json>): WireToken {
  return {
    intent: 'api',
    description: '',
    expires: null,
    expiring: true,
    ...(body as Pick<WireToken, 'identifier' | 'user'>),
    key: randomBytes(30).toString('hex'),
  };
}

function page<T>(query: URLSearchParams, found: T[], shown: (item: T) => unknown): Reply {
  const size = Math.min(100, Number(query.get('page_size') ?? 20));
  const current = Number(query.get('page') ?? 1);
  const total_pages = Math.max(1, Math.ceil(found.length / size));
  if (current > total_pages) return [404, { detail: 'Invalid page.' }];
  const next = current < total_pages ? current + 1 : 0;
  const pagination = { next, previous: current - 1, count: found.length, current, total_pages };
  const results = found.slice((current - 1) * size, current * size).map(shown);
  return [200, { pagination: { ...pagination, start_index: 0, end_index: 0 }, results, autocomplete: {} }];
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

function missing(): never {
  throw new Refused(404, { detail: 'No such object matches the given query.' });
}
