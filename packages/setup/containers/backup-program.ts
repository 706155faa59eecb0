// The programs that scripts/backup.sh and setup.sh --restore run in containers: take a backup to
// the standard output, look into an archive from the standard input, show the settings in an
// archive, and restore one into empty volumes.

import { createReadStream } from 'node:fs';
import { chmod, chown, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type DecryptionKey, type EncryptionKey, entriesOf, verifyArchive } from '@holdfast/backup/archive';
import { rowsOf, type VerifiedArchive } from '@holdfast/backup/manifest';
import { restoreArchive, restoreFiles } from '@holdfast/backup/restore';
import { takeBackup, yieldToStack } from '@holdfast/backup/take';
import { type BackupTarget, isArchiveName } from '@holdfast/backup/target';
import { StackError } from '@holdfast/kit/app-error';
import { type Invocation, say, UsageError } from '@holdfast/kit/command';
import { formatBytes, formatSeconds, grouped } from '@holdfast/kit/format';
import { Secret } from '@holdfast/kit/secret';
import { checkRoom, migrateTo } from '@holdfast/stack/backup/build-data';
import { progressLine } from '@holdfast/stack/operator/backup';
import type { Backup } from '../../../shared/backups/port.ts';
import { AGE_RECIPIENT } from '../../../shared/settings/backup.ts';
import { containerSource, databasesOf, PARTS, readStack, SETTINGS_ENTRY, writeSettings } from './backup.ts';
import { MOUNTS } from './places.ts';
import { linesOf, proveUploaded, usePart } from './uploaded.ts';

/** Where setup.sh mounts the archive. */
const ARCHIVE = '/archive';

/**
 * `container-backup.js take|prove|show|restore|settings|restore-files|restore-rows`; the key is the
 * first line of the standard input.
 */
export async function containerBackupProgram(call: Invocation): Promise<number> {
  const { argv, home, environment } = call;
  const [verb = '', ...options] = argv;
  const input = linesOf(process.stdin);
  const line = await input.line();
  if (line.trim() === '')
    throw new StackError('No passphrase was given.', 'give --passphrase-file FILE; its first line is the passphrase');
  if (verb === 'take') return take(home, environment, encryptionKey(line), options);
  if (verb === 'prove') return proveUploaded(call, line, input);
  const key = decryptionKey(line);
  if (verb === 'show' || verb === 'restore') return usePart(call, key, input);
  if (verb === 'settings') return showSettings(key);
  if (verb === 'restore-files') return putFiles(key);
  if (verb === 'restore-rows') return loadRows(environment, key);
  throw new UsageError(`Unknown verb ${verb}`);
}

function encryptionKey(line: string): EncryptionKey {
  return AGE_RECIPIENT.test(line) ? { recipient: line } : { passphrase: new Secret(line) };
}

function decryptionKey(line: string): DecryptionKey {
  return line.startsWith('AGE-SECRET-KEY-') ? { identity: new Secret(line) } : { passphrase: new Secret(line) };
}

async function take(
  home: string,
  environment: NodeJS.ProcessEnv,
  key: EncryptionKey,
  [name = '', ...options]: readonly string[],
): Promise<number> {
  if (!isArchiveName(name))
    throw new StackError(
      `${name} can't be the name of a backup.`,
      'give a name without special characters that does not begin with a dot or end in .json',
    );
  yieldToStack();
  const stack = readStack(environment);
  const file = writeSettings(environment, stack);
  const stopping = new AbortController();
  for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(event, () => stopping.abort(new StackError('The backup was interrupted.', 'run it again')));
  const progress = progressLine(process.stderr.isTTY);
  try {
    const { bytes, rows, history, seconds, sha256 } = await takeBackup({
      source: containerSource(home, stack, file),
      target: standardOutput(),
      key,
      history: !options.includes('--without-history'),
      requestedBy: 'script',
      name,
      progress: progress.show,
      signal: stopping.signal,
    });
    progress.clear();
    say(
      `${formatBytes(bytes)}, ${grouped(rows)} rows${history ? '' : ', without history'}, in ${formatSeconds(seconds)}.\n  SHA-256 ${sha256}\n`,
    );
    return 0;
  } finally {
    progress.clear();
    await rm(file, { force: true });
  }
}

/** The archive, and its facts as the last line. The caller writes both, as the operator. */
function standardOutput(): BackupTarget {
  const none = async (): Promise<never> => Promise.reject(new Error('the standard output is only written'));
  return {
    kind: 'directory',
    place: 'the standard output',
    write: async (_name, content, { sidecar } = {}) =>
      pipeline(async function* withFacts() {
        yield* content;
        yield Buffer.from(`\n${JSON.stringify(sidecar?.())}\n`);
      }, process.stdout),
    putSidecar: async () => undefined,
    clean: async () => [],
    check: async () => undefined,
    freeBytes: async () => null,
    list: async (): Promise<Backup[]> => [],
    read: none,
    remove: none,
  };
}

function readArchive(key: DecryptionKey): { open: () => Promise<Readable>; key: DecryptionKey } {
  return { key, open: async () => createReadStream(ARCHIVE, { highWaterMark: 1024 * 1024 }) };
}

/** Verifies the whole archive, then writes its settings to the standard output. */
async function showSettings(key: DecryptionKey): Promise<number> {
  const archive = readArchive(key);
  const verified = await verifyArchive(archive);
  refuseEmbedded(verified);
  for await (const { name, content } of entriesOf(archive)) {
    const isSettings = name === `files/settings/${SETTINGS_ENTRY}`;
    for await (const chunk of content) if (isSettings) process.stdout.write(chunk);
    if (isSettings) break;
  }
  const { header, manifest } = verified;
  say(
    `The archive is complete: made ${header.created_at} by Holdfast ${header.release}, ${grouped(rowsOf(manifest))} rows.\n`,
  );
  return 0;
}

function refuseEmbedded({ header }: VerifiedArchive): void {
  if (header.stack !== 'embedded') return;
  throw new StackError(
    'The backup is of an embedded stack, and this restores stacks in containers.',
    'restore it with ./scripts/start.sh --embedded --data DIR --restore FILE',
  );
}

/** Into volumes that no stack has used. The databases start on them afterwards. */
async function putFiles(key: DecryptionKey): Promise<number> {
  for (const { directory } of Object.values(PARTS)) await refuseUsed(directory);
  const archive = readArchive(key);
  const verified = await verifyArchive(archive);
  refuseEmbedded(verified);
  checkRoom(MOUNTS.core, verified, "move Docker's data to another disk (data-root in its daemon.json)");
  say('  Restoring files\n');
  await restoreFiles({ archive, verified, place: { directoryOf: (part) => PARTS[part]?.directory } });
  for (const { directory, owner, mode } of Object.values(PARTS)) {
    await give(directory, owner);
    await chmod(directory, mode);
  }
  return 0;
}

/** Into databases whose tables are new. */
async function loadRows(environment: NodeJS.ProcessEnv, key: DecryptionKey): Promise<number> {
  const archive = readArchive(key);
  const verified = await verifyArchive(archive);
  refuseEmbedded(verified);
  const isLight = verified.header.stack === 'light';
  const stack = readStack({ ...environment, HOLDFAST_STACK: isLight ? 'light' : 'container' });
  const warnings = await restoreArchive({
    archive,
    verified,
    place: {
      databases: databasesOf(stack),
      // A TAK Server release and authentik have made their own tables.
      migrate: async (database, sql, number) => {
        if (isLight || database === 'state') await migrateTo(database, sql, number);
      },
    },
    progress: (phase) => say(`  ${phase}\n`),
  });
  for (const warning of warnings) say(`  !  ${warning}\n`);
  return 0;
}

async function refuseUsed(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  const [first] = await readdir(directory);
  if (first === undefined) return;
  throw new StackError(
    `The volume at ${directory} is not empty: it has ${first}. Nothing was changed.`,
    'restore into a stack without volumes. To delete the volumes of this one: ./scripts/stop.sh --remove',
  );
}

async function give(path: string, owner: number): Promise<void> {
  await chown(path, owner, owner);
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const below = join(path, entry.name);
    if (entry.isDirectory()) await give(below, owner);
    else {
      await using file = await open(below, 'r');
      await file.chown(owner, owner);
    }
  }
}
