// Who has failed too often waits. The same rule guards every door that takes a password: ten
// failures of one key within five minutes, then fifteen minutes locked. A success forgives nothing:
// whoever has an account could else guess on without end.

import { MINUTE_MS } from '../time.ts';

export interface LockoutRule {
  failures: number;
  withinMs: number;
  lockedMs: number;
  /**
   * Keys that are remembered. When there are more, the one whose last failure is oldest is
   * forgotten, locked ones last, never the newest.
   */
  keys: number;
}

export interface LockoutState {
  /** Present while the key is locked. */
  lockedUntilMs?: number;
}

/** Times are milliseconds that the caller passes in; they never go back. */
export interface Lockout {
  /** True when no key can be locked: the quick answer for the usual case. */
  isFree(): boolean;
  check(key: string, nowMs: number): LockoutState;
  /** How many more failures lock the key; 0 while it is locked. */
  left(key: string, nowMs: number): number;
  /** Counts a failure. One of a locked key does not count. */
  failed(key: string, nowMs: number): LockoutState;
  /**
   * Replaces the state of a key by one that was counted elsewhere. Failures: oldest first.
   */
  adopt(key: string, state: { failedMs: readonly number[]; lockedUntilMs: number | undefined }, nowMs: number): void;
  /** All that counts now, as `adopt` takes it. */
  states(nowMs: number): { key: string; failedMs: readonly number[]; lockedUntilMs: number | undefined }[];
  /** The locked keys, soonest free first, with the failures that locked them. */
  list(nowMs: number): { key: string; lockedUntilMs: number; failures: number }[];
  /** Forgets a key; false when nothing was known of it. */
  release(key: string): boolean;
}

export const DEFAULT_RULE: LockoutRule = {
  failures: 10,
  withinMs: 5 * MINUTE_MS,
  lockedMs: 15 * MINUTE_MS,
  keys: 10_000,
};

export function createLockout(rule: Partial<LockoutRule> = {}): Lockout {
  const { failures, withinMs, lockedMs, keys } = { ...DEFAULT_RULE, ...rule };
  /** Times of failures. The key with the oldest last failure comes first, but for adopted ones. */
  const failing = new Map<string, number[]>();
  /** When the lock ends, soonest first, but for adopted ones. */
  const locked = new Map<string, number>();

  function forgetPast(nowMs: number): void {
    for (const [key, until] of locked) {
      if (until > nowMs) break;
      locked.delete(key);
    }
    for (const [key, times] of failing) {
      if (nowMs - (times.at(-1) ?? 0) < withinMs) break;
      failing.delete(key);
    }
  }

  /**
   * The key that failed just now stays: else whoever fills the table with locks could guess on
   * freely.
   */
  function makeRoom(newest: string): void {
    if (failing.size + locked.size <= keys) return;
    for (const table of [failing, locked]) {
      const [oldest] = table.keys();
      if (oldest !== undefined && oldest !== newest) {
        table.delete(oldest);
        return;
      }
    }
  }

  function check(key: string, nowMs: number): LockoutState {
    const until = locked.get(key);
    return until === undefined || until <= nowMs ? {} : { lockedUntilMs: until };
  }

  function left(key: string, nowMs: number): number {
    if (check(key, nowMs).lockedUntilMs !== undefined) return 0;
    return failures - (failing.get(key) ?? []).filter((time) => nowMs - time < withinMs).length;
  }

  return {
    isFree: () => locked.size === 0,
    check,
    left,

    failed(key, nowMs) {
      forgetPast(nowMs);
      if (check(key, nowMs).lockedUntilMs !== undefined) return check(key, nowMs);
      locked.delete(key);
      const times = (failing.get(key) ?? []).filter((time) => nowMs - time < withinMs);
      times.push(nowMs);
      failing.delete(key);
      if (times.length < failures) failing.set(key, times);
      else locked.set(key, nowMs + lockedMs);
      makeRoom(key);
      return check(key, nowMs);
    },

    adopt(key, { failedMs, lockedUntilMs }, nowMs) {
      forgetPast(nowMs);
      failing.delete(key);
      locked.delete(key);
      if (lockedUntilMs !== undefined && lockedUntilMs > nowMs) locked.set(key, lockedUntilMs);
      else if (lockedUntilMs === undefined && failedMs.length > 0) failing.set(key, [...failedMs]);
      makeRoom(key);
    },

    states: (nowMs) => [...lockedStates(locked, nowMs), ...failingStates(failing, nowMs - withinMs)],
    list: (nowMs) => soonestFree(locked, nowMs).map(([key, lockedUntilMs]) => ({ key, lockedUntilMs, failures })),

    release(key) {
      const wasFailing = failing.delete(key);
      return locked.delete(key) || wasFailing;
    },
  };
}

type KeyState = ReturnType<Lockout['states']>[number];

function lockedStates(locked: ReadonlyMap<string, number>, nowMs: number): KeyState[] {
  return soonestFree(locked, nowMs).map(([key, lockedUntilMs]) => ({ key, failedMs: [], lockedUntilMs }));
}

function failingStates(failing: ReadonlyMap<string, number[]>, sinceMs: number): KeyState[] {
  const all = [...failing].map(([key, times]) => ({ key, failedMs: times.filter((time) => time > sinceMs) }));
  return all.filter(({ failedMs }) => failedMs.length > 0).map((each) => ({ ...each, lockedUntilMs: undefined }));
}

function soonestFree(locked: ReadonlyMap<string, number>, nowMs: number): [string, number][] {
  return [...locked].filter(([, until]) => until > nowMs).toSorted(([, a], [, b]) => a - b);
}

const MAPPED = /^::ffff:(?:(\d+\.\d+\.\d+\.\d+)|([\da-f]{1,4}):([\da-f]{1,4}))$/;

/**
 * What counts as one address: IPv4 by itself, however it is written, IPv6 by its /64
 * (`2001:db8:0:1::/64`, which stands for itself).
 */
export function lockoutAddress(address: string): string {
  const plain = address.toLowerCase().replace(/(%.*|\/64)$/, '');
  if (!plain.includes(':')) return plain;
  const mapped = MAPPED.exec(plain);
  if (mapped?.[1] !== undefined) return mapped[1];
  if (mapped !== null) {
    return [mapped[2], mapped[3]]
      .map((group) => Number.parseInt(group ?? '0', 16))
      .flatMap((group) => [group >> 8, group & 0xff])
      .join('.');
  }
  const [head = '', tail] = plain.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const ipv4Tail = after.at(-1)?.includes('.') ? 1 : 0;
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length - ipv4Tail);
  const groups = [...before, ...Array.from({ length: zeros }, () => '0'), ...after];
  const prefix = groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${prefix.join(':')}::/64`;
}
