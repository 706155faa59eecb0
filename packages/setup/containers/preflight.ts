// Checks the settings of a container stack before anything is started. In the role `preflight`,
// planning the container has already checked them. With --of-compose they come from standard input
// (`docker compose config --format json`), so that no container, network or volume is created for
// the check.

import { text } from 'node:stream/consumers';
import { z } from 'zod';
import type { Invocation } from '@holdfast/kit/command';
import { describeProblem } from '../../../shared/settings/setting.ts';
import { isSettingName, SETTINGS } from '../../../shared/settings/table.ts';
import { planContainer } from './plan.ts';

const environmentSchema = z.record(z.string(), z.string().nullable());
const composedSchema = z.object({
  services: z
    .object({ management: z.object({ environment: environmentSchema }) })
    .catchall(z.object({ environment: environmentSchema.nullish() })),
});

/** Our names for secrets that other programs name differently. */
const OURS: Record<string, string> = {
  AUTHENTIK_SECRET_KEY: 'IDENTITY_SECRET_KEY',
  AUTHENTIK_BOOTSTRAP_PASSWORD: 'IDENTITY_ADMIN_PASSWORD',
  MTX_AUTHINTERNALUSERS_0_PASS: 'VIDEO_PUBLISH_PASSWORD',
  MTX_AUTHINTERNALUSERS_1_PASS: 'VIDEO_READ_PASSWORD',
};

/** The program of the role `preflight`; resolves with its exit code. */
export async function preflight({ home, argv }: Invocation): Promise<number> {
  if (argv[0] !== '--of-compose') {
    process.stdout.write('The settings are valid.\n');
    return 0;
  }
  const { services } = composedSchema.parse(JSON.parse(await text(process.stdin)));
  const others = Object.values(services).flatMap(({ environment }) => given(environment ?? {}).filter(isSecret));
  const values = Object.fromEntries([...others, ...given(services.management.environment)]);
  const plan = planContainer(home, 'preflight', values);
  if (!Array.isArray(plan)) return 0;
  process.stderr.write(`${plan.map(describeProblem).join('\n  ')}\n`);
  return 1;
}

function given(environment: z.infer<typeof environmentSchema>): [name: string, value: string][] {
  return Object.entries(environment)
    .map(([name, value]): [string, string] => [OURS[name] ?? name, unescaped(value ?? '')])
    .filter(([, value]) => value !== '');
}

function isSecret([name]: [name: string, value: string]): boolean {
  return isSettingName(name) && SETTINGS[name].kind.secret;
}

/** Compose doubles each dollar sign. */
function unescaped(value: string): string {
  return value.replaceAll('$$', '$');
}
