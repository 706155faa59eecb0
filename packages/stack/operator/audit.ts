// Verifies the audit log of a stack, or removes old records. Finds the log by a data directory or
// the settings.

import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { AppError, codeOf, explainFileError, StackError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, type Invocation, parseCommandLine, UsageError } from '@holdfast/kit/command';
import { counted } from '@holdfast/kit/format';
import { freshConnections, keptDatabase } from '@holdfast/kit/kept-database';
import { forgetPostgresVariables } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { MINUTE_MS } from '@holdfast/kit/time';
import { auditChain, readHeadFile } from '../../../shared/audit/chain.ts';
import type { AuditVerdict } from '../../../shared/audit/port.ts';
import { type Prunable, prunable, pruneAudit } from '../../../shared/audit/prune.ts';
import { verifyChain } from '../../../shared/audit/verify.ts';
import { parseEnvFile } from '../../../shared/settings/load.ts';
import { envFileOf } from '../env-file-layer.ts';
import { dataDirectory, layoutOf } from '../process/layout.ts';
import { parseObject } from '../secrets.ts';

interface AuditArguments {
  command: 'verify' | 'prune';
  /** Absolute; undefined: what DATABASE_URL names. */
  data: string | undefined;
  /** Absolute; undefined means .env in the repository root, if it is there. */
  env: string | undefined;
  /** Of prune: ISO 8601, the beginning of a day. */
  before: string;
  yes: boolean;
  althoughBroken: boolean;
}

interface AuditPlace {
  databaseUrl: Secret;
  key: Secret;
  /** Path of the file with the last known record; undefined if unknown. */
  headFile: string | undefined;
  /** What to do when the database does not answer. */
  remedy: string;
}

type Variables = Record<string, string | undefined>;

const USAGE = `Usage: ./scripts/audit.sh verify [options]
       ./scripts/audit.sh prune --before YYYY-MM-DD [--yes] [options]

  verify               check every record; exit code 0 if all are intact, else 1
  prune                remove records older than that day (UTC); without --yes only show which
  --data DIR           data directory of a running embedded stack (default: the database of DATABASE_URL if
                       that is set, else data in the repository)
  --env FILE           read AUDIT_KEY from FILE instead of .env in the repository
  --although-broken    prune even if verification fails
  --help               show this help
`;
const DATABASE = { name: 'holdfast-audit', called: 'our own database', variable: 'DATABASE_URL' };
const PRUNE_WITHIN_MS = 30 * MINUTE_MS;
const PROGRESS_EVERY_MS = 2_000;

/**
 * The program of audit.sh; resolves with its exit code.
 * `databaseUrl`: DATABASE_URL, or the URL that a container builds from a password.
 */
export async function audit(call: Invocation, databaseUrl: string | undefined): Promise<number> {
  forgetPostgresVariables(call.environment);
  const args = argumentsOrUsage(() => readArguments(call, (databaseUrl ?? '') !== ''), USAGE);
  if (typeof args === 'number') return args;
  const place = auditPlace(args, call.home, { ...call.environment, DATABASE_URL: databaseUrl });
  return act(args, place).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'unavailable') throw error;
    throw new StackError(`${error.message}.`, place.remedy, error);
  });
}

function readArguments(call: Invocation, hasDatabaseUrl: boolean): AuditArguments | 'help' {
  const { values, positionals } = parseCommandLine({
    args: call.argv,
    allowPositionals: true,
    options: {
      data: { type: 'string' },
      env: { type: 'string' },
      before: { type: 'string' },
      yes: { type: 'boolean' },
      'although-broken': { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) return 'help';
  const [command, more] = positionals;
  if (command !== 'verify' && command !== 'prune')
    throw new UsageError(
      `${command === undefined ? 'No command' : `Unknown command: ${command}`}. Use verify or prune`,
    );
  if (more !== undefined) throw new UsageError(`Unexpected argument: ${more}. Give one command at a time`);
  const pruning = [values.before, values.yes, values['although-broken']].some((value) => value !== undefined);
  if (command === 'verify' && pruning)
    throw new UsageError('--before, --yes and --although-broken are options of prune');
  return {
    command,
    data: values.data === undefined && hasDatabaseUrl ? undefined : dataDirectory(values.data, call),
    env: values.env === undefined ? undefined : resolve(call.cwd, values.env),
    before: command === 'prune' ? dayOf(values.before, new Date().toISOString().slice(0, 10)) : '',
    yes: values.yes === true,
    althoughBroken: values['although-broken'] === true,
  };
}

function dayOf(value: string | undefined, today: string): string {
  const example = `such as --before ${today}`;
  if (value === undefined) throw new UsageError(`prune needs a date: records before it are removed, ${example}`);
  const time = /^\d{4}-\d{2}-\d{2}$/.test(value) ? new Date(`${value}T00:00:00.000Z`) : new Date(Number.NaN);
  if (Number.isNaN(time.getTime()) || !time.toISOString().startsWith(value))
    throw new UsageError(`--before ${value}: must be a date as YYYY-MM-DD, ${example}`);
  if (value > today) throw new UsageError(`--before ${value}: is in the future. Today (UTC) is ${today}`);
  return time.toISOString();
}

/** Throws a StackError with a remedy if a setting is missing. */
function auditPlace(args: AuditArguments, home: string, environment: Variables): AuditPlace {
  const layers = [environment, fileVariables(args.env, home, args.data)];
  if (args.data === undefined) {
    const directory = valueOf('DATA_DIR', layers);
    return {
      databaseUrl: new Secret(valueOf('DATABASE_URL', layers) ?? missing('DATABASE_URL')),
      key: new Secret(valueOf('AUDIT_KEY', layers) ?? missing('AUDIT_KEY')),
      headFile: directory && join(directory, 'audit-head.json'),
      remedy: 'correct DATABASE_URL, or start the database that it names',
    };
  }
  const layout = layoutOf(args.data);
  if (!existsSync(layout.stack))
    throw new StackError(
      `No running stack in ${args.data}.`,
      'give the data directory of the stack with --data DIR, or set DATABASE_URL and AUDIT_KEY',
    );
  const databaseUrl = textIn(layout.stack, 'state_database') ?? notUnderstood(layout.stack);
  const kept = valueOf('AUDIT_KEY', layers) ?? textIn(layout.secrets, 'AUDIT_KEY');
  return {
    databaseUrl: new Secret(databaseUrl),
    key: new Secret(kept ?? missing('AUDIT_KEY')),
    headFile: join(layout.management, 'audit-head.json'),
    remedy: `start the stack, whose database holds the log: ./scripts/start.sh --embedded --data ${args.data}`,
  };
}

function fileVariables(explicit: string | undefined, home: string, data: string | undefined): Variables {
  const file = explicit ?? envFileOf(home, data === undefined ? undefined : layoutOf(data).env);
  if (existsSync(file)) return parseEnvFile(read(file)).values;
  if (explicit === undefined) return {};
  throw new StackError(`--env ${file}: file not found.`, 'give the env file of the stack');
}

/** The first that is not empty. */
function valueOf(name: string, layers: readonly Variables[]): string | undefined {
  return layers.map((layer) => layer[name]).find((value) => value !== undefined && value !== '');
}

function missing(name: string): never {
  throw new StackError(
    `${name} is not set.`,
    `set ${name} to the stack's value, in the environment or in .env${name === 'AUDIT_KEY' ? '. Without it nothing can be verified' : ', or give the data directory of an embedded stack with --data DIR'}`,
  );
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (['EACCES', 'EPERM'].includes(codeOf(error) ?? ''))
      throw new StackError(
        `Couldn't read ${file}: permission denied.`,
        'run audit.sh as the user that the stack runs as',
        error,
      );
    throw explainFileError(error, file);
  }
}

/** A string member of a JSON file; undefined if missing or empty. */
function textIn(file: string, name: string): string | undefined {
  const value = (parseObject(read(file)) ?? notUnderstood(file))[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function notUnderstood(file: string): never {
  throw new StackError(`${file} is damaged.`, 'restart the stack, which rewrites the file');
}

async function act(args: AuditArguments, place: AuditPlace): Promise<number> {
  const verdict = await verify(place);
  if (args.command === 'verify') {
    say(verdictText(verdict, place));
    return verdict.ok ? 0 : 1;
  }
  if (!verdict.ok && !args.althoughBroken) {
    say(verdictText(verdict, place));
    say('Nothing was removed. Remedy: find the cause first. To prune anyway, add --although-broken\n');
    return 1;
  }
  return prune(args, place);
}

async function verify({ databaseUrl, key, headFile }: AuditPlace): Promise<AuditVerdict> {
  const head = headFile === undefined ? undefined : await readHeadFile(headFile, { error: warnOfHead });
  let reportedMs = performance.now();
  const progress = (records: number): void => {
    if (performance.now() - reportedMs < PROGRESS_EVERY_MS) return;
    reportedMs = performance.now();
    process.stderr.write(`  ... ${counted(records, 'record')}\n`);
  };
  return verifyChain({ run: keptDatabase(databaseUrl, DATABASE), chain: auditChain(key), head, progress });
}

function warnOfHead(_: string, fields: Readonly<Record<string, unknown>> = {}): void {
  const { file, error } = fields;
  process.stderr.write(
    `  !    Couldn't read ${String(file)} (${String(error)}). Missing records at the end go undetected.\n`,
  );
}

function verdictText({ ok, records, first_broken }: AuditVerdict, { headFile }: AuditPlace): string {
  if (ok) return `The audit log is intact: ${counted(records, 'record')}.\n`;
  return [
    `The audit log is NOT intact. ${counted(records, 'record')} checked. First changed or missing record: ${String(first_broken)}.`,
    'Trust only the records before it. If it is the very first record, AUDIT_KEY may differ from the key that wrote the log.',
    'If the Holdfast database was restored from a backup, the records after the backup are missing.',
    `  Remedy: copy the database${headFile === undefined ? '' : ` and ${headFile}`}, find out who could write to the database, and read "When`,
    '  verifying fails" in docs/audit.md',
    '',
  ].join('\n');
}

async function prune({ before, yes }: AuditArguments, { databaseUrl, key }: AuditPlace): Promise<number> {
  const run = freshConnections(databaseUrl, { ...DATABASE, withinMs: PRUNE_WITHIN_MS });
  const now = new Date();
  const wanted = await prunable({ run, before, now });
  if (wanted.records === 0 || !yes) {
    say(`${prunedText(wanted, 'Will remove', before)}${stopText(wanted)}`);
    if (wanted.records > 0) say('Nothing was removed. To remove them, add --yes\n');
    return 0;
  }
  process.stderr.write(`  ... removing ${counted(wanted.records, 'record')}\n`);
  const detail = { uid: String(process.getuid?.() ?? '') };
  const done = await pruneAudit({ run, chain: auditChain(key), before, now, actor: 'audit.sh', detail });
  say(`${prunedText(done, 'Removed', before)}${stopText(done)}`);
  return 0;
}

function prunedText({ records, oldest, newest }: Prunable, action: string, before: string): string {
  if (records === 0) return `No records before ${before.slice(0, 10)} can be removed.\n`;
  return `${action}: ${counted(records, 'record')}, from ${String(oldest)} to ${String(newest)}.\n`;
}

function stopText({ stopsAt }: Prunable): string {
  if (stopsAt === null) return '';
  return `Kept record ${stopsAt} and later ones: it is an intent of the last day without an outcome.\n`;
}

function say(text: string): void {
  process.stdout.write(text);
}
