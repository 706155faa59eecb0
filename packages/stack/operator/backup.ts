// Takes a backup of a running embedded stack into a file or directory.

import { existsSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { DirectoryTarget } from '@holdfast/backup/directory-target';
import { type BackupProgress, takeBackup } from '@holdfast/backup/take';
import { type BackupTarget, isArchiveName } from '@holdfast/backup/target';
import { AppError, StackError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, type Invocation, parseCommandLine, say, UsageError } from '@holdfast/kit/command';
import { formatBytes, formatSeconds, grouped } from '@holdfast/kit/format';
import { forgetPostgresVariables } from '@holdfast/kit/postgres';
import { dataDirectory, layoutOf } from '../process/layout.ts';
import { encryptionKey } from '../backup/keys.ts';
import { embeddedSource } from './backup-source.ts';

interface BackupArguments {
  /** Absolute. */
  data: string;
  output: string;
  passphraseFile: string | undefined;
  recipient: string | undefined;
  history: boolean;
}

const USAGE = `Usage: ./scripts/backup.sh [--data DIR] --output PLACE --passphrase-file FILE [options]

Makes a backup of a running stack: one encrypted file. How to restore it: docs/backup.md.

  --output PLACE          a directory, or a new file
  --passphrase-file FILE  encrypt with the passphrase in the first line of FILE
  --recipient KEY         encrypt for an age public key (age1...) instead
  --without-history       leave out the history of CoT and chat messages
  --data DIR              data directory of the stack (default: data in the repository)
  --help                  show this help
`;
const LINE_EVERY_MS = 5_000;
const TERMINAL_EVERY_MS = 200;

/** The program of backup.sh; resolves with its exit code. */
export async function backupProgram(call: Invocation): Promise<number> {
  forgetPostgresVariables(call.environment);
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  try {
    return await backUp(call, args);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    say(`${error.message}\n\n${USAGE}`);
    return 2;
  }
}

function readArguments(call: Invocation): BackupArguments | 'help' {
  const { values } = parseCommandLine({
    args: call.argv,
    options: {
      data: { type: 'string' },
      output: { type: 'string' },
      'passphrase-file': { type: 'string' },
      recipient: { type: 'string' },
      'without-history': { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) return 'help';
  if (values.output === undefined || values.output === '') throw new UsageError('--output is missing');
  const file = values['passphrase-file'];
  return {
    data: dataDirectory(values.data, call),
    output: values.output.startsWith('s3://') ? values.output : resolve(call.cwd, values.output),
    passphraseFile: file === undefined ? undefined : resolve(call.cwd, file),
    recipient: values.recipient,
    history: values['without-history'] !== true,
  };
}

async function backUp(call: Invocation, args: BackupArguments): Promise<number> {
  const key = await encryptionKey(args.passphraseFile, args.recipient);
  const { target, name } = placeOf(args.output);
  const source = embeddedSource(call.home, layoutOf(args.data));
  await target.check();
  for (const each of await target.clean()) say(`Deleted ${each}, which an interrupted backup left.\n`);
  for (const warning of source.warnings) say(`  !  ${warning}\n`);
  const stopping = new AbortController();
  const stop = (): void =>
    stopping.abort(new StackError('The backup was interrupted. Nothing of it is left.', 'run it again'));
  for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(event, stop);
  const progress = progressLine(process.stderr.isTTY);
  try {
    const backup = await takeBackup({
      source,
      target,
      key,
      history: args.history,
      requestedBy: 'script',
      ...(name === undefined ? {} : { name }),
      progress: progress.show,
      signal: stopping.signal,
    });
    progress.clear();
    say(
      `Backup ${target.place}/${backup.name}: ${formatBytes(backup.bytes)}, ${grouped(backup.rows)} ${backup.rows === 1 ? 'row' : 'rows'}${backup.history ? '' : ', without history'}, in ${formatSeconds(backup.seconds)}.\n` +
        `  SHA-256 ${backup.sha256}\n`,
    );
    return 0;
  } catch (error) {
    progress.clear();
    if (error instanceof AppError && error.code === 'conflict')
      throw new StackError(error.message, 'give another file, or a directory', error);
    throw error;
  }
}

/** A directory gets the standard name; anything else is the new file itself. */
function placeOf(output: string): { target: BackupTarget; name: string | undefined } {
  if (output.startsWith('s3://'))
    throw new StackError('This release keeps backups in directories only.', 'give a directory or a file');
  if (existsSync(output) && statSync(output).isDirectory())
    return { target: new DirectoryTarget(output), name: undefined };
  const name = basename(output);
  if (!isArchiveName(name))
    throw new UsageError(`--output ${output}: the name of the file must not begin with a dot or end in .json`);
  return { target: new DirectoryTarget(dirname(output)), name };
}

/** One changing line on a terminal; elsewhere a line every few seconds. */
function progressLine(interactive: boolean): { show: (progress: BackupProgress) => void; clear: () => void } {
  const every = interactive ? TERMINAL_EVERY_MS : LINE_EVERY_MS;
  let shownAt = interactive ? Number.NEGATIVE_INFINITY : performance.now();
  return {
    show({ phase, percent, bytesPerSecond, secondsLeft }) {
      const at = performance.now();
      if (at - shownAt < every) return;
      shownAt = at;
      const rate = bytesPerSecond === null ? '' : `, ${formatBytes(bytesPerSecond)}/s`;
      const left = secondsLeft === null ? '' : `, ${formatSeconds(secondsLeft)} left`;
      const line = `${phase}: ${percent.toFixed(0)} %${rate}${left}`;
      say(interactive ? `\r\u001B[K  ${line}` : `  ${line}\n`);
    },
    clear: () => say(interactive ? '\r\u001B[K' : ''),
  };
}
