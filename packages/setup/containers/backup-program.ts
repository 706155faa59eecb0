// The programs that scripts/backup.sh and setup.sh --restore run in containers: take a backup to
// the standard output, show the settings in an archive, and restore one into empty volumes.

import { randomUUID } from 'node:crypto';
import { createReadStream, writeFileSync } from 'node:fs';
import { chown, mkdir, open, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { text } from 'node:stream/consumers';
import { type DecryptionKey, type EncryptionKey, entriesOf, verifyArchive } from '@holdfast/backup/archive';
import { rowsOf, type VerifiedArchive } from '@holdfast/backup/manifest';
import { restoreArchive } from '@holdfast/backup/restore';
import { takeBackup } from '@holdfast/backup/take';
import type { BackupTarget } from '@holdfast/backup/target';
import { StackError } from '@holdfast/kit/app-error';
import { type Invocation, say, UsageError } from '@holdfast/kit/command';
import { formatBytes, formatSeconds, grouped } from '@holdfast/kit/format';
import { Secret } from '@holdfast/kit/secret';
import { migrateTo } from '@holdfast/stack/backup/build-data';
import { progressLine } from '@holdfast/stack/operator/backup';
import type { Backup } from '../../../shared/backups/port.ts';
import { AGE_RECIPIENT } from '../../../shared/settings/backup.ts';
import { databasesOf, lightSource, PARTS, readStack, SETTINGS_ENTRY, settingsText } from './backup.ts';

/** Where setup.sh mounts the archive. */
const ARCHIVE = '/archive';

/** `container-backup.js take|settings|restore`; the key is the first line of the standard input. */
export async function containerBackupProgram({ argv, home, environment }: Invocation): Promise<number> {
  const [verb = '', ...options] = argv;
  const line = (await text(process.stdin)).split(/\r?\n/).find((each) => each.trim() !== '');
  if (line === undefined)
    throw new StackError('No passphrase was given.', 'give --passphrase-file FILE; its first line is the passphrase');
  if (verb === 'take') return take(home, environment, encryptionKey(line), options);
  const key = decryptionKey(line);
  if (verb === 'settings') return showSettings(key);
  if (verb === 'restore') return restore(environment, key);
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
  options: readonly string[],
): Promise<number> {
  const stack = readStack(environment);
  const file = join(tmpdir(), `settings-${randomUUID()}`);
  writeFileSync(file, settingsText(environment), { mode: 0o600, flag: 'wx' });
  const stopping = new AbortController();
  for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(event, () => stopping.abort(new StackError('The backup was interrupted.', 'run it again')));
  const progress = progressLine(process.stderr.isTTY);
  try {
    const { bytes, rows, history, seconds, sha256 } = await takeBackup({
      source: lightSource(home, stack, file),
      target: standardOutput(),
      key,
      history: !options.includes('--without-history'),
      requestedBy: 'script',
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

/** The caller writes the file, with the rights of the operator. */
function standardOutput(): BackupTarget {
  const none = async (): Promise<never> => Promise.reject(new Error('the standard output is only written'));
  return {
    kind: 'directory',
    place: 'the standard output',
    write: async (_name, content) => pipeline(content, process.stdout),
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
  refuseOtherStack(verified);
  for await (const { name, content } of entriesOf(archive)) {
    const isSettings = name === `files/settings/${SETTINGS_ENTRY}`;
    for await (const chunk of content) if (isSettings) process.stdout.write(chunk);
  }
  const { header, manifest } = verified;
  say(
    `The archive is complete: made ${header.created_at} by Holdfast ${header.release}, ${grouped(rowsOf(manifest))} rows.\n`,
  );
  return 0;
}

function refuseOtherStack({ header }: VerifiedArchive): void {
  if (header.stack === 'light') return;
  throw new StackError(
    `The backup is of ${header.stack === 'embedded' ? 'an embedded stack' : 'a stack with a TAK Server release'}, and this restores light stacks.`,
    header.stack === 'embedded'
      ? 'restore it with ./scripts/start.sh --embedded --data DIR --restore FILE'
      : 'restore it with the release of Holdfast that made it',
  );
}

/** Into volumes and databases that no stack has used. */
async function restore(environment: NodeJS.ProcessEnv, key: DecryptionKey): Promise<number> {
  const stack = readStack(environment);
  for (const { directory } of Object.values(PARTS)) await refuseUsed(directory);
  const archive = readArchive(key);
  const verified = await verifyArchive(archive);
  refuseOtherStack(verified);
  const warnings = await restoreArchive({
    archive,
    verified,
    place: {
      directoryOf: (part) => PARTS[part]?.directory,
      databases: databasesOf(stack),
      migrate: migrateTo,
    },
    progress: (phase) => say(`  ${phase}\n`),
  });
  for (const { directory, owner } of Object.values(PARTS)) await give(directory, owner);
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
