// What the plan of the container hands to the program identity-setup, in one environment variable.

import { join } from 'node:path';
import { z } from 'zod';
import { takenHandover } from '@holdfast/kit/command';
import { basesOf } from '@holdfast/kit/directory';
import { type Layer, pick } from '../../../shared/settings/load.ts';
import type { Problem } from '../../../shared/settings/setting.ts';
import type { Settings } from '../../../shared/settings/table.ts';

export const IDENTITY_SETUP_VARIABLE = 'HOLDFAST_IDENTITY_SETUP';

const handoverSchema = z.object({
  /** Of authentik. */
  url: z.string(),
  bootstrapToken: z.string(),
  managementToken: z.string(),
  keyFile: z.string(),
});

export type IdentitySetupHandover = z.infer<typeof handoverSchema>;

/** `directory`: the volume of the outpost. */
export function identitySetupHandover(directory: string, settings: Settings): IdentitySetupHandover {
  return {
    url: settings.IDENTITY_URL ?? '',
    bootstrapToken: settings.IDENTITY_BOOTSTRAP_TOKEN?.reveal() ?? '',
    managementToken: settings.IDENTITY_TOKEN?.reveal() ?? '',
    keyFile: join(directory, 'token'),
  };
}

/** A blueprint cannot make the one base of the other, as everybody else does. */
export function webBaseProblems(given: Layer, { LDAP_BASE_DN: core }: Settings): Problem[] {
  if (pick([given], 'LDAP_BASE_DN') === undefined || pick([given], 'LDAP_WEB_BASE_DN') !== undefined) return [];
  return [
    {
      name: 'LDAP_WEB_BASE_DN',
      value: undefined,
      message: 'must be set beside LDAP_BASE_DN where authentik serves both',
      remedy: `set LDAP_WEB_BASE_DN=${basesOf(core).web} in .env`,
    },
  ];
}

/** Takes it out of the environment; throws without it. */
export function takeIdentitySetupHandover(environment: NodeJS.ProcessEnv): IdentitySetupHandover {
  return takenHandover(environment, IDENTITY_SETUP_VARIABLE, handoverSchema, 'docker compose runs this');
}
