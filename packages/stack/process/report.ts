// What a person sees of the start and of the life of the stack.

export interface Report {
  /** A step begins; the function that comes back ends it with what it found. */
  step(name: string): (detail: string) => void;
  warn(text: string): void;
  event(name: string, fields: Record<string, unknown>): void;
}

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

/** What the person at the terminal sees. */
export type Progress = Pick<Report, 'step' | 'warn'>;
