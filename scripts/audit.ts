// Entry of audit.sh: says whether the audit log is as it was written, and removes old records when a person asks for it.

import { resolve } from 'node:path';
import { AppError, StackError } from '@holdfast/kit/app-error';
import { argumentsOrUsage, exitWith } from '@holdfast/kit/command';
import { counted } from '@holdfast/kit/format';
import { freshConnections, keptDatabase } from '@holdfast/kit/kept-database';
import { MINUTE_MS } from '@holdfast/kit/time';
import { stackDatabaseUrl } from '@holdfast/setup/containers/plan';
import {
  AUDIT_USAGE,
  type AuditArguments,
  type AuditPlace,
  auditPlace,
  parseAuditArguments,
} from '@holdfast/stack/audit-place';
import { auditChain, readHeadFile } from '../shared/audit/chain.ts';
import type { AuditVerdict } from '../shared/audit/port.ts';
import { type Prunable, prunable, pruneAudit } from '../shared/audit/prune.ts';
import { verifyChain } from '../shared/audit/verify.ts';
import { forgetPostgresVariables } from '../shared/settings/handover.ts';

const home = resolve(import.meta.dirname, '..');
const DATABASE = { name: 'holdfast-audit', called: 'our own database', variable: 'DATABASE_URL' };
const PRUNE_WITHIN_MS = 30 * MINUTE_MS;
const PROGRESS_EVERY_MS = 2_000;

async function main(): Promise<number> {
  forgetPostgresVariables(process.env);
  const args = readArguments();
  if (typeof args === 'number') return args;
  const place = auditPlace(args, home, { ...process.env, DATABASE_URL: databaseUrlHere() });
  return act(args, place).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.code !== 'unavailable') throw error;
    throw new StackError(`${error.message}.`, place.remedy, error);
  });
}

/** In the container of management it is made of a password. */
function databaseUrlHere(): string | undefined {
  const given = process.env['DATABASE_URL'] ?? '';
  return given === '' ? stackDatabaseUrl(process.env) : given;
}

async function act(args: AuditArguments, place: AuditPlace): Promise<number> {
  const verdict = await verify(place);
  if (args.command === 'verify') {
    say(verdictText(verdict, place));
    return verdict.ok ? 0 : 1;
  }
  if (!verdict.ok && !args.althoughBroken) {
    say(verdictText(verdict, place));
    say('Nothing was removed. Remedy: look into it first; to prune all the same, add --although-broken\n');
    return 1;
  }
  return prune(args, place);
}

function readArguments(): AuditArguments | number {
  const today = new Date().toISOString().slice(0, 10);
  const hasDatabaseUrl = (databaseUrlHere() ?? '') !== '';
  return argumentsOrUsage(
    () => parseAuditArguments(process.argv.slice(2), { home, cwd: process.cwd(), hasDatabaseUrl, today }),
    AUDIT_USAGE,
  );
}

async function verify({ databaseUrl, key, headFile }: AuditPlace): Promise<AuditVerdict> {
  const head = headFile === undefined ? undefined : await readHeadFile(headFile, { error: warnOfHead });
  let saidMs = performance.now();
  const progress = (records: number): void => {
    if (performance.now() - saidMs < PROGRESS_EVERY_MS) return;
    saidMs = performance.now();
    process.stderr.write(`  ... ${counted(records, 'record')}\n`);
  };
  return verifyChain({ run: keptDatabase(databaseUrl, DATABASE), chain: auditChain(key), head, progress });
}

function warnOfHead(_: string, fields: Readonly<Record<string, unknown>> = {}): void {
  const { file, error } = fields;
  process.stderr.write(`  !    ${String(file)} cannot be read (${String(error)}): nothing is said about the end\n`);
}

function verdictText({ ok, records, first_broken }: AuditVerdict, { headFile }: AuditPlace): string {
  if (ok) return `The audit log is as it was written: ${counted(records, 'record')}.\n`;
  return [
    `The audit log is NOT as it was written. ${counted(records, 'record')} looked at; the first that is changed or missing is ${String(first_broken)}.`,
    'Records before it can be trusted, those from it on cannot. When it is the first of all, AUDIT_KEY may be another than the one',
    'that the log was written with. When our own database was put back from a backup, the records after the backup are missing.',
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
    say(`${prunedText(wanted, 'To be removed', before)}${stopText(wanted)}`);
    if (wanted.records > 0) say('Nothing was removed. To remove it, add --yes\n');
    return 0;
  }
  process.stderr.write(`  ... removing ${counted(wanted.records, 'record')}\n`);
  const detail = { uid: String(process.getuid?.() ?? '') };
  const done = await pruneAudit({ run, chain: auditChain(key), before, now, actor: 'audit.sh', detail });
  say(`${prunedText(done, 'Removed', before)}${stopText(done)}`);
  return 0;
}

function prunedText({ records, oldest, newest }: Prunable, what: string, before: string): string {
  if (records === 0) return `No record from before ${before} can be removed.\n`;
  return `${what}: ${counted(records, 'record')}, from ${String(oldest)} to ${String(newest)}.\n`;
}

function stopText({ stopsAt }: Prunable): string {
  if (stopsAt === null) return '';
  return `Record ${stopsAt} is an intent of the last day without an outcome: it stays, and what is after it.\n`;
}

function say(text: string): void {
  process.stdout.write(text);
}

await exitWith(main);
