// What the supervisor hands to the identity process, in one environment variable.

import { z } from 'zod';

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

/** Takes the handover out of the environment, so that nothing else reads it there. */
export function takeIdentityHandover(environment: NodeJS.ProcessEnv): IdentityHandover {
  const text = environment[IDENTITY_VARIABLE];
  if (text === undefined) throw new Error(`${IDENTITY_VARIABLE} is not set: start this through ./scripts/start.sh`);
  delete environment[IDENTITY_VARIABLE];
  return handoverSchema.parse(JSON.parse(text));
}
