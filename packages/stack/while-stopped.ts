// Work on the data directory of an embedded stack that is stopped: nobody can start it meanwhile.

import { join } from 'node:path';
import type { Layout } from './process/layout.ts';
import { lockDirectory } from './process/ownership.ts';

/** Rejects with a StackError while a stack runs on it. Ends the process when another takes the directory all the same. */
export async function whileStopped<T>(
  home: string,
  layout: Layout,
  say: (text: string) => void,
  work: () => T | Promise<T>,
): Promise<T> {
  const guard = await lockDirectory(
    join(home, 'packages/stack/process/guard.sh'),
    layout,
    { step: () => () => undefined, warn: (text) => say(`${text}\n`), event: () => undefined },
    () => {
      say(
        `Another stack has taken ${layout.root}. Remedy: stop it and try again; the next start finishes what was begun.\n`,
      );
      process.exit(1);
    },
    new AbortController().signal,
  );
  try {
    return await work();
  } finally {
    await guard.release();
  }
}
