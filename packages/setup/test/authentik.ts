// authentik for the tests of identity-setup: what it asks, over HTTP, with the states that a first
// start and a worker go through.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface AuthentikCall {
  method: string;
  path: string;
  body: string;
}

interface FakeToken {
  key: string;
  username: string;
  isSuperuser: boolean;
}

export interface FakeAuthentik {
  url: string;
  calls: AuthentikCall[];
  /** Until then `/-/health/ready/` answers 503. */
  isReady: boolean;
  /** By identifier. */
  tokens: Map<string, FakeToken>;
  blueprint: { status: string; enabled: boolean; isFound: boolean };
  /**
   * What comes of the next applications, in turn, then `successful`; `lost`: the worker forgets it.
   */
  applications: string[];
  /** What each application does besides. */
  onApplied: () => void;
  outposts: { name: string; token_identifier: string }[];
  avatars: string;
  close(): Promise<void>;
}

export const OUTPOST_TOKEN = 'ak-outpost-6d1f-api';

/** As after a first start whose worker has done everything but apply our blueprint. */
export async function fakeAuthentik(bootstrapToken: string, managementToken: string): Promise<FakeAuthentik> {
  let applications = 0;
  const admin = { username: 'akadmin', isSuperuser: true };
  const state: FakeAuthentik = {
    url: '',
    calls: [],
    isReady: true,
    tokens: new Map([['authentik-bootstrap-token', { ...admin, key: bootstrapToken }]]),
    blueprint: { status: 'unknown', enabled: true, isFound: true },
    applications: [],
    onApplied() {
      const management = { username: 'adm_holdfast', isSuperuser: true };
      state.tokens.set('holdfast-management', { ...management, key: managementToken });
      state.tokens.set(OUTPOST_TOKEN, { key: 'key-of-the-outpost', username: 'ak-outpost-6d1f', isSuperuser: false });
      state.outposts = [{ name: 'Holdfast directory', token_identifier: OUTPOST_TOKEN }];
    },
    outposts: [],
    avatars: 'gravatar,initials',
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  const viewedBlueprint = () => ({
    pk: 'b-1',
    name: 'Holdfast',
    path: 'holdfast/holdfast.yaml',
    enabled: state.blueprint.enabled,
    status: state.blueprint.status,
    last_applied: new Date(1_700_000_000_000 + applications).toISOString(),
  });

  function apply(): void {
    const outcome = state.applications.shift() ?? 'successful';
    if (outcome === 'lost') return;
    applications += 1;
    state.blueprint.status = outcome;
    if (outcome === 'successful') state.onApplied();
  }

  function answered({ method, path, body }: AuthentikCall, caller: FakeToken): [number, unknown] {
    const { pathname, searchParams } = new URL(path, 'http://authentik');
    const below = pathname.replace('/api/v3', '');
    const [, identifier = '', action] = /^\/core\/tokens\/([^/]+)\/(view_key|set_key)\/$/.exec(below) ?? [];
    if (method === 'GET' && below === '/core/users/me/')
      return [200, { user: { username: caller.username, is_superuser: caller.isSuperuser } }];
    if (!caller.isSuperuser) return [403, { detail: 'You do not have permission to perform this action.' }];
    const token = state.tokens.get(identifier);
    if (action !== undefined && token === undefined) return [404, { detail: 'Not found.' }];
    if (method === 'GET' && action === 'view_key') return [200, { key: token?.key }];
    if (method === 'POST' && action === 'set_key') {
      const { key = '' } = JSON.parse(body) as { key?: string };
      if (key === '') return [400, undefined];
      if (token !== undefined) token.key = key;
      return [204, undefined];
    }
    if (method === 'GET' && below === '/managed/blueprints/')
      return [200, { results: state.blueprint.isFound ? [viewedBlueprint()] : [] }];
    if (method === 'POST' && below === '/managed/blueprints/b-1/apply/') {
      const shown = viewedBlueprint();
      apply();
      return [200, shown];
    }
    if (method === 'GET' && below === '/outposts/instances/') {
      const wanted = searchParams.get('name__iexact')?.toLowerCase();
      return [200, { results: state.outposts.filter(({ name }) => name.toLowerCase() === wanted) }];
    }
    if (below !== '/admin/settings/') return [404, { detail: 'Not found.' }];
    if (method === 'PATCH') ({ avatars: state.avatars } = JSON.parse(body) as { avatars: string });
    return [200, { avatars: state.avatars, event_retention: 'days=365' }];
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const call = { method: request.method ?? '', path: request.url ?? '', body };
    state.calls.push(call);
    const end = (status: number, json?: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(json === undefined ? undefined : JSON.stringify(json));
    };
    if (call.path === '/-/health/ready/') return end(state.isReady ? 200 : 503);
    const key = request.headers.authorization?.replace(/^Bearer /, '');
    const caller = [...state.tokens.values()].find((token) => token.key === key);
    if (caller === undefined) return end(403, { detail: 'Token invalid/expired' });
    return end(...answered(call, caller));
  }

  const server = createServer((request, response) => void serve(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return state;
}
