// Restores a backup into a new data directory. Everything is built in a directory beside it, which
// gets its name as the last step: a restore that is interrupted leaves the data directory alone.

import { once } from 'node:events';
import { createReadStream, existsSync, lstatSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type ReadArchive, verifyArchive } from '@holdfast/backup/archive';
import { rowsOf, type VerifiedArchive } from '@holdfast/backup/manifest';
import { codeOf, explainFileError, StackError } from '@holdfast/kit/app-error';
import { say } from '@holdfast/kit/command';
import { syncDirectory } from '@holdfast/kit/files';
import { grouped } from '@holdfast/kit/format';
import { type Guard, guardScript, takeLock } from '../process/guard.ts';
import { type Layout, layoutOf, makeDirectories } from '../process/layout.ts';
import { terminalProgress } from '../process/report.ts';
import { buildData, checkRoom } from './build-data.ts';
import { decryptionKey } from './keys.ts';

/** A guard ends what a killed restore left within this. */
const DYING_RESTORE_MS = 15_000;

/** Absolute paths. */
export interface RestoreArguments {
  file: string;
  passphraseFile: string | undefined;
  identityFile: string | undefined;
}

/** The program's part before the start. Shows its progress; rejects with a StackError. */
export async function restoreEmbedded(home: string, data: string, args: RestoreArguments): Promise<void> {
  const stopping = new AbortController();
  const stop = (): void =>
    stopping.abort(new StackError('The restore was interrupted. Nothing of it is left.', 'run it again'));
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, stop);
  try {
    const key = await decryptionKey(args.passphraseFile, args.identityFile);
    refuseUsed(data);
    const archive = { open: async () => openArchiveFile(args.file), key, signal: stopping.signal };
    await new EmbeddedRestore(home, data, archive, stopping.signal).run(basename(args.file));
  } finally {
    for (const signal of signals) process.off(signal, stop);
  }
}

/** Rejects with a StackError that names the file. */
export async function openArchiveFile(file: string): Promise<ReturnType<typeof createReadStream>> {
  const stream = createReadStream(file, { highWaterMark: 1024 * 1024 });
  try {
    await once(stream, 'open');
    if (!statSync(file).isFile()) throw new StackError(`${file} is not a file.`, 'give the archive of a backup');
    return stream;
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw explainFileError(error, file);
    throw new StackError(`${file} not found.`, 'give the archive of a backup', error);
  }
}

/** Only what does not exist, or is empty, may be replaced by a restored directory. */
function refuseUsed(data: string): void {
  const found = lstatSync(data, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isDirectory() || readdirSync(data).length > 0)
    throw new StackError(
      `${data} is not empty. A backup is restored into a new directory, and nothing was changed.`,
      'give another directory with --data DIR, or start without --restore to use what is there',
    );
  if (found.dev !== statSync(dirname(data)).dev)
    throw new StackError(
      `${data} is the root of a disk, which can't be replaced by a restored directory.`,
      `give a directory on that disk: --data ${join(data, 'holdfast')}`,
    );
}

class EmbeddedRestore {
  readonly #home: string;
  readonly #data: string;
  readonly #archive: ReadArchive;
  readonly #aborted: AbortSignal;
  readonly #layout: Layout;
  readonly #report = terminalProgress(say, process.stderr.isTTY, () => performance.now());

  constructor(home: string, data: string, archive: ReadArchive, aborted: AbortSignal) {
    this.#home = home;
    this.#data = data;
    this.#archive = archive;
    this.#aborted = aborted;
    this.#layout = layoutOf(`${data}.restoring`);
  }

  /** `name`: of the archive. */
  async run(name: string): Promise<void> {
    const verifying = this.#report.step('archive');
    const verified = await verifyArchive(this.#archive);
    const { header, manifest } = verified;
    refuseOtherStack(verified);
    const rows = rowsOf(manifest);
    verifying(`complete: made ${header.created_at} by Holdfast ${header.release}, ${grouped(rows)} rows`);
    checkRoom(dirname(this.#data), verified);
    const guard = await this.#lock();
    try {
      this.#clear();
      const loading = this.#report.step('restore');
      const warnings = await buildData({
        home: this.#home,
        layout: this.#layout,
        archive: this.#archive,
        verified,
        guard,
        aborted: this.#aborted,
        name,
      });
      await guard.release();
      this.#publish();
      loading(`${grouped(rows)} rows in ${this.#data}${header.history ? '' : ', without history'}`);
      for (const warning of [...warnings, ...this.#settingsWords()]) this.#report.warn(warning);
    } catch (error) {
      await guard.release();
      rmSync(this.#layout.root, { recursive: true, force: true });
      this.#aborted.throwIfAborted();
      throw explainFileError(error, this.#layout.root);
    }
  }

  /** The guard of a killed restore holds the lock until it has ended the database. */
  async #lock(): Promise<Guard> {
    makeDirectories(this.#layout);
    const until = performance.now() + DYING_RESTORE_MS;
    for (;;) {
      const guard = await takeLock(guardScript(this.#home), this.#layout.lock, () => undefined);
      if (guard !== undefined) return guard;
      this.#aborted.throwIfAborted();
      if (performance.now() > until)
        throw new StackError(`Another restore into ${this.#data} is running.`, 'wait until it ends');
      await delay(250);
    }
  }

  /** What a killed restore left, except the lock that is held now. */
  #clear(): void {
    const { root, run } = this.#layout;
    for (const name of readdirSync(root))
      if (join(root, name) !== run) rmSync(join(root, name), { recursive: true, force: true });
    makeDirectories(this.#layout);
  }

  /** The one step that counts: before it there is no restored stack, after it a whole one. */
  #publish(): void {
    this.#aborted.throwIfAborted();
    rmSync(join(this.#layout.logs, 'restore.log'), { force: true });
    try {
      renameSync(this.#layout.root, this.#data);
    } catch (error) {
      if (codeOf(error) !== 'ENOTEMPTY' && codeOf(error) !== 'EEXIST') throw error;
      throw new StackError(
        `Something was put into ${this.#data} during the restore.`,
        'give another directory with --data DIR',
        error,
      );
    }
    syncDirectory(dirname(this.#data));
  }

  #settingsWords(): string[] {
    const { env } = layoutOf(this.#data);
    if (!existsSync(env)) return ['The archive holds no settings file: the settings of this repository count'];
    return [`The settings of the archive are in ${env}, and count instead of .env in the repository`];
  }
}

function refuseOtherStack({ header }: VerifiedArchive): void {
  if (header.stack !== 'production') return;
  throw new StackError(
    'The backup is of a stack with a TAK Server release, whose database an embedded stack does not have.',
    'restore it into containers: ./scripts/setup.sh ARCHIVE --restore FILE (docs/backup.md)',
  );
}
