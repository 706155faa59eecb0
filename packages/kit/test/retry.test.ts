import { describe, expect, it } from 'vitest';
import { retry } from '../retry.ts';

describe('trying until it works', () => {
  it('tries again after a failure, and says how the first try ended', async () => {
    const messages: unknown[] = [];
    let tries = 0;
    const outcome = await retry(
      async () => {
        tries += 1;
        if (tries < 2) throw new Error(`try ${tries}`);
        return 'done';
      },
      {
        stopped: new AbortController().signal,
        failed: (error, retryInMs) => messages.push([(error as Error).message, retryInMs]),
        tried: (worked) => messages.push(worked),
      },
    );
    expect([outcome, messages]).toEqual(['done', [['try 1', 500], false, true]]);
  });

  it('pauses longer and longer, and never for more than some seconds', async () => {
    const stopping = new AbortController();
    const pauses: number[] = [];
    await retry(() => Promise.reject(new Error('never')), {
      stopped: stopping.signal,
      failed: () => undefined,
      async pause(ms) {
        pauses.push(ms);
        if (pauses.length === 6) stopping.abort();
      },
    });
    expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 4_000, 4_000]);
  });

  it('ends when it is stopped, in a pause too', async () => {
    const stopping = new AbortController();
    const outcome = retry(() => Promise.reject(new Error('never')), {
      stopped: stopping.signal,
      failed: () => stopping.abort(),
    });
    expect(await outcome).toBeUndefined();
  });

  it('gives up at once on a failure that no try can mend', async () => {
    const final = { stopped: new AbortController().signal, failed: () => undefined, isFinal: () => true };
    await expect(retry(() => Promise.reject(new Error('newer')), final)).rejects.toThrow('newer');
  });
});
