// Takes a backup of a running embedded stack into a file or directory.

import { existsSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import type { EncryptionKey } from '@holdfast/backup/archive';
import { type BackupStorage, type ProofHandover, targetOf } from '@holdfast/backup/handover';
import type { RunProgress } from '@holdfast/backup/service';
import { type BackupProgress, takeBackup, yieldToStack } from '@holdfast/backup/take';
import { type BackupTarget, isArchiveName } from '@holdfast/backup/target';
import { AppError, StackError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, type Invocation, parseCommandLine, say, UsageError } from '@holdfast/kit/command';
import { formatBytes, formatSeconds, grouped } from '@holdfast/kit/format';
import { forgetPostgresVariables } from '@holdfast/kit/postgres';
import { isProven } from '../../../shared/backups/rules.ts';
import { environmentLayer, loadSettings } from '../../../shared/settings/load.ts';
import type { Settings } from '../../../shared/settings/table.ts';
import { proveInChild, scratchOf } from '../backup/proof-child.ts';
import { readEnvFile } from '../env-file-layer.ts';
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
  proof: boolean;
}

const USAGE = `Usage: ./scripts/backup.sh [--data DIR] --output PLACE --passphrase-file FILE [options]

Makes a backup of a running stack: one encrypted file. How to restore it: docs/backup.md.
To show what an archive holds, or restore a part of it: ./scripts/backup.sh show --help

  --output PLACE          a directory, a new file, or s3://BUCKET/PREFIX (with the settings BACKUP_S3_...)
  --passphrase-file FILE  encrypt with the passphrase in the first line of FILE
  --recipient KEY         encrypt for an age public key (age1...) instead
  --without-history       leave out the history of CoT and chat messages
  --no-proof              don't restore the backup into a scratch instance afterwards
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
      'no-proof': { type: 'boolean' },
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
    proof: values['no-proof'] !== true,
  };
}

async function backUp(call: Invocation, args: BackupArguments): Promise<number> {
  yieldToStack();
  const key = await encryptionKey(args.passphraseFile, args.recipient);
  const source = embeddedSource(call.home, layoutOf(args.data));
  const settings = settingsOf(call, source.settingsFile);
  const { target, name, storage } = placeOf(args.output, key, settings);
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
    if (!args.proof) return 0;
    if (settings.BACKUP_PROOF === 'off') {
      say('Not proven: BACKUP_PROOF=off.\n');
      return 0;
    }
    return await proveBackup({ backup, storage, scratch: scratchOf(args.data), home: call.home }, stopping.signal);
  } catch (error) {
    progress.clear();
    if (error instanceof AppError && error.code === 'conflict')
      throw new StackError(error.message, 'give another file, or a directory', error);
    throw error;
  }
}

/**
 * Proves it, says how far it got and writes that into its sidecar. Resolves with the exit code 0 if
 * the backup is proven as far as possible; rejects with a StackError otherwise.
 */
export async function proveBackup(handover: ProofHandover, signal: AbortSignal): Promise<number> {
  const progress = progressLine(process.stderr.isTTY);
  try {
    const report = ({ phase, percent }: RunProgress): void =>
      progress.show({ phase: phase ?? 'Proving', percent: percent ?? 0, bytesPerSecond: null, secondsLeft: null });
    const proof = await proveInChild(handover, { report, signal }, 'ignore');
    progress.clear();
    for (const { name, ok, detail } of proof.checks) say(`  ${ok ? 'ok  ' : 'FAIL'} ${name.padEnd(12)} ${detail}\n`);
    await targetOf(handover.storage).putSidecar({ ...handover.backup, proof });
    const level =
      proof.level === null ? 'Not proven' : `Proven: it ${proof.level === 'complete' ? 'is complete' : proof.level}`;
    say(`${level}, after ${formatSeconds(proof.seconds)}.${proof.limit === null ? '' : ` ${proof.limit.reason}.`}\n`);
    if (isProven({ proof })) return 0;
    throw new StackError(
      `The backup failed its proof: ${proof.error}`,
      'keep older backups, and make another one. Nothing of the running stack is affected',
    );
  } finally {
    progress.clear();
  }
}

/** Settings of the stack, as far as they are in its settings file and in the environment. */
function settingsOf({ home, environment }: Invocation, file: string | undefined): Settings {
  const layer = file === undefined ? undefined : readEnvFile(home, file).layer;
  return loadSettings([environmentLayer(environment), ...(layer === undefined ? [] : [layer])], 'embedded').settings;
}

interface BackupPlace {
  target: BackupTarget;
  name: string | undefined;
  storage: BackupStorage;
}

/** A directory gets the standard name; anything else is the new file itself. */
function placeOf(output: string, key: EncryptionKey, settings: Settings): BackupPlace {
  const isDirectory = output.startsWith('s3://') || (existsSync(output) && statSync(output).isDirectory());
  const name = isDirectory ? undefined : basename(output);
  if (name !== undefined && !isArchiveName(name))
    throw new UsageError(`--output ${output}: the name of the file must not begin with a dot or end in .json`);
  const storage: BackupStorage = {
    target: isDirectory ? output : dirname(output),
    s3: {
      url: settings.BACKUP_S3_URL,
      region: settings.BACKUP_S3_REGION,
      accessKey: settings.BACKUP_S3_ACCESS_KEY?.reveal(),
      secretKey: settings.BACKUP_S3_SECRET_KEY?.reveal(),
    },
    ...('passphrase' in key ? { passphrase: key.passphrase.reveal() } : { recipient: key.recipient }),
  };
  if (output.startsWith('s3://') && storage.s3.accessKey === undefined)
    throw new UsageError('--output s3://... needs the settings BACKUP_S3_ACCESS_KEY and BACKUP_S3_SECRET_KEY');
  return { target: targetOf(storage), name, storage };
}

/** One changing line on a terminal; elsewhere a line every few seconds. */
export function progressLine(interactive: boolean): { show: (progress: BackupProgress) => void; clear: () => void } {
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
