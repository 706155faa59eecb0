// The table of what clients call: each served call is a route, each other one is none, and the
// document says the same.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { adminRoutes } from '../admin/app.ts';
import { CLIENT_CALLS, CLIENTS, renderClientCalls, WEBSOCKET } from '../client-calls.ts';
import { adminWorld } from './fake-core-admin.ts';

const home = join(import.meta.dirname, '../../..');
/** Of 8446, which has its own tests. */
const ENROLLMENT = 'enrollment (8446)';

describe('the table of what clients call', () => {
  const world = adminWorld();
  afterAll(() => world.end());
  const routed = new Set(
    adminRoutes(world.options).flatMap(({ path, handlers }) =>
      Object.keys(handlers).map((method) => `${method} ${path}`),
    ),
  );

  it('says of each call whether it is served, and by whom it is made', () => {
    const others = CLIENT_CALLS.filter(({ area, call }) => area !== ENROLLMENT && !call.startsWith(WEBSOCKET));
    const wrong = others.filter(({ call, answer }) => routed.has(call) !== (answer !== 'not served'));
    expect(wrong.map(({ call }) => call)).toEqual([]);
    expect(CLIENT_CALLS.filter(({ clients }) => clients.length === 0)).toEqual([]);
    const calls = CLIENT_CALLS.map(({ call }) => call);
    expect(new Set(calls).size).toBe(calls.length);
    expect(new Set(CLIENT_CALLS.flatMap(({ clients }) => clients))).toEqual(new Set(CLIENTS));
  });

  it('is in docs/clients.md as it is here: npm run generate writes it', () => {
    expect(readFileSync(join(home, 'docs/clients.md'), 'utf8')).toContain(
      `<!-- calls -->\n${renderClientCalls()}\n<!-- /calls -->`,
    );
  });
});
