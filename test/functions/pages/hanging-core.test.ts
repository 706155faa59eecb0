// What pages show while the core takes connections and never answers.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { peopleVisit } from './people-visit.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

test.each([
  ['console', '/devices'],
  ['console', '/certificates'],
  ['console', '/plugins'],
  ['console', '/database/retention'],
  ['console', 'nora'],
  ['portal', '/'],
] as const)('at the %s, %s comes within 6 s while the core hangs, and says so', async (face, path) => {
  const { get, world, pathOf } = await peopleVisit({ face });
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
  const never = (): Promise<never> => {
    ask();
    return new Promise(() => undefined);
  };
  for (const port of [world.deps.core, world.deps.coreRetention])
    for (const name of Object.keys(port)) Object.assign(port, { [name]: never });
  const answering = get(path === 'nora' ? await pathOf('nora') : path);
  await asked;
  for (let turn = 0; turn < 5; turn += 1) await new Promise((next) => setImmediate(next));
  await vi.advanceTimersByTimeAsync(6_000);
  const answer = await answering;
  expect(answer.status).toBeLessThan(500);
  expect(await answer.text()).toContain('The core did not answer within 6 s.');
});
