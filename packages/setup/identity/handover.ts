// Defines the handover of the container plan to identity-setup, in one environment variable.

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

/**
 * Requires LDAP_WEB_BASE_DN: unlike our programs, a blueprint can't derive it from LDAP_BASE_DN.
 */
export function webBaseProblems(given: Layer, { LDAP_BASE_DN: core }: Settings): Problem[] {
  if (pick([given], 'LDAP_BASE_DN') === undefined || pick([given], 'LDAP_WEB_BASE_DN') !== undefined) return [];
  return [
    {
      name: 'LDAP_WEB_BASE_DN',
      value: undefined,
      message: 'must be set together with LDAP_BASE_DN if authentik serves both',
      remedy: `set LDAP_WEB_BASE_DN=${basesOf(core).web} in .env`,
    },
  ];
}

/** Removes it from the environment. Throws if it is missing. */
export function takeIdentitySetupHandover(environment: NodeJS.ProcessEnv): IdentitySetupHandover {
  return takenHandover(environment, IDENTITY_SETUP_VARIABLE, handoverSchema, 'docker compose runs this');
}
