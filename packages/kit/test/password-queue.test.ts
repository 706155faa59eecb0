// Honest clients keep their place while others guess, and the time of a refusal tells nothing.

import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { PasswordQueue } from '../passwords/password-queue.ts';

/** A directory that takes 20 ms for a name that exists and none for others, on a clock that the test moves. */
function world(minRefusalMs = 60) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const queue = new PasswordQueue({ steadyMs: () => performance.now(), minRefusalMs });
  const requests: string[] = [];
  const ask = (address: string, username: string, password = 'wrong', tookMs = 20) =>
    queue.ask({ address, username }, async () => {
      requests.push(`${username} ${address}`);
      if (tookMs > 0) await new Promise((over) => setTimeout(over, tookMs));
      return password === 'right' ? username : undefined;
    });
  async function timed<T>(work: Promise<T>): Promise<{ ms: number; value: T }> {
    const begun = performance.now();
    let end: { ms: number; value: T } | undefined;
    void work.then((value) => (end = { ms: performance.now() - begun, value }));
    while (end === undefined) await vi.advanceTimersByTimeAsync(1);
    return end;
  }
  return { ask, asked: requests, timed };
}

describe('the queue of a door', () => {
  it('lets an honest client in soon though a thousand addresses guess at one name', async () => {
    const { ask, timed } = world();
    for (let number = 0; number < 1_000; number++) void ask(`192.0.${number >> 8}.${number & 255}`, 'webadmin');
    const { ms, value } = await timed(ask('198.51.100.7', 'ada', 'right'));
    expect(value).toEqual({ found: 'ada' });
    expect(ms).toBeLessThan(100);
  });

  it('lets those go last whose address has failed, one by one, and those first who have signed in from there', async () => {
    const { ask, asked: requests, timed } = world();
    await timed(ask('192.0.2.1', 'eve'));
    await timed(ask('192.0.2.2', 'ada', 'right'));
    requests.length = 0;
    for (let number = 0; number < 6; number++) void ask(`192.0.2.${10 + number}`, `busy${number}`);
    const guess = timed(ask('192.0.2.1', 'eve'));
    for (const name of ['ben', 'cleo']) void ask('192.0.2.3', name);
    const proven = timed(ask('192.0.2.2', 'ada', 'right'));
    await guess;
    await proven;
    expect(requests.slice(6, 10)).toEqual(['ada 192.0.2.2', 'ben 192.0.2.3', 'cleo 192.0.2.3', 'eve 192.0.2.1']);
  });

  it('refuses a name that exists and one that does not after the same time', async () => {
    const { ask, timed } = world();
    const times = [
      await timed(ask('192.0.2.1', 'ada')),
      await timed(ask('192.0.2.2', 'nobody', 'wrong', 0)),
      await timed(ask('192.0.2.3', 'ben')),
    ].map(({ ms }) => Math.round(ms));
    expect(times).toEqual([60, 60, 60]);
    const slow = await timed(ask('192.0.2.4', 'ada', 'wrong', 300));
    const quick = await timed(ask('192.0.2.5', 'nobody', 'wrong', 0));
    expect(Math.abs(slow.ms - quick.ms)).toBeLessThan(5);
  });

  it('answers at once to who signs in, and says that it is busy rather than let anybody wait for ever', async () => {
    const { ask, timed } = world();
    expect((await timed(ask('192.0.2.1', 'ada', 'right'))).ms).toBeLessThan(25);
    await timed(ask('192.0.2.9', 'eve'));
    const guesses = Array.from({ length: 300 }, () => ask('192.0.2.9', 'eve', 'wrong', 2_000));
    expect((await timed(Promise.all(guesses))).value).toContain('busy');
  });

  it('passes on what the directory fails with, and goes on', async () => {
    const { ask, timed } = world();
    const queue = new PasswordQueue({ steadyMs: () => performance.now() });
    const failing = queue.ask({ address: '192.0.2.1', username: 'ada' }, () => Promise.reject(new Error('away')));
    await expect(failing).rejects.toThrow('away');
    expect((await timed(ask('192.0.2.1', 'ada', 'right'))).value).toEqual({ found: 'ada' });
  });
});
