// Inspects or unpacks a release archive for setup.sh, or inspects an unpacked release.
// Prints lines name=value on stdout. A failure has a remedy and leaves nothing behind.

import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { codeOf, StackError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, type Invocation, parseCommandLine, UsageError } from '@holdfast/kit/command';
import type { ReleaseArchive } from './archive.ts';
import { checkNeeds, readNeeds, type ReleaseNeeds } from './needs.ts';
import { checkUpgrade, type KnownRelease, withRelease } from './reading.ts';
import { completeRelease, type ReleaseRecord, unpackRelease } from './unpack.ts';

const USAGE = `Usage: release.js inspect ARCHIVE --releases DIR [--current VERSION]
       release.js unpack ARCHIVE --releases DIR [--expected VERSION]
       release.js installed VERSION --releases DIR
`;

interface ReleaseArguments {
  command: 'inspect' | 'unpack' | 'installed';
  subject: string;
  releases: string;
  current: string | undefined;
  expected: string | undefined;
}

function readArguments(argv: string[]): ReleaseArguments | 'help' {
  const { values, positionals } = parseCommandLine({
    args: argv,
    allowPositionals: true,
    options: {
      releases: { type: 'string' },
      current: { type: 'string' },
      expected: { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) return 'help';
  const [command, subject, ...more] = positionals;
  if (command !== 'inspect' && command !== 'unpack' && command !== 'installed')
    throw new UsageError(command === undefined ? 'No command given.' : `Unknown command: ${command}.`);
  if (subject === undefined || more.length > 0 || values.releases === undefined)
    throw new UsageError(`${command} needs one ${command === 'installed' ? 'VERSION' : 'ARCHIVE'} and --releases.`);
  return { command, subject, releases: values.releases, current: values.current, expected: values.expected };
}

/** Resolves with the exit code. */
export async function release({ argv }: Invocation): Promise<number> {
  const args = argumentsOrUsage(() => readArguments(argv), USAGE);
  if (typeof args === 'number') return args;
  const { subject, releases, current, expected } = args;
  try {
    answer(
      args.command === 'installed'
        ? await installed(subject, releases)
        : await withRelease<Answer>(subject, (archive, found, top) =>
            args.command === 'unpack'
              ? unpack(archive, found, top, releases, expected)
              : inspect(archive, found, releases, current),
          ),
    );
    return 0;
  } catch (error) {
    throw explainReleaseError(error, args.command === 'unpack' ? releases : subject);
  }
}

type Answer = Record<string, string | number>;

function answer(values: Answer): void {
  for (const [name, value] of Object.entries(values)) process.stdout.write(`${name}=${value}\n`);
}

async function inspect(archive: ReleaseArchive, release: KnownRelease, releases: string, current: string | undefined) {
  let currentNeeds: ReleaseNeeds | undefined;
  if (current !== undefined) {
    const before = completeRelease(join(releases, current));
    checkUpgrade(archive.name, release, { version: current, variant: before?.variant });
    if (before !== undefined) currentNeeds = await unpackedNeeds(before, join(releases, current));
  }
  const before = currentNeeds?.postgres.length === 1 ? { current_postgres: currentNeeds.postgres.join() } : {};
  const kept = completeRelease(join(releases, release.version));
  const isUnpacked = kept !== undefined && kept.sha256 === (await archive.sha256());
  return { ...answerOf(release), ...before, bytes: archive.bytes, unpacked: isUnpacked ? 'yes' : 'no' };
}

async function unpack(
  archive: ReleaseArchive,
  release: KnownRelease,
  top: string,
  releases: string,
  expected = release.version,
) {
  if (release.version !== expected)
    throw new StackError(
      `${archive.name} changed while it was read: it was TAK Server ${expected} and is now ${release.version}.`,
      'run this again when nothing writes to the file',
    );
  const { needs: _, ...recognized } = release;
  const record = { archive: archive.name, sha256: await archive.sha256(), ...recognized };
  const progress = percentProgress(archive.bytes, process.stderr, () => performance.now());
  const staging = await unpackRelease(archive, top, record, releases, progress.to);
  progress.end();
  return { directory: basename(staging) };
}

async function installed(version: string, releases: string) {
  const directory = join(releases, version);
  const record = completeRelease(directory);
  if (record === undefined || record.version !== version)
    throw new StackError(
      `The release ${version} in release/${version} is incomplete.`,
      `unpack it again: ./scripts/setup.sh takserver-docker-${version}.zip`,
    );
  const needs = await unpackedNeeds(record, directory);
  const known = checkNeeds(`release/${version}`, version, needs);
  return { ...answerOf({ ...record, needs: known }), bytes: record.bytes, unpacked: 'yes' };
}

function unpackedNeeds(record: ReleaseRecord, directory: string): Promise<ReleaseNeeds> {
  return readNeeds(record, (name) => readOrNone(join(directory, name)));
}

async function readOrNone(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function answerOf({ version, variant, coreDockerfile, databaseDockerfile, needs }: KnownRelease) {
  const { postgres, schema, java } = needs;
  return {
    version,
    variant,
    core_dockerfile: coreDockerfile,
    database_dockerfile: databaseDockerfile,
    postgres,
    schema,
    java: java ?? 'unknown',
  };
}

/** Explains file system errors of the archive or the releases directory. */
function explainReleaseError(error: unknown, path: string): unknown {
  switch (codeOf(error) ?? '') {
    case 'ENOSPC':
    case 'EDQUOT':
      return new StackError(
        'The disk is full. The unpacked files were removed.',
        'free some space, then run this again',
        error,
      );
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new StackError(`Couldn't read or write ${path}: permission denied.`, 'run this as its owner', error);
    case 'ENOENT':
    case 'EISDIR':
      return new StackError(`${path} is not a readable file.`, 'give the path of the downloaded archive', error);
    case 'EIO':
      return new StackError(`The disk of ${path} reports errors.`, 'read the kernel log: dmesg', error);
    default:
      return codeOf(error) === undefined
        ? error
        : new StackError(`Couldn't use ${path} (${String(error)}).`, 'fix what the message reports', error);
  }
}

const BETWEEN_LINES_MS = 10_000;

interface PercentProgress {
  to: (done: number) => void;
  end: () => void;
}

/** Prints the progress in percent: on a terminal at each change, otherwise every ten seconds. */
export function percentProgress(
  total: number,
  output: { write: (text: string) => unknown; isTTY?: boolean },
  clockMs: () => number,
): PercentProgress {
  let shown = -1;
  let shownAtMs = clockMs();
  return {
    to(done) {
      const percent = total === 0 ? 100 : Math.floor((done / total) * 100);
      if (percent === shown) return;
      if (output.isTTY !== true && clockMs() - shownAtMs < BETWEEN_LINES_MS) return;
      shown = percent;
      shownAtMs = clockMs();
      output.write(output.isTTY === true ? `\r  ${percent} %` : `  ${percent} %\n`);
    },
    end() {
      if (output.isTTY === true && shown >= 0) output.write('\r        \r');
    },
  };
}
