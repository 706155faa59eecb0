// What a supervisor hands to the processes that it starts, in one environment variable. Without it (containers), a
// process reads the environment itself.

import { z } from 'zod';
import type { Layer } from './load.ts';
import type { Mode } from './rules.ts';

export const HANDOVER_VARIABLE = 'HOLDFAST_HANDOVER';

export const handoverSchema = z.object({
  mode: z.enum(['embedded', 'container', 'light']),
  layers: z.array(
    z.object({
      source: z.enum(['command line', 'environment', 'env file', 'generated', 'stack', 'default', 'unset']),
      values: z.record(z.string(), z.string()),
    }),
  ),
  /** Where the env file is, or would be. */
  envFile: z.string().optional(),
  /** Directories of the stack whose file systems are watched, besides those that settings name. */
  dataPlaces: z.array(z.string()).optional(),
  /** The Compose project of the stack, whose containers are watched. */
  composeProject: z.string().optional(),
  /** The address of --listen with the files of its certificate. */
  tls: z.object({ address: z.string(), certificateFile: z.string(), keyFile: z.string() }).optional(),
});

export type Handover = z.infer<typeof handoverSchema>;

/** The handover of this process; without a supervisor, the environment in container mode. */
export function readHandover(environment: NodeJS.ProcessEnv): Handover & { layers: Layer[]; mode: Mode } {
  const text = environment[HANDOVER_VARIABLE];
  if (text !== undefined) return handoverSchema.parse(JSON.parse(text));
  return { mode: 'container', layers: [environmentLayer(environment)] };
}

/** The process environment as a layer. */
export function environmentLayer(environment: NodeJS.ProcessEnv): Layer & { values: Record<string, string> } {
  const entries = Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { source: 'environment', values: Object.fromEntries(entries) };
}

/** What workerd has to know: that somebody may vacuum, but not as whom, for the Node host does it. */
export function forWorkerd(handover: Handover): Handover {
  const name = 'CORE_DATABASE_OWNER_URL';
  const kept = (values: Record<string, string>): Record<string, string> =>
    values[name] ? { ...values, [name]: 'postgres://known-to-the-host/cot' } : values;
  return { ...handover, layers: handover.layers.map((layer) => ({ ...layer, values: kept(layer.values) })) };
}

/** Removes PGSSL, PGTARGETSESSIONATTRS and the like: our database URLs are complete, and the client would mix them in. */
export function forgetPostgresVariables(environment: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(environment)) if (/^PG[A-Z_]+$/.test(name)) delete environment[name];
}
