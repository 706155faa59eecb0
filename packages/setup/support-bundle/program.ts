// The program of support-bundle.sh: what somebody needs who is to help, as one archive without a secret in it. For an embedded stack
// it is collected here; for containers the script collects, and this cleans what comes in (--clean) or asks management (--facts).

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

Writes an archive for whoever is to help: versions, settings without their secrets, the last lines of every log, health.

  --output FILE   where to (default: support-DATE.tar.gz here)
  --data DIR      the directory of an embedded stack; without it the stack in containers, where .env describes one
  --help          show this text
`;
/** The raw settings in what comes in; read for the secrets in them, and never in what goes out as they are. */
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
    // Nothing, or a part: the disk may be full.
    if (output !== undefined) rmSync(args.output, { force: true });
    throw error;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  process.stderr.write(
    `${args.output} is written. Look into it before you give it away: names of people, addresses and callsigns are in its logs.\n`,
  );
  return 0;
}

/** Before anything is collected, and never what is there already or what a link leads to. */
function newFile(path: string): number {
  try {
    return openSync(path, 'wx', 0o600);
  } catch (error) {
    throw new StackError(
      codeOf(error) === 'EEXIST' ? `${path} is there already.` : `${path} cannot be written (${messageOf(error)}).`,
      'give another --output FILE',
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
  if (values.output === '') throw new UsageError('--output has no value');
  if (positionals[0] !== undefined) throw new UsageError(`${positionals[0]}: nothing is expected here`);
  const stamp = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const output = resolve(call.cwd, values.output ?? `support-${stamp}.tar.gz`);
  const what = values.clean === true ? 'clean' : values.facts === true ? 'facts' : 'embedded';
  return { what, place: operatorPlace(values.data, call), output };
}

/** Every file is cleaned, and looked through once more: what is still found is a defect, and nothing is given out. */
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

/** Of what was written in the place of a secret, nothing counts. */
function mustBeClean(directory: string, secrets: readonly KnownSecret[], clean: Clean): void {
  const names = new Set(secrets.map(({ name }) => name));
  for (const file of filesIn(directory).filter((name) => name !== REPORT)) {
    const text = readFileSync(join(directory, file), 'utf8').replaceAll(/\[removed[^\]]*\]/g, '');
    const left = [...clean(text).found.keys()].find((name) => names.has(name));
    if (left === undefined) continue;
    throw new StackError(
      `${left} is still in ${file} after it was taken out. Nothing was written.`,
      'report this as a defect, without the file',
    );
  }
}

/** Reads the raw settings, and leaves in their place what may be seen of them. */
function settingsSecrets(directory: string): KnownSecret[] {
  return filesIn(directory)
    .filter((file) => file.startsWith(`${SETTINGS_DIRECTORY}/`))
    .flatMap((file) => {
      // Compose takes `NAME: value` as well.
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
  const lines = [...report].map(([name, files]) => `${name}: taken out of ${files.join(', ')}`);
  const unsearched = short.map(
    (name) => `${name}: has fewer than ${MIN_SEARCHED} characters and was not searched for; change it`,
  );
  return `${[...lines, ...unsearched].join('\n') || 'Nothing had to be taken out.'}\n`;
}

function tar(args: readonly string[], input?: Buffer): Buffer {
  const { status, stdout, stderr, error } = spawnSync('tar', [...args], {
    ...(input === undefined ? {} : { input }),
    maxBuffer: 1024 * 1024 * 1024,
  });
  if (status === 0) return stdout;
  throw new StackError(
    `tar failed: ${error?.message ?? stderr.toString().trim()}`,
    'see that tar is installed, and that the disk of the temporary directory has room',
  );
}
