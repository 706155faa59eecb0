// Runs a proof in a process of its own, at the lowest priority.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { PROOF_VARIABLE, type ProofHandover } from '@holdfast/backup/handover';
import type { RunContext, RunProgress } from '@holdfast/backup/service';
import { StackError } from '@holdfast/kit/app-error';
import { type Proof, proofSchema } from '../../../shared/backups/port.ts';

/** From the process of the proof. */
export type ProofMessage =
  | { kind: 'progress'; progress: RunProgress }
  | { kind: 'proof'; proof: Proof }
  | { kind: 'failed'; message: string; remedy: string };

/** It stops its scratch instance and deletes it. */
const STOP_WITHIN_MS = 15_000;
const IONICE = '/usr/bin/ionice';

const outcomeSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('proof'), proof: proofSchema }),
  z.object({ kind: z.literal('failed'), message: z.string(), remedy: z.string() }),
]);

/** Where the scratch instance of a stack is, beside its data. */
export function scratchOf(data: string): string {
  return join(data, 'proof');
}

/**
 * Rejects with a StackError if the proof could not be done. `output`: where its log lines go.
 * Ends with this process at the latest.
 */
export async function proveInChild(
  handover: ProofHandover,
  { report, signal }: RunContext,
  output: 'inherit' | 'ignore',
): Promise<Proof> {
  signal.throwIfAborted();
  const child = startChild(handover, output);
  const stop = (): void => {
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS).unref();
  };
  signal.addEventListener('abort', stop, { once: true });
  let outcome: z.infer<typeof outcomeSchema> | undefined;
  child.on('message', (message: ProofMessage) => {
    if (message.kind === 'progress') report(message.progress);
    else outcome = outcomeSchema.parse(message);
  });
  try {
    const [code, killedBy] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    signal.throwIfAborted();
    if (outcome === undefined) throw ended(code, killedBy);
    if (outcome.kind === 'failed') throw new StackError(outcome.message, outcome.remedy);
    return outcome.proof;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** The kernel's idle class of disk access, where the program for it is installed. */
function startChild(handover: ProofHandover, output: 'inherit' | 'ignore'): ChildProcess {
  const program = join(handover.home, 'dist/prove-backup.js');
  // What is decompressed and copied is garbage at once: room for it would take 100 MB more.
  const run = [process.execPath, '--max-semi-space-size=2', '--optimize-for-size', program] as const;
  const [command, ...args] = existsSync(IONICE) ? [IONICE, '-c', '3', '-t', ...run] : run;
  return spawn(command, args, {
    cwd: '/',
    env: { ...process.env, MALLOC_ARENA_MAX: '1', [PROOF_VARIABLE]: JSON.stringify(handover) },
    stdio: ['ignore', output, output, 'ipc'],
    detached: true,
  });
}

function ended(code: number | null, killedBy: NodeJS.Signals | null): StackError {
  return new StackError(
    `The proof ended ${killedBy === null ? `with code ${code}` : `by signal ${killedBy}`} before it was done.`,
    'run it again. If that repeats, check memory and disk of this machine',
  );
}
