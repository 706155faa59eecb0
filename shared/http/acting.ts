// Who does something to people in this request, as the verbs take it.

import type { Context } from 'hono';
import type { Access, Area, Principal } from '../domain/principal.ts';
import type { Actor } from '../ports/audit.ts';
import type { Deps } from './deps.ts';
import type { AppEnv } from './env.ts';
import { actorOf, allow, identify } from './sign-in.ts';

interface Acting {
  deps: Deps;
  actor: Actor;
  principal: Principal;
  mustStillBeIn: () => Promise<void>;
}

/** `access` and `area` are those of the route. */
export function actingIn(c: Context<AppEnv>, deps: Deps, access: Access = 'admin', area: Area = 'people'): Acting {
  const mustStillBeIn = async (): Promise<void> => {
    await identify(c, deps.doors);
    allow(c, access, area);
  };
  return { deps, actor: actorOf(c), principal: c.get('principal'), mustStillBeIn };
}
