// Gives another part of the stack what it needs of the core's files, as long as a process runs: they come, and change, when they will.

import { messageOf } from '@holdfast/kit/app-error';

const LOOK_EVERY_MS = 5_000;
/** The parts make their files one after the other, and may come up later than this process. */
const SAID_AFTER_FAILURES = 4;

/** Now and every few seconds, until it is stopped. `failed` hears of it once, when it does not pass by itself. */
export function keepGiving(give: () => void, failed: (message: string) => void, everyMs = LOOK_EVERY_MS): () => void {
  let failures = 0;
  const attempt = (): void => {
    try {
      give();
      failures = 0;
    } catch (error) {
      if (++failures === SAID_AFTER_FAILURES) failed(messageOf(error));
    }
  };
  attempt();
  const timer = setInterval(attempt, everyMs).unref();
  return () => clearInterval(timer);
}
