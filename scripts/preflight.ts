// What is wrong with the settings of a container stack, before anything is started. As role `preflight` of our image they were
// judged before this is reached; with --of-compose they come as `docker compose config --format json` on the standard input, so
// that no container, network or volume of the stack is made for it.

import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { describeProblem } from '../shared/config/problem.ts';
import { planContainer } from './container-plan.ts';

const composedSchema = z.object({
  services: z.object({ management: z.object({ environment: z.record(z.string(), z.string().nullable()) }) }),
});

async function main(): Promise<number> {
  if (process.argv[2] !== '--of-compose') {
    process.stdout.write('The settings are good.\n');
    return 0;
  }
  const { services } = composedSchema.parse(JSON.parse(await text(process.stdin)));
  const { environment } = services.management;
  const values = Object.entries(environment).map(([name, value]) => [name, unescaped(value ?? '')] as const);
  const plan = planContainer(resolve(import.meta.dirname, '..'), 'preflight', Object.fromEntries(values));
  if (!Array.isArray(plan)) return 0;
  process.stderr.write(`${plan.map(describeProblem).join('\n  ')}\n`);
  return 1;
}

/** Compose writes each dollar twice, so that its own reading of the text gives one. */
function unescaped(value: string): string {
  return value.replaceAll('$$', '$');
}

process.exit(await main());
