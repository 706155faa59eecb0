// The process of a proof: reads its handover, reports progress and the outcome to its parent, and
// leaves nothing behind.

import { setPriority } from 'node:os';
import { takeProofHandover } from '@holdfast/backup/handover';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import { explained } from '@holdfast/kit/command';
import { jsonLog } from '@holdfast/kit/log';
import { forgetPostgresVariables } from '@holdfast/kit/postgres';
import type { ProofMessage } from '../backup/proof-child.ts';
import { ProofRun } from './run.ts';

const LOWEST_PRIORITY = 19;
const REPORT_EVERY_MS = 500;

/** Ends the process; 0 means that there is an outcome, whatever it is. */
export async function runProof(environment: NodeJS.ProcessEnv): Promise<never> {
  // Before anything is started: the scratch instance inherits it.
  setPriority(LOWEST_PRIORITY);
  forgetPostgresVariables(environment);
  const log = jsonLog({ role: 'proof' });
  const handover = takeProofHandover(environment);
  const stopping = new AbortController();
  const stop = (): void => stopping.abort(new StackError('The proof was interrupted.', 'run it again'));
  for (const event of ['SIGTERM', 'SIGINT', 'SIGHUP', 'disconnect'] as const) process.on(event, stop);
  let reportedMs = Number.NEGATIVE_INFINITY;
  let phase: string | undefined;
  const report = (progress: Extract<ProofMessage, { kind: 'progress' }>['progress']): void => {
    const now = performance.now();
    if (progress.phase === phase && now - reportedMs < REPORT_EVERY_MS) return;
    [phase, reportedMs] = [progress.phase, now];
    void tell({ kind: 'progress', progress });
  };
  let code = 0;
  try {
    log.info('proof.started', { name: handover.backup.name, pid: process.pid });
    const proof = await new ProofRun(handover, { report, signal: stopping.signal }, log).run();
    log.info('proof.ended', { name: handover.backup.name, level: proof.level, seconds: proof.seconds });
    await tell({ kind: 'proof', proof });
  } catch (failure) {
    const error = explained(failure);
    const [message, remedy] = [messageOf(error), error instanceof StackError ? error.remedy : 'read the log'];
    log.error('proof.failed', { name: handover.backup.name, error: message });
    await tell({ kind: 'failed', message, remedy });
    code = 1;
  }
  log.flush();
  process.exit(code);
}

async function tell(message: ProofMessage): Promise<void> {
  if (!process.connected) return;
  await new Promise<void>((sent) => process.send?.(message, undefined, undefined, () => sent()));
}
