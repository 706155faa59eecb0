// Shows what an archive holds, and brings parts of it back into a running stack: settings,
// accounts, missions, files. Without --yes it only says what would change.

import { existsSync, readFileSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { type ReadArchive, verifyArchive } from '@holdfast/backup/archive';
import type { VerifiedArchive } from '@holdfast/backup/manifest';
import type { PartChange } from '@holdfast/backup/parts/rows';
import type { DatabasePlace } from '@holdfast/backup/tables';
import { fingerprintOf } from '@holdfast/backup/take';
import { StackError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, type Invocation, parseCommandLine, say, UsageError } from '@holdfast/kit/command';
import { counted } from '@holdfast/kit/format';
import { forgetPostgresVariables } from '@holdfast/kit/postgres';
import { decryptionKey } from '../backup/keys.ts';
import { openArchiveFile } from '../backup/restore.ts';
import { dataDirectory, layoutOf } from '../process/layout.ts';
import { keptSecrets } from '../secrets.ts';
import { embeddedSource } from '../operator/backup-source.ts';
import { type OperatorPlace, operatorPlace } from '../operator/place.ts';
import { audited, type AuditedRun } from './audited.ts';
import { type Opened, restoreRows, rowsShown } from './rows.ts';
import { compareSettings, readArchivedSettings, writeSettings } from './settings.ts';

const PARTS = ['settings', 'accounts', 'missions', 'files'] as const;
type Part = (typeof PARTS)[number];

/** Where parts of an archive are looked at, and come back. */
export interface PartHost {
  home: string;
  /** The data directory of an embedded stack; in containers where a scratch database may be. */
  data: string;
  /** Throws a StackError if no stack is running. */
  running: () => RunningStack;
}

export interface RunningStack {
  databases: readonly DatabasePlace[];
  caFile: string;
  place: OperatorPlace;
  /** Its IDENTITY_SECRET_KEY, which seals app passwords. */
  identitySecret: string | undefined;
  /** Undefined where only the operator can write them. */
  settings?: { file: string; restart: string };
}

export interface PartArguments {
  verb: 'show' | 'restore';
  /** Absolute. */
  file: string;
  part: Part | undefined;
  names: string[];
  data: string;
  passphraseFile: string | undefined;
  identityFile: string | undefined;
  overwrite: boolean;
  confirmed: boolean;
}

export const PART_USAGE = `Usage: ./scripts/backup.sh show ARCHIVE --passphrase-file FILE [PART] [--data DIR]
       ./scripts/backup.sh restore ARCHIVE --passphrase-file FILE PART [NAME...] [--yes] [--data DIR]

Shows what an archive holds, or brings parts of it back into a running stack.

  PART                    settings, accounts, missions or files
  NAME                    only these: names of settings, usernames, names of missions, names or hashes of files
                          (default: all of the part that the stack lacks; of settings all that differ)
  --yes                   do it; without it, only say what would change
  --overwrite             also replace accounts that exist
  --passphrase-file FILE  the passphrase of the archive, in the first line of FILE
  --identity-file FILE    the age identity of the archive, if it was encrypted for a recipient
  --data DIR              data directory of the stack (default: data in the repository)
  --help                  show this help

How to restore a whole stack: docs/backup.md
`;

/** For an embedded stack; resolves with the exit code. */
export async function partProgram(call: Invocation): Promise<number> {
  forgetPostgresVariables(call.environment);
  const args = argumentsOrUsage(() => {
    const given = readPartArguments(call);
    if (given !== 'help' && (given.passphraseFile ?? given.identityFile) === undefined)
      throw new UsageError('Give the key: --passphrase-file FILE or --identity-file FILE');
    return given;
  }, PART_USAGE);
  if (typeof args === 'number') return args;
  const { data, file } = args;
  if (!existsSync(layoutOf(data).secrets))
    throw new StackError(`No embedded stack in ${data}.`, 'give its data directory with --data DIR');
  const key = await decryptionKey(args.passphraseFile, args.identityFile);
  const host = { home: call.home, data, running: () => runningEmbedded(call, data) };
  return runPart(args, { open: async () => openArchiveFile(file), key }, host);
}

function runningEmbedded(call: Invocation, data: string): RunningStack {
  const layout = layoutOf(data);
  const { databases, caFile, settingsFile } = embeddedSource(call.home, layout);
  return {
    databases,
    caFile,
    place: operatorPlace(data, call),
    identitySecret: keptSecrets(layout.secrets, []).values['IDENTITY_SECRET_KEY'],
    settings: {
      file: settingsFile ?? layout.env,
      restart: `./scripts/stop.sh --data ${data}, then ./scripts/start.sh --embedded --data ${data} with the options of the last start`,
    },
  };
}

/** Shows an archive or restores a part of it; resolves with the exit code. */
export async function runPart(args: PartArguments, file: ReadArchive, host: PartHost): Promise<number> {
  const stopping = new AbortController();
  const stop = (): void => stopping.abort(new StackError('Interrupted. Nothing was changed.', 'run it again'));
  for (const event of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(event, stop);
  const archive = { ...file, signal: stopping.signal };
  say('Verifying the archive...\n');
  const verified = await verifyArchive(archive);
  refuseRelease(verified);
  const { header } = verified;
  say(
    `Made ${header.created_at} by Holdfast ${header.release}${header.history ? '' : ', without history: map items of missions are empty'}.\n`,
  );
  const opened: Opened = { home: host.home, data: host.data, archive, verified, aborted: stopping.signal };
  if (args.verb === 'show') return show(opened, args.part);
  return restore(opened, args, host.running());
}

/** Throws a UsageError. */
export function readPartArguments(call: Invocation): PartArguments | 'help' {
  const { values, positionals } = parseCommandLine({
    args: call.argv,
    allowPositionals: true,
    options: {
      data: { type: 'string' },
      'passphrase-file': { type: 'string' },
      'identity-file': { type: 'string' },
      overwrite: { type: 'boolean' },
      yes: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) return 'help';
  const [verb, file, word, ...names] = positionals;
  if (file === undefined) throw new UsageError('The archive is missing');
  const part = PARTS.find((each) => each === word);
  if (word !== undefined && part === undefined) throw new UsageError(`${word}: must be one of ${PARTS.join(', ')}`);
  if (verb === 'restore' && part === undefined) throw new UsageError(`Name a part: ${PARTS.join(', ')}`);
  if (verb === 'show' && (names.length > 0 || values.yes === true || values.overwrite === true))
    throw new UsageError('show takes no names, --yes or --overwrite');
  if (values.overwrite === true && part !== 'accounts') throw new UsageError('--overwrite is for accounts');
  const given = (path: string | undefined): string | undefined =>
    path === undefined ? undefined : resolve(call.cwd, path);
  return {
    verb: verb === 'show' ? 'show' : 'restore',
    file: resolve(call.cwd, file),
    part,
    names,
    data: dataDirectory(values.data, call),
    passphraseFile: given(values['passphrase-file']),
    identityFile: given(values['identity-file']),
    overwrite: values.overwrite === true,
    confirmed: values.yes === true,
  };
}

function refuseRelease({ header }: VerifiedArchive): void {
  if (header.stack !== 'production') return;
  throw new StackError(
    'The backup is of a stack with a TAK Server release, and parts of it are never restored: a running release keeps what it has read in memory.',
    'restore the whole backup',
  );
}

async function show(opened: Opened, part: Part | undefined): Promise<number> {
  if (part === undefined || part === 'settings') {
    const { values } = await readArchivedSettings(opened.archive);
    const names = Object.keys(values).toSorted();
    process.stdout.write(`${counted(names.length, 'setting')}: ${names.join(', ') || 'none'}\n`);
  }
  if (part !== 'settings')
    process.stdout.write(await rowsShown(opened, part === undefined ? ['accounts', 'missions', 'files'] : [part]));
  return 0;
}

async function restore(opened: Opened, args: PartArguments, stack: RunningStack): Promise<number> {
  const { place, databases, identitySecret: secret } = stack;
  if ((await fingerprintOf(stack.caFile)) !== opened.verified.header.ca_fingerprint)
    say('  !  The CA of the archive is another one. It may be of another stack\n');
  const { confirmed, names, part, overwrite } = args;
  const print = (changes: readonly PartChange[]): void => printChanges(changes, names.length > 0);
  const run = { place, archive: basename(args.file), made_at: opened.verified.header.created_at, confirmed, print };
  if (part === 'settings') return restoreSettings(opened.archive, run, names, stack.settings);
  const { secrets, values } = await readArchivedSettings(opened.archive);
  // In containers it is in .env.
  const archived = secrets['IDENTITY_SECRET_KEY'] ?? values['IDENTITY_SECRET_KEY'];
  const tokens = secret !== undefined && archived === secret;
  if (part === 'accounts' && !tokens)
    say('  !  App passwords are left out: this stack seals them with another secret (IDENTITY_SECRET_KEY)\n');
  const changes = await restoreRows(opened, databases, { ...run, part: part ?? 'files', names, overwrite, tokens });
  return ended(changes, confirmed);
}

type SettingsRun = Omit<AuditedRun, 'part'> & {
  confirmed: boolean;
  print: (changes: readonly PartChange[]) => void;
};

async function restoreSettings(
  archive: ReadArchive,
  run: SettingsRun,
  names: readonly string[],
  settings: RunningStack['settings'],
): Promise<number> {
  if (settings === undefined)
    throw new StackError(
      'In containers, the settings are in .env, which belongs to you alone. Nothing was changed.',
      'edit .env, then run ./scripts/start.sh. How to read the settings of an archive: docs/backup.md',
    );
  const { file, restart } = settings;
  const archived = await readArchivedSettings(archive);
  const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const changes = compareSettings(archived, before, names);
  say(`Settings in ${file}:\n`);
  run.print(changes);
  const chosen = changes.filter(isChange).map(({ target }) => target);
  if (chosen.length === 0 || !run.confirmed) return ended(changes, run.confirmed);
  const stamp = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  let copy: string | undefined;
  await audited({ ...run, part: 'settings' }, changes.filter(isChange), async () => {
    copy = writeSettings(file, archived, chosen, stamp);
    return changes;
  });
  say(copy === undefined ? `Wrote ${file}.\n` : `Wrote ${file}. The old file is ${copy}.\n`);
  say(`A restart applies them: ${restart}\n`);
  return 0;
}

function isChange({ effect }: PartChange): boolean {
  return effect !== 'kept' && effect !== 'refused';
}

/** Without names, what is there as in the archive is only counted. */
function printChanges(changes: readonly PartChange[], isNamed: boolean): void {
  const shown = changes.filter(({ effect, detail }) => isNamed || effect !== 'kept' || detail.includes('differs'));
  for (const { effect, target, detail } of shown)
    process.stdout.write(`  ${effect.padEnd(10)} ${target.padEnd(28)} ${detail}\n`);
  const rest = changes.length - shown.length;
  if (rest > 0) process.stdout.write(`  ${'kept'.padEnd(10)} ${counted(rest, 'item')} that the stack has\n`);
}

/** The exit code: 1 if something was refused. */
function ended(changes: readonly PartChange[], confirmed: boolean): number {
  const count = changes.filter(isChange).length;
  if (changes.some(({ effect }) => effect === 'refused')) {
    say('Nothing was changed: see the refused ones above.\n');
    return 1;
  }
  if (count === 0) say('Nothing to restore.\n');
  else if (confirmed) say(`Restored ${counted(count, 'item')}.\n`);
  else say(`Nothing was changed. To restore ${counted(count, 'item')}, run this again with --yes.\n`);
  return 0;
}
