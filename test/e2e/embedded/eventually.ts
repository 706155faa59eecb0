// Waiting for what will be so, without knowing when.

/** Much on a loaded machine, and less than what a cache keeps by itself (20 s). */
const WITHIN_MS = 15_000;
const SOON_MS = 50;
/** A question that takes work is asked less often the longer it waits. */
const SELDOM_MS = 200;

/** Asks until `holds` is true, or fails after `withinMs`. */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = WITHIN_MS,
): Promise<void> {
  const begun = Date.now();
  for (let waited = 0; waited < withinMs; waited = Date.now() - begun) {
    const answer = holds();
    if (await answer) return;
    const pause = typeof answer === 'boolean' ? SOON_MS : Math.min(SELDOM_MS, Math.max(SOON_MS, waited / 20));
    await new Promise((tick) => setTimeout(tick, pause));
  }
  throw new Error(`not within ${withinMs} ms: ${what}`);
}
