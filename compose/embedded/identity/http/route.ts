// What a file of routes is made of and from.

import type { Context } from 'hono';
import type { Log } from '../../../../shared/ports/log.ts';
import type { IdentityStore } from '../identity-store.ts';
import type { StoredAccount } from '../store/account-rows.ts';

export interface IdentityApiOptions {
  store: IdentityStore;
  now: () => Date;
  log: Log;
  /** What `/admin/version/` says: the release of authentik whose API this is, `2026.8.3`. */
  release: string;
}

export interface IdentityEnv {
  Variables: { caller: StoredAccount };
}
export type IdentityContext = Context<IdentityEnv>;

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

/** What is done on one path; other methods are 405. */
export type Handlers = Partial<Record<Method, (c: IdentityContext) => Promise<Response> | Response>>;

/** One path, with its slash at the end. */
export interface IdentityRoute {
  path: string;
  /** True when it answers without a token. */
  open?: boolean;
  handlers: Handlers;
}
