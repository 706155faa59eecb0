// Ticks soon, and then just after each full second, until it is stopped.

const AFTER_THE_SECOND_MS = 5;
/** The first requests are answered before the first measurements take the processor. */
const FIRST_MS = 25;

/** Calls `tick` with the time; a tick never waits for the one before. */
export function everySecond(tick: (now: Date) => void, stopped: AbortSignal): void {
  let timer: NodeJS.Timeout | undefined;

  function schedule(): void {
    timer = setTimeout(
      () => {
        schedule();
        tick(new Date());
      },
      1000 - (Date.now() % 1000) + AFTER_THE_SECOND_MS,
    );
  }

  stopped.addEventListener('abort', () => clearTimeout(timer));
  const first = setTimeout(() => tick(new Date()), FIRST_MS);
  stopped.addEventListener('abort', () => clearTimeout(first));
  schedule();
}
