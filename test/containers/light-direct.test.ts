// The light stack in direct mode, brought up as an operator does it, on the ports of production.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ComposeStack, composeStack } from './compose-stack.ts';
import { obstacle, sharedEngine } from './shared-engine.ts';

describe.skipIf(obstacle !== '')('the light stack in containers', () => {
  let stack: ComposeStack;
  beforeAll(async () => {
    const started = performance.now();
    stack = await composeStack(await sharedEngine(), { production: true, layers: ['compose/compose.runtime.yaml'] });
    process.stdout.write(`light stack in direct mode: ${String(Math.round(performance.now() - started))} ms\n`);
  });
  afterAll(async () => {
    await stack?.down();
  });

  it('comes up healthy from one command', async () => {
    const states = (await stack.ps()).map(({ Service, State, Health, ExitCode }) => [Service, State, Health, ExitCode]);
    expect(states.toSorted()).toEqual([]);
  });
});
