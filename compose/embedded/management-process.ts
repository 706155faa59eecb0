// The management process as the supervisor starts it: what it needs comes in one variable, and it says when it listens.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Layout } from './layout.ts';
import type { ProcessSpec } from './supervised-process.ts';

export interface NodeProcessOptions {
  layout: Layout;
  /** The bundled program. */
  program: string;
  /** Added to the environment. */
  environment: Record<string, string>;
  /** An address of the process that answers 200 without sign-in. */
  pingUrl: string;
}

/** A Node process of the stack whose output goes to DIR/logs/<role>.log. */
export function nodeProcess(role: string, { layout, program, environment, pingUrl }: NodeProcessOptions): ProcessSpec {
  const logFile = join(layout.logs, `${role}.log`);
  const listening = new WeakSet<ChildProcess>();

  function start(): ChildProcess {
    const log = openSync(logFile, 'a', 0o600);
    try {
      const child = spawn(process.execPath, [program], {
        cwd: layout.root,
        env: { ...process.env, ...environment },
        detached: true,
        stdio: ['ignore', log, log, 'ipc'],
      });
      child.once('message', () => listening.add(child));
      return child;
    } finally {
      closeSync(log);
    }
  }

  async function answers(child: ChildProcess): Promise<boolean> {
    if (!listening.has(child)) return false;
    const response = await fetch(pingUrl, { signal: AbortSignal.timeout(2000) });
    return response.ok;
  }

  return { role, start, answers, stopSignal: 'SIGTERM', stopWithinMs: 12_000, lastWords: () => lastLine(logFile) };
}

function lastLine(logFile: string): string | undefined {
  const line = readFileSync(logFile, 'utf8').slice(-4096).trim().split('\n').at(-1);
  return line === undefined || line === '' ? undefined : line.slice(0, 500);
}
