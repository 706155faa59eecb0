// Who acts in this request, as verbs take it, and the denied attempts of it in the audit log.

import type { Context } from 'hono';
import type { Actor } from '../audit/port.ts';
import type { Access, Area, Principal } from '../sign-in/principal.ts';
import type { AppEnv } from './context.ts';
import type { Deps } from './deps.ts';
import { actorOf, allow, identify } from './sign-in.ts';

// Who does something to people in this request, as the verbs take it.

export interface Acting {
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
