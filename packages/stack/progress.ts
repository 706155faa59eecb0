// How a start shows itself: lines on a terminal, or messages to the launcher of a detached start.

import type { Progress } from './supervisor.ts';

/** What a detached supervisor tells its launcher. */
export type Message =
  | { kind: 'step'; name: string }
  | { kind: 'done'; name: string; detail: string }
  | { kind: 'warn'; text: string }
  | { kind: 'ready' }
  | { kind: 'failed'; text: string };

/** Progress as one line per step, with the time that it took. */
export function terminalProgress(write: (text: string) => void, interactive: boolean, clock: () => number): Progress {
  return {
    step(name) {
      const begun = clock();
      if (interactive) write(`  ...  ${name}`);
      return (detail) => {
        const seconds = ((clock() - begun) / 1000).toFixed(1);
        write(`${interactive ? '\r' : ''}  ok   ${name.padEnd(13)} ${detail} (${seconds} s)\n`);
      };
    },
    warn: (text) => write(`${interactive ? '\r' : ''}  !    ${text}\n`),
  };
}

/** Progress as messages; a launcher that has gone away is no failure. */
export function messageProgress(send: (message: Message) => void): Progress {
  return {
    step(name) {
      send({ kind: 'step', name });
      return (detail) => send({ kind: 'done', name, detail });
    },
    warn: (text) => send({ kind: 'warn', text }),
  };
}
