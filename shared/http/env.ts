// What the host hands to every request, and what the middleware adds to it.

import type { OpenAPIHono } from '@hono/zod-openapi';
import type { Principal } from '../domain/principal.ts';

/** From the host: the address and scheme of the client; of a header only where a trusted proxy has set it. */
export interface Bindings {
  requestId: string;
  clientAddress: string;
  secure: boolean;
}

export interface Variables {
  principal: Principal;
}

export interface AppEnv {
  Bindings: Bindings;
  Variables: Variables;
}

/** The app that functions add their routes to. */
export type App = OpenAPIHono<AppEnv>;
