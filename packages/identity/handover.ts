// Defines the handover of the supervisor to the identity process, in one environment variable.

import { z } from 'zod';
import { takenHandover } from '@holdfast/kit/command';

export const IDENTITY_VARIABLE = 'HOLDFAST_IDENTITY';

const handoverSchema = z.object({
  /** Its own database, as its owner. */
  databaseUrl: z.string(),
  /** Seals the keys of tokens; kept outside the database. */
  secretKey: z.string(),
  /** The key of akadmin's API token. */
  apiToken: z.string(),
  address: z.string(),
  httpPort: z.number(),
  ldapPort: z.number(),
  /** The password of the account that reads the whole directory. */
  searchPassword: z.string().optional(),
  bases: z.object({ core: z.string(), web: z.string() }),
});

export type IdentityHandover = z.infer<typeof handoverSchema>;

/** Takes it out of the environment; throws without it. */
export function takeIdentityHandover(environment: NodeJS.ProcessEnv): IdentityHandover {
  return takenHandover(environment, IDENTITY_VARIABLE, handoverSchema, 'start this through ./scripts/start.sh');
}
