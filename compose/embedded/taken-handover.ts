// What one program hands to another that it starts, in one environment variable.

import type { z } from 'zod';

/** Takes the handover out of the environment, so that nothing else reads it there. `how`: how the program is meant to be started. */
export function takenHandover<T>(
  environment: NodeJS.ProcessEnv,
  variable: string,
  schema: z.ZodType<T>,
  how: string,
): T {
  const text = environment[variable];
  if (text === undefined) throw new Error(`${variable} is not set: ${how}`);
  delete environment[variable];
  return schema.parse(JSON.parse(text));
}
