// Locks a data directory through guard.sh, which outlives a killed supervisor to end its processes.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { StackError } from '@holdfast/kit/app-error';

const LOCKED_ELSEWHERE = 75;
const NO_LOCK_FILE = 74;
/** The guard ends remaining processes within 8 seconds. */
const RELEASE_WITHIN_MS = 12_000;

export interface Guard {
  /** If the supervisor dies, the guard ends this process, with this signal first. */
  own(pid: number, signal: NodeJS.Signals): void;
  free(pid: number): void;
  /** Ends the processes still owned, then releases the lock. */
  release(): Promise<void>;
}

export function guardScript(home: string): string {
  return join(home, 'packages/stack/process/guard.sh');
}

/**
 * Takes the lock; resolves with undefined if another stack holds it. Replaces a guard that dies,
 * and calls `lost` if another process then holds the lock.
 */
export async function takeLock(script: string, lockFile: string, lost: () => void): Promise<Guard | undefined> {
  const owned = new Map<number, NodeJS.Signals>();
  let released = false;
  let child = await startGuard(script, lockFile);
  if (child === undefined) return undefined;
  watch(child);

  function watch(guard: ChildProcess): void {
    guard.once('exit', () => {
      if (!released) void replace();
    });
  }

  async function replace(): Promise<void> {
    const next = await startGuard(script, lockFile).catch(() => undefined);
    if (next === undefined) {
      lost();
      return;
    }
    child = next;
    for (const [pid, signal] of owned) tell(`own ${pid} ${shortName(signal)}`);
    watch(next);
  }

  function tell(line: string): void {
    child?.stdin?.write(`${line}\n`);
  }

  return {
    own(pid, signal) {
      owned.set(pid, signal);
      tell(`own ${pid} ${shortName(signal)}`);
    },
    free(pid) {
      owned.delete(pid);
      tell(`free ${pid}`);
    },
    async release() {
      released = true;
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.stdin?.end();
      const hung = setTimeout(() => child?.kill('SIGKILL'), RELEASE_WITHIN_MS);
      await ended;
      clearTimeout(hung);
    },
  };
}

function shortName(signal: NodeJS.Signals): string {
  return signal.replace(/^SIG/, '');
}

async function startGuard(script: string, lockFile: string): Promise<ChildProcess | undefined> {
  const child = spawn('/bin/sh', [script, lockFile], { detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
  child.stdin.on('error', () => undefined);
  const locked = await new Promise<boolean>((resolve, reject) => {
    child.once('error', reject);
    child.stdout.once('data', () => resolve(true));
    child.once('exit', (code) => {
      if (code === LOCKED_ELSEWHERE) resolve(false);
      else if (code === NO_LOCK_FILE)
        reject(
          new StackError(`Couldn't open ${lockFile}.`, 'check that no stack is running there, then delete the file'),
        );
      else reject(new Error(`the guard of ${lockFile} ended with ${code}`));
    });
  });
  return locked ? child : undefined;
}
