// The keys of tokens: looked at, set.

import { z } from 'zod';
import type { IdentityApiOptions, IdentityRoute } from './route.ts';
import { readBody } from './body.ts';
import { notFound, Refused } from './refused.ts';
import { administers } from './sign-in.ts';
import { tokenOf } from './tokens.ts';

/** Keys are compared without a slow hash, so they must not be guessable. */
const SHORTEST_KEY = 20;
const LONGEST_KEY = 1024;
const keySchema = z.object({ key: z.string() });

export function tokenActionRoutes({ store, log }: IdentityApiOptions): IdentityRoute[] {
  return [
    {
      path: '/core/tokens/:identifier/view_key/',
      handlers: {
        GET: async function viewKey(c) {
          const { uuid, identifier } = await tokenOf(c, store);
          const found = await store.tokens.key(uuid);
          if (found === undefined) throw notFound();
          if (found === 'unreadable') {
            throw new Refused(500, { detail: 'The key was sealed with another secret key: it cannot be opened.' });
          }
          log.info('identity.key_viewed', { token: identifier, user: c.get('caller').username });
          return c.json(found, 200, { 'cache-control': 'no-store' });
        },
      },
    },
    {
      path: '/core/tokens/:identifier/set_key/',
      handlers: {
        POST: async function setKey(c) {
          const { uuid } = await tokenOf(c, store);
          administers(c.get('caller'));
          const { key } = await readBody(c, keySchema).catch((error: unknown) => {
            throw error instanceof Refused ? error : new Refused(400);
          });
          if (!/^[\x21-\x7e]+$/.test(key) || key.length < SHORTEST_KEY || key.length > LONGEST_KEY)
            throw new Refused(400);
          const outcome = await store.tokens.setKey(uuid, key);
          if (outcome === 'gone') throw notFound();
          if (outcome === 'taken') throw new Refused(400);
          return c.body(null, 204);
        },
      },
    },
  ];
}
