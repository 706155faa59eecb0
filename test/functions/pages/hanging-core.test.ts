// What pages show while the core takes connections and never answers.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { peopleVisit } from './people-visit.ts';

const PATIENCE_MS = 6_000;

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

async function answeredBy(work: Promise<Response>): Promise<Response | undefined> {
  let answer: Response | undefined;
  void work.then((response) => (answer = response));
  for (let passed = 0; passed <= PATIENCE_MS && answer === undefined; passed += 100) {
    await vi.advanceTimersByTimeAsync(100);
    await new Promise((turn) => setImmediate(turn));
  }
  return answer;
}

test.each([
  ['console', '/devices'],
  ['console', '/certificates'],
  ['console', '/plugins'],
  ['console', '/database/retention'],
  ['console', 'nora'],
  ['portal', '/'],
] as const)('at the %s, %s comes within 6 s while the core hangs, and says so', async (face, path) => {
  const { get, world, pathOf } = await peopleVisit({ face });
  const never = (): Promise<never> => new Promise(() => undefined);
  for (const port of [world.deps.core, world.deps.coreRetention])
    for (const name of Object.keys(port)) Object.assign(port, { [name]: never });
  const answer = await answeredBy(get(path === 'nora' ? await pathOf('nora') : path));
  expect(answer?.status).toBeLessThan(500);
  expect(await answer?.text()).toContain('The core did not answer within 6 s.');
});
