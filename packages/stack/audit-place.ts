// Where the audit log of a stack is, and its key: of a data directory of the embedded stack, or of the settings.

import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { codeOf, explainFileError, messageOf, StackError } from '@holdfast/kit/app-error';
import { UsageError } from '@holdfast/kit/command';
import { Secret } from '@holdfast/kit/secret';
import { parseEnvFile } from '../../shared/settings/load.ts';
import { layoutOf } from './process/layout.ts';

export interface AuditPlace {
  databaseUrl: Secret;
  key: Secret;
  /** Of the file with the last known record; undefined when it is not known where that would be. */
  headFile: string | undefined;
  /** What to do when the database does not answer. */
  remedy: string;
}

type Variables = Record<string, string | undefined>;

const stackSchema = z.object({ state_database: z.string().min(1) });
const secretsSchema = z.record(z.string(), z.unknown());

/** Throws a StackError with the remedy for whatever is missing. */
export function auditPlace(args: AuditArguments, home: string, environment: Variables): AuditPlace {
  const layers = [environment, fileVariables(args.env, home)];
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
      `There is no stack in ${args.data}.`,
      'name the directory that the stack was started with, --data DIR, or set DATABASE_URL and AUDIT_KEY',
    );
  const { state_database } = readJson(layout.stack, stackSchema);
  const kept = valueOf('AUDIT_KEY', layers) ?? generated(layout.secrets);
  return {
    databaseUrl: new Secret(state_database),
    key: new Secret(kept ?? missing('AUDIT_KEY')),
    headFile: join(layout.management, 'audit-head.json'),
    remedy: `the log is in the database, so start the stack: ./scripts/start.sh --embedded --data ${args.data}`,
  };
}

function fileVariables(explicit: string | undefined, home: string): Variables {
  const file = explicit ?? join(home, '.env');
  if (existsSync(file)) return parseEnvFile(read(file)).values;
  if (explicit === undefined) return {};
  throw new StackError(`--env ${file}: there is no such file.`, 'name the file that the stack was started with');
}

/** The first that is not empty. */
function valueOf(name: string, layers: readonly Variables[]): string | undefined {
  return layers.map((layer) => layer[name]).find((value) => value !== undefined && value !== '');
}

function generated(file: string): string | undefined {
  const value = readJson(file, secretsSchema)['AUDIT_KEY'];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function missing(name: string): never {
  throw new StackError(
    `${name} is not set.`,
    `set ${name} as the stack has it, in the environment or in .env${name === 'AUDIT_KEY' ? '; without it nothing can be verified' : ', or name the directory of an embedded stack, --data DIR'}`,
  );
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (['EACCES', 'EPERM'].includes(codeOf(error) ?? ''))
      throw new StackError(
        `${file} cannot be read by this user.`,
        'call audit.sh as the user that the stack runs as',
        error,
      );
    throw explainFileError(error, file);
  }
}

function readJson<S extends z.ZodType>(file: string, schema: S): z.infer<S> {
  const text = read(file);
  const parsed = z
    .string()
    .transform((value, context) => {
      try {
        return JSON.parse(value) as unknown;
      } catch {
        context.addIssue('no JSON');
        return z.NEVER;
      }
    })
    .pipe(schema)
    .safeParse(text);
  if (parsed.success) return parsed.data;
  throw new StackError(`${file} cannot be understood.`, 'start the stack again, which writes it anew');
}

// The command line of audit.sh.

export interface AuditArguments {
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

export const AUDIT_USAGE = `Usage: ./scripts/audit.sh verify [options]
       ./scripts/audit.sh prune --before YYYY-MM-DD [--yes] [options]

  verify               look at every record: exit 0 when all are as they were written, else 1
  prune                remove the records from before that day (UTC); without --yes only say which
  --data DIR           the directory of a running embedded stack (default: data in the repository, or what
                       DATABASE_URL names when that is set)
  --env FILE           read AUDIT_KEY from FILE instead of .env in the repository
  --although-broken    prune a log although it is not as it was written
  --help               show this text
`;

/** `home` is the repository, `cwd` where the person stands, `today` a day such as 2026-01-31. */
export function parseAuditArguments(
  args: readonly string[],
  { home, cwd, hasDatabaseUrl, today }: { home: string; cwd: string; hasDatabaseUrl: boolean; today: string },
): AuditArguments | 'help' {
  const { values, positionals } = parse(args);
  if (values.help === true) return 'help';
  const [command, ...rest] = positionals;
  if (command !== 'verify' && command !== 'prune')
    throw new UsageError(`${command === undefined ? 'Nothing' : command} is no command: write verify or prune`);
  if (rest[0] !== undefined) throw new UsageError(`${rest[0]}: one command at a time`);
  const pruning = [values.before, values.yes, values['although-broken']].some((value) => value !== undefined);
  if (command === 'verify' && pruning) throw new UsageError('--before, --yes and --although-broken belong to prune');
  return {
    command,
    data: dataDirectory(values.data, hasDatabaseUrl, home, cwd),
    env: values.env === undefined ? undefined : resolve(cwd, values.env),
    before: command === 'prune' ? dayOf(values.before, today) : '',
    yes: values.yes === true,
    althoughBroken: values['although-broken'] === true,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
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
  } catch (error) {
    throw new UsageError(messageOf(error).split('. ')[0]);
  }
}

function dataDirectory(value: string | undefined, hasUrl: boolean, home: string, cwd: string): string | undefined {
  if (value === undefined) return hasUrl ? undefined : resolve(home, 'data');
  if (value === '' || /\p{Cc}/u.test(value))
    throw new UsageError('--data needs a directory, without control characters');
  return resolve(cwd, value);
}

function dayOf(value: string | undefined, today: string): string {
  const example = `such as --before ${today}`;
  if (value === undefined) throw new UsageError(`prune needs a day before which records are removed, ${example}`);
  const time = /^\d{4}-\d{2}-\d{2}$/.test(value) ? new Date(`${value}T00:00:00.000Z`) : new Date(Number.NaN);
  if (Number.isNaN(time.getTime()) || !time.toISOString().startsWith(value))
    throw new UsageError(`--before ${value}: must be a day as YYYY-MM-DD, ${example}`);
  if (value > today) throw new UsageError(`--before ${value}: lies in the future; today (UTC) is ${today}`);
  return time.toISOString();
}
