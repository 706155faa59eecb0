// Reports the progress and events of a stack to the terminal.

export interface Report {
  /** Begins a step. Call the returned function with the result to end it. */
  step(name: string): (detail: string) => void;
  warn(text: string): void;
  event(name: string, fields: Record<string, unknown>): void;
}

/** Messages of a detached supervisor to its launcher. */
export type Message =
  | { kind: 'step'; name: string }
  | { kind: 'done'; name: string; detail: string }
  | { kind: 'warn'; text: string }
  | { kind: 'ready' }
  | { kind: 'failed'; text: string };

/** Progress as one line per step, with its duration. */
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

/** Progress as messages to the launcher. */
export function messageProgress(send: (message: Message) => void): Progress {
  return {
    step(name) {
      send({ kind: 'step', name });
      return (detail) => send({ kind: 'done', name, detail });
    },
    warn: (text) => send({ kind: 'warn', text }),
  };
}

/** The part of a report that the terminal shows. */
export type Progress = Pick<Report, 'step' | 'warn'>;
