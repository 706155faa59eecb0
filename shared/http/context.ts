// What the host hands to every request, and what the middleware adds to it.

import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Principal, RouteDemand } from '../sign-in/rules.ts';

/** Whose pages are served: those of whoever runs the stack, or those of everybody. */
export const FACES = ['console', 'portal'] as const;
export type Face = (typeof FACES)[number];

/** From the host: the address and scheme of the client; of a header only where a trusted proxy has set it. */
export interface Bindings {
  requestId: string;
  clientAddress: string;
  secure: boolean;
  /** By the listener that took the connection, never by a header; default `console`. */
  face?: Face;
}

export interface Variables {
  principal: Principal;
  /** Of the route that was let through. */
  demand: RouteDemand;
  /** Of a page: only the cookie of a session says who asks. */
  byCookieOnly?: true;
}

export interface AppEnv {
  Bindings: Bindings;
  Variables: Variables;
}

/** The app that functions add their routes to. */
export type App = OpenAPIHono<AppEnv>;
