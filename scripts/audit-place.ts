// Where the audit log of a stack is, and its key: of a data directory of the embedded stack, or of the settings.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { layoutOf } from '../compose/embedded/layout.ts';
import { explainFileError, StackError } from '../compose/embedded/stack-error.ts';
import { parseEnvFile } from '../shared/config/env-file.ts';
import { Secret } from '../shared/domain/secret.ts';
import { codeOf } from '../shared/domain/thrown.ts';
import type { AuditArguments } from './audit-arguments.ts';

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
