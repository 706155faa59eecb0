// Defines the handover of the supervisor to the core process, in one environment variable.

import { z } from 'zod';
import { takenHandover } from '@holdfast/kit/command';

export const CORE_VARIABLE = 'HOLDFAST_CORE';

const handoverSchema = z.object({
  /** The database `cot`, as its owner. */
  databaseUrl: z.string(),
  /** {data_dir}: certificates, users file, retention files. */
  directory: z.string(),
  /** Where the ports listen. */
  addresses: z.array(z.string()),
  apiPort: z.number(),
  enrollmentPort: z.number(),
  streamingPort: z.number(),
  /** Names and addresses in the server certificate. */
  serverNames: z.array(z.string()),
  /** What the core calls itself: SERVER_ADDRESS. */
  serverAddress: z.string(),
  /**
   * Where people are: the LDAP settings in force. Without a password nobody can be looked up, and
   * nobody enrolls.
   */
  ldap: z.object({
    url: z.string(),
    bases: z.object({ core: z.string(), web: z.string() }),
    bindPassword: z.string().optional(),
  }),
  /** Groups that give a right in Holdfast: no channels. */
  roleGroups: z.array(z.string()),
  trustedProxies: z.array(z.string()),
  /** STREAM_THINNING; none: off. */
  thinning: z.union([z.literal('auto'), z.array(z.object({ clients: z.number(), seconds: z.number() }))]),
  /** One node of several; undefined for a core of its own. */
  cluster: z
    .object({
      /** `core`, `core-2`. */
      node: z.string(),
      /** From 0. */
      index: z.number(),
      /** Files of this node alone. */
      directory: z.string(),
      /** Where the other parts of the stack reach it; undefined: under its name. */
      host: z.string().optional(),
      nats: z.object({
        url: z.string(),
        username: z.string(),
        password: z.string(),
        /** PEM of the CA that has issued the server's certificate. */
        caFile: z.string(),
        /**
         * Where the first node puts a certificate for the server, by our CA; undefined: it has
         * one.
         */
        certificateDirectory: z.string().optional(),
      }),
    })
    .optional(),
});

export type CoreHandover = z.infer<typeof handoverSchema>;

/** Takes it out of the environment; throws without it. */
export function takeCoreHandover(environment: NodeJS.ProcessEnv): CoreHandover {
  return takenHandover(environment, CORE_VARIABLE, handoverSchema, 'start this through ./scripts/start.sh');
}
