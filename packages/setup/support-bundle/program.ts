// Writes a support archive without secrets (support-bundle.sh). Collects an embedded stack itself.
// For containers, the script collects; this program cleans its archive (--clean) or asks management
// (--facts).

import { spawnSync } from 'node:child_process';
import { mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { codeOf, messageOf, StackError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, type Invocation, parseCommandLine, UsageError } from '@holdfast/kit/command';
import { parseEnvFile } from '../../../shared/settings/load.ts';
import { OPERATOR_OPTIONS, operatorPlace, type OperatorPlace } from '@holdfast/stack/operator/place';
import {
  type Clean,
  cleanerOf,
  collectEmbedded,
  factsOf,
  isSecret,
  type KnownSecret,
  MIN_SEARCHED,
  secretsOf,
} from './embedded.ts';

interface BundleArguments {
  what: 'clean' | 'facts' | 'embedded';
  place: OperatorPlace;
  output: string;
}

const USAGE = `Usage: ./scripts/support-bundle.sh [--output FILE] [--data DIR]

Writes an archive for support: versions, names of the settings, the last lines of every log, health. Removes secrets.

  --output FILE   file to write (default: support-DATE.tar.gz in the current directory)
  --data DIR      data directory of an embedded stack (default: the stack in containers, if .env describes one)
  --help          show this help
`;
/**
 * Directory of the raw settings in the input. Used to find secrets; never in the output as they
 * are.
 */
const SETTINGS_DIRECTORY = 'settings';
const REPORT = 'CLEANED.txt';

/** Resolves with the exit code. */
export async function supportBundle(call: Invocation): Promise<number> {
  const args = argumentsOrUsage(() => readArguments(call), USAGE);
  if (typeof args === 'number') return args;
  if (args.what === 'facts') {
    process.stdout.write(`${JSON.stringify(await factsOf(args.place, call.environment), null, 2)}\n`);
    return 0;
  }
  const output = args.what === 'embedded' ? newFile(args.output) : undefined;
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-bundle-'));
  try {
    if (output === undefined) {
      tar(['-xf', '-', '-C', directory], await buffer(process.stdin));
      process.stdout.write(cleanedArchive(directory, []));
      return 0;
    }
    const secrets = await collectEmbedded(directory, args.place, call.home);
    writeFileSync(output, cleanedArchive(directory, secrets));
  } catch (error) {
    // The file may be incomplete, for example on a full disk.
    if (output !== undefined) rmSync(args.output, { force: true });
    throw error;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  process.stderr.write(
    `Wrote ${args.output}. Review it before you send it: its logs contain names of people, addresses and callsigns.\n`,
  );
  return 0;
}

/** Creates the file before anything is collected. Never overwrites a file or follows a link. */
function newFile(path: string): number {
  try {
    return openSync(path, 'wx', 0o600);
  } catch (error) {
    throw new StackError(
      codeOf(error) === 'EEXIST' ? `${path} already exists.` : `Couldn't write ${path} (${messageOf(error)}).`,
      'choose another file with --output FILE',
      error,
    );
  }
}

function readArguments(call: Invocation): BundleArguments | 'help' {
  const { values, positionals } = parseCommandLine({
    args: call.argv,
    options: {
      ...OPERATOR_OPTIONS,
      output: { type: 'string' },
      clean: { type: 'boolean' },
      facts: { type: 'boolean' },
    },
    allowPositionals: true,
  });
  if (values.help === true) return 'help';
  if (values.output === '') throw new UsageError('--output needs a file name');
  if (positionals[0] !== undefined) throw new UsageError(`Unexpected argument: ${positionals[0]}`);
  const stamp = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const output = resolve(call.cwd, values.output ?? `support-${stamp}.tar.gz`);
  const what = values.clean === true ? 'clean' : values.facts === true ? 'facts' : 'embedded';
  return { what, place: operatorPlace(values.data, call), output };
}

/**
 * Cleans every file and checks it again. A secret that is still found is a bug: then nothing is
 * written.
 */
function cleanedArchive(directory: string, known: readonly KnownSecret[]): Buffer {
  const secrets = [...known, ...settingsSecrets(directory)];
  const clean = cleanerOf(secrets);
  const report = new Map<string, string[]>();
  for (const file of filesIn(directory)) {
    const { text, found } = clean(readFileSync(join(directory, file), 'utf8'));
    writeFileSync(join(directory, file), text);
    for (const [name, times] of found) report.set(name, [...(report.get(name) ?? []), `${file} (${times})`]);
  }
  const short = secrets.filter(({ value }) => value.length < MIN_SEARCHED).map(({ name }) => name);
  writeFileSync(join(directory, REPORT), reportText(report, short));
  mustBeClean(directory, secrets, clean);
  return tar(['-czf', '-', '-C', directory, '.']);
}

/** Ignores the replacement texts themselves. */
function mustBeClean(directory: string, secrets: readonly KnownSecret[], clean: Clean): void {
  const names = new Set(secrets.map(({ name }) => name));
  for (const file of filesIn(directory).filter((name) => name !== REPORT)) {
    const text = readFileSync(join(directory, file), 'utf8').replaceAll(/\[removed[^\]]*\]/g, '');
    const left = [...clean(text).found.keys()].find((name) => names.has(name));
    if (left === undefined) continue;
    throw new StackError(
      `Couldn't remove ${left} from ${file}. Nothing was written.`,
      'report this as a bug, without the file',
    );
  }
}

/** Reads the secrets in the raw settings, and replaces secret values with ***. */
function settingsSecrets(directory: string): KnownSecret[] {
  return filesIn(directory)
    .filter((file) => file.startsWith(`${SETTINGS_DIRECTORY}/`))
    .flatMap((file) => {
      // Compose also accepts `NAME: value`.
      const written = readFileSync(join(directory, file), 'utf8').replaceAll(/^(\s*(?:export\s+)?\w+\s*):/gm, '$1=');
      const { values } = parseEnvFile(written);
      const shown = Object.entries(values).map(
        ([name, value]) => `${name}=${isSecret(name, value) && value !== '' ? '***' : value}`,
      );
      writeFileSync(join(directory, file), `${shown.join('\n')}\n`);
      return secretsOf(values);
    });
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((name) => join(directory, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => relative(directory, path))
    .toSorted();
}

function reportText(report: ReadonlyMap<string, readonly string[]>, short: readonly string[]): string {
  const lines = [...report].map(([name, files]) => `${name}: removed from ${files.join(', ')}`);
  const unsearched = short.map(
    (name) => `${name}: not searched for, because it has fewer than ${MIN_SEARCHED} characters. Change it`,
  );
  return `${[...lines, ...unsearched].join('\n') || 'Nothing had to be removed.'}\n`;
}

function tar(args: readonly string[], input?: Buffer): Buffer {
  const { status, stdout, stderr, error } = spawnSync('tar', [...args], {
    ...(input === undefined ? {} : { input }),
    maxBuffer: 1024 * 1024 * 1024,
  });
  if (status === 0) return stdout;
  throw new StackError(
    `tar failed: ${error?.message ?? stderr.toString().trim()}`,
    'check that tar is installed, and free disk space: df -h /tmp',
  );
}
