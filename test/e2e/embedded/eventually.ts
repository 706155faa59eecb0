// Waiting for what will be so, without knowing when.

/** Asks until `holds` is true, or fails after `withinMs`. */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs: number,
): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (Date.now() < deadline) {
    if (await holds()) return;
    await new Promise((tick) => setTimeout(tick, 50));
  }
  throw new Error(`not within ${withinMs} ms: ${what}`);
}
