import { describe, expect, it } from 'vitest';
import { MINUTE_MS } from '@holdfast/kit/time';
import { AuditThrottle } from '../../shared/audit/backlog.ts';

describe('a flood of denied attempts', () => {
  it('is let in as a burst, then sixty a minute, and the rest is counted', () => {
    const throttle = new AuditThrottle();
    const letIn = (from: number) =>
      Array.from({ length: 1_100 }, () => throttle.lets('sign-in', from)).filter(Boolean).length;
    expect(letIn(0)).toBe(1_000);
    expect([throttle.takeOmitted(1_000), throttle.hasOmitted()]).toEqual([undefined, true]);
    expect(letIn(MINUTE_MS)).toBe(60);
    expect(throttle.takeOmitted(MINUTE_MS + 200)).toEqual({ 'sign-in': 100 });
    expect(throttle.takeOmitted(2 * MINUTE_MS)).toEqual({ 'sign-in': 1_040 });
    expect(letIn(12 * MINUTE_MS)).toBe(660);
    expect(throttle.takeOmitted(13 * MINUTE_MS)).toEqual({ 'sign-in': 440 });
    expect([throttle.takeOmitted(90 * MINUTE_MS), throttle.hasOmitted()]).toEqual([undefined, false]);
    expect(letIn(90 * MINUTE_MS)).toBe(1_000);
  });

  it('hides nothing of another kind', () => {
    const throttle = new AuditThrottle();
    for (let n = 0; n < 5_000; n += 1) throttle.lets('sign-in.locked', n);
    expect([throttle.lets('sign-in', 5_000), throttle.lets('sign-in', 5_001)]).toEqual([true, true]);
    expect(throttle.takeOmitted(MINUTE_MS)).toEqual({ 'sign-in.locked': 4_000 });
  });

  it('tells a bounded number of kinds apart', () => {
    const throttle = new AuditThrottle();
    const kinds = Array.from({ length: 2_000 }, (_, n) => throttle.lets(`kind-${n}`, 0));
    expect(kinds.filter(Boolean)).toHaveLength(1_100);
    expect(throttle.takeOmitted(MINUTE_MS)).toEqual({ other: 900 });
  });
});
