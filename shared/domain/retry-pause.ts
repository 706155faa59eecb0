// How long to wait before an alert is tried again, and when to stop trying.

const FIRST_SECONDS = 5;
const LONGEST_AT_FIRST_SECONDS = 50;
const AFTERWARDS_SECONDS = 300;
const AFTER_A_REFUSAL_FOR_GOOD_SECONDS = 3600;
const GIVEN_UP_AFTER_SECONDS = 3 * 86_400;

/** Until an alert is this old, it is tried often, and nothing about it is final. */
export const AT_FIRST_SECONDS = 600;

export interface LastAttempt {
  /** A service asked to be left alone for that long; it gets it, within the same bounds. */
  askedSeconds?: number;
  /** Asking again will not help until somebody changes something. */
  permanent?: boolean;
}

/**
 * Seconds until the next attempt, after `attempts` vain ones, for an alert that is `ageSeconds` old: 5, 10, 20, 40, 50
 * within its first ten minutes, then up to five minutes, or an hour after a refusal for good; undefined when it is given
 * up, after three days.
 */
export function retryPauseSeconds(
  attempts: number,
  ageSeconds: number,
  { askedSeconds = 0, permanent = false }: LastAttempt = {},
): number | undefined {
  if (ageSeconds >= GIVEN_UP_AFTER_SECONDS) return undefined;
  if (ageSeconds >= AT_FIRST_SECONDS && permanent) return AFTER_A_REFUSAL_FOR_GOOD_SECONDS;
  const longest = ageSeconds < AT_FIRST_SECONDS ? LONGEST_AT_FIRST_SECONDS : AFTERWARDS_SECONDS;
  const growing = FIRST_SECONDS * 2 ** Math.min(Math.max(attempts, 1) - 1, 20);
  return Math.min(Math.max(growing, askedSeconds), longest);
}
