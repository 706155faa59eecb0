// A line from the terminal that is not shown while it is typed.

import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { StackError } from '../compose/embedded/stack-error.ts';

/** Rejects when the input ends, as with Ctrl-C or Ctrl-D. */
export async function readHidden(question: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  process.stderr.write(question);
  try {
    return await new Promise<string>((resolve, reject) => {
      lines
        .once('line', resolve)
        .once('close', () => reject(new StackError('No password was typed; nothing was changed.', 'try again')));
      lines.once('SIGINT', () => lines.close());
    });
  } finally {
    lines.removeAllListeners('close').close();
    process.stderr.write('\n');
  }
}
