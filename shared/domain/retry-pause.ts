// How long to wait before an alert is tried again, and when to stop trying.

const FIRST_SECONDS = 5;
const LONGEST_AT_FIRST_SECONDS = 50;
const AT_FIRST_SECONDS = 600;
const LONGEST_SECONDS = 300;
const GIVEN_UP_AFTER_SECONDS = 3 * 86_400;

/**
 * Seconds until the next attempt, after `attempts` vain ones, for an alert that is `ageSeconds` old: 5, 10, 20, 40, 50
 * within its first ten minutes, then five minutes; undefined when it is given up, after three days. A service that asks
 * for more time gets it, within the same bounds.
 */
export function retryPauseSeconds(attempts: number, ageSeconds: number, askedSeconds = 0): number | undefined {
  if (ageSeconds >= GIVEN_UP_AFTER_SECONDS) return undefined;
  const longest = ageSeconds < AT_FIRST_SECONDS ? LONGEST_AT_FIRST_SECONDS : LONGEST_SECONDS;
  const growing = FIRST_SECONDS * 2 ** Math.min(Math.max(attempts, 1) - 1, 20);
  return Math.min(Math.max(growing, askedSeconds), longest);
}
