// Runs the backup service as a process, until SIGTERM or SIGINT or until its supervisor is gone.

import { setTimeout as delay } from 'node:timers/promises';
import { type BackupHandover, encryptionKeyOf, takeBackupHandover, targetOf } from '@holdfast/backup/handover';
import { backupApi, BackupWorker, type WorkerDeps } from '@holdfast/backup/service';
import { type BackupSource, takeBackup, yieldToStack } from '@holdfast/backup/take';
import { archiveName, type BackupTarget } from '@holdfast/backup/target';
import { messageOf } from '@holdfast/kit/app-error';
import { type JsonLog, jsonLog, type Log } from '@holdfast/kit/log';
import { forgetPostgresVariables } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { LISTENING, runService, stopInOrder, tellSupervisor } from '@holdfast/kit/service';
import { serveApp } from '../../../shared/runtime/node-server.ts';
import { proveInChild, scratchOf } from '../backup/proof-child.ts';
import { embeddedSource } from '../operator/backup-source.ts';
import { layoutOf } from '../process/layout.ts';
import { lockScratch, removeScratch } from './scratch.ts';

const GRACE_MS = 2_000;
/** The proof under way deletes its scratch instance. */
const STOP_WITHIN_MS = 18_000;

/** What a backup holds, at its moment. Throws a StackError if the stack can't be backed up now. */
export type SourceOf = (handover: Pick<BackupHandover, 'home' | 'data'>, log: Log) => BackupSource;

/** Returns at once; the service runs until it is stopped. */
export function runBackupService(environment: NodeJS.ProcessEnv, sourceOf: SourceOf = ofEmbeddedStack): void {
  const log = jsonLog({ role: 'backup' });
  runService(log, 'backup', () => serve(environment, sourceOf, log));
}

async function serve(environment: NodeJS.ProcessEnv, sourceOf: SourceOf, log: JsonLog): Promise<void> {
  yieldToStack();
  forgetPostgresVariables(environment);
  const handover = takeBackupHandover(environment);
  const { address, port, token, storage } = handover;
  const target = targetOf(storage);
  const worker = new BackupWorker(workerDeps(handover, sourceOf, target, log));
  const api = backupApi(worker, new Secret(token), log);
  const server = await serveApp(async (request) => api.fetch(request), [{ address, port }], log);
  tellSupervisor(LISTENING);
  log.info('backup.listening', { address, port, target: target.place });
  void worker.clean();
  void removeLeftovers(handover, log);
  stopInOrder(log, 'backup', () =>
    Promise.race([Promise.all([worker.stop(), server.close(GRACE_MS)]), delay(STOP_WITHIN_MS)]),
  );
}

/** What a killed proof left, unless one is running now. */
async function removeLeftovers({ home, data }: BackupHandover, log: JsonLog): Promise<void> {
  try {
    const lock = await lockScratch(home, scratchOf(data));
    try {
      await removeScratch(scratchOf(data));
    } finally {
      await lock.release();
    }
  } catch (error) {
    log.warn('backup.leftovers_kept', { error: messageOf(error) });
  }
}

function ofEmbeddedStack({ home, data }: Pick<BackupHandover, 'home' | 'data'>, log: Log): BackupSource {
  const source = embeddedSource(home, layoutOf(data));
  for (const warning of source.warnings) log.warn('backup.warning', { text: warning });
  return source;
}

function workerDeps(handover: BackupHandover, sourceOf: SourceOf, target: BackupTarget, log: JsonLog): WorkerDeps {
  const { storage, history, proof, keep, home, data } = handover;
  const now = (): Date => new Date();
  return {
    target,
    encryption: storage.recipient === undefined ? 'passphrase' : 'recipient',
    proof,
    history,
    keep,
    take: async (request, { report, signal }) => {
      const source = sourceOf(handover, log);
      const name = archiveName(now());
      report({ name });
      return takeBackup({
        ...request,
        source,
        target,
        key: encryptionKeyOf(storage),
        name,
        signal,
        now,
        progress: ({ phase, percent, bytesPerSecond, secondsLeft }) =>
          report({ phase, percent, bytes_per_second: bytesPerSecond, seconds_left: secondsLeft }),
      });
    },
    prove: (backup, context) => proveInChild({ backup, storage, scratch: scratchOf(data), home }, context, 'inherit'),
    now,
    log,
  };
}
