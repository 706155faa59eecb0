// The one light stack of a run, in subdomain mode with public certificates from an ACME server of
// the tests: brought up by the first file that asks, left healthy by every file.

import { PORTABLE_SETTINGS } from '../embedded/portable.ts';
import { ACME_LAYER, acmeFiles, type SharedLight, withPublicCa } from './acme.ts';
import { composeStack } from './compose-stack.ts';
import { sharedEngine } from './shared-engine.ts';

export type { SharedLight } from './acme.ts';

const NAME = 'cot.example.org';

let shared: Promise<SharedLight> | undefined;

export function sharedLight(): Promise<SharedLight> {
  shared ??= bringUp();
  return shared;
}

async function bringUp(): Promise<SharedLight> {
  const options = {
    name: NAME,
    layers: [ACME_LAYER],
    files: await acmeFiles(NAME, '172.16.65.2'),
    env: PORTABLE_SETTINGS,
  };
  const started = performance.now();
  const stack = await composeStack(await sharedEngine(), options);
  process.stdout.write(`light stack: built and up in ${String(Math.round(performance.now() - started))} ms\n`);
  return withPublicCa(stack);
}
