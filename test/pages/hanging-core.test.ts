// What pages show while the core takes connections and never answers.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { peopleVisit } from '../people/people-visit.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

test.each([
  ['console', '/devices'],
  ['console', '/certificates'],
  ['console', '/plugins'],
  ['console', '/profiles'],
  ['console', '/video'],
  ['console', '/database/retention'],
  ['console', 'nora'],
  ['portal', '/'],
] as const)('at the %s, %s comes within 6 s while the core hangs, and says so', async (face, path) => {
  const { get, world, pathOf } = await peopleVisit({ face });
  const { promise: requested, resolve: ask } = Promise.withResolvers<void>();
  const never = (): Promise<never> => {
    ask();
    return new Promise(() => undefined);
  };
  for (const port of [world.deps.core, world.deps.coreContents, world.deps.coreRetention])
    for (const name of Object.keys(port)) Object.assign(port, { [name]: never });
  const answering = get(path === 'nora' ? await pathOf('nora') : path);
  await requested;
  for (let turn = 0; turn < 5; turn += 1) await new Promise((next) => setImmediate(next));
  await vi.advanceTimersByTimeAsync(6_000);
  const answer = await answering;
  expect(answer.status).toBeLessThan(500);
  expect(await answer.text()).toContain('The core did not answer within 6 s.');
});

test('what goes together and is no list of the core takes the time that it needs', async () => {
  const { get, world } = await peopleVisit({ face: 'console' });
  const { promise: verdict, resolve: verified } = Promise.withResolvers<void>();
  const { promise: requested, resolve: ask } = Promise.withResolvers<void>();
  world.deps.audit.verify = async () => {
    ask();
    await verdict;
    return { ok: true, records: 0, first_broken: null };
  };
  const answering = get('/audit?verify=yes');
  await requested;
  await vi.advanceTimersByTimeAsync(20_000);
  verified();
  expect(await (await answering).text()).not.toContain('did not answer');
});

test('who waits for the list of another gets no later answer than that', async () => {
  const { get, world } = await peopleVisit({ face: 'console' });
  const { promise: requested, resolve: ask } = Promise.withResolvers<void>();
  world.deps.together = () => {
    ask();
    return new Promise(() => undefined);
  };
  const answering = get('/devices');
  await requested;
  for (let turn = 0; turn < 5; turn += 1) await new Promise((next) => setImmediate(next));
  await vi.advanceTimersByTimeAsync(6_000);
  expect(await (await answering).text()).toContain('The core did not answer within 6 s.');
});
