import { describe, expect, it } from 'vitest';
import { CircuitBreaker } from '../timeout.ts';

describe('a circuit breaker', () => {
  it('opens when a call fails or takes too long, pauses for a while, and closes with an answer', async () => {
    let steadyMs = 0;
    const breaker = new CircuitBreaker({ withinMs: 20, pauseMs: 1000, steadyMs: () => steadyMs });
    expect(await breaker.answered(Promise.resolve(0))).toBe(0);
    expect([breaker.isOpen(), breaker.isPaused()]).toEqual([false, false]);
    for (const failing of [Promise.reject(new Error('refused')), new Promise<never>(() => undefined)]) {
      expect(await breaker.answered(failing)).toBeUndefined();
      expect([breaker.isOpen(), breaker.isPaused()]).toEqual([true, true]);
      steadyMs += 999;
      expect(breaker.isPaused()).toBe(true);
      steadyMs += 1;
      expect([breaker.isOpen(), breaker.isPaused()]).toEqual([true, false]);
      await breaker.answered(Promise.resolve([]));
      expect(breaker.isOpen()).toBe(false);
    }
  });
});
