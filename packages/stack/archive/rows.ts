// Restores rows of an archive into the databases of a running stack: one transaction, tried first,
// and recorded in the audit log.

import type { DatabaseKey } from '@holdfast/backup/manifest';
import { type AccountOptions, listAccounts, restoreAccounts } from '@holdfast/backup/parts/accounts';
import { listFiles, restoreFiles } from '@holdfast/backup/parts/files';
import { listMissions, restoreMissions } from '@holdfast/backup/parts/missions';
import type { PartChange } from '@holdfast/backup/parts/rows';
import type { DatabasePlace } from '@holdfast/backup/tables';
import { StackError } from '@holdfast/kit/app-error';
import { say } from '@holdfast/kit/command';
import { counted, formatBytes, formatUtc } from '@holdfast/kit/format';
import { nameKey } from '@holdfast/kit/names';
import { connect, type Sql, type TransactionSql } from '@holdfast/kit/postgres';
import { SECOND_MS } from '@holdfast/kit/time';
import { audited, type AuditedRun } from './audited.ts';
import { type OpenOptions, withArchive } from './open-archive.ts';

export type Opened = Omit<OpenOptions, 'only' | 'progress'>;
export type RowPart = 'accounts' | 'missions' | 'files';

/** Retention and long statements hold no locks that long; people wait meanwhile. */
const LOCK_WITHIN_MS = 15 * SECOND_MS;
const DATABASE: Readonly<Record<RowPart, DatabaseKey>> = { accounts: 'identity', missions: 'core', files: 'core' };
/** As `show` prints them, or longer. */
const HASH_START = /^[\da-f]{12,64}$/i;
const ITEM = { accounts: 'account', missions: 'mission', files: 'file' } as const;

/** What the archive holds, as text. */
export async function rowsShown(opened: Opened, parts: readonly RowPart[]): Promise<string> {
  const databases = [...new Set(parts.map((part) => DATABASE[part]))];
  return withArchive({ ...opened, only: { databases, history: false }, progress: loadingLine() }, async (places) => {
    const texts: string[] = [];
    for (const part of parts) {
      const lines = await connected(places, DATABASE[part], (sql) => LINES[part](sql));
      texts.push(`${counted(lines.length, ITEM[part])}:\n${lines.map((line) => `  ${line}\n`).join('')}`);
    }
    return texts.join('');
  });
}

const LINES: Readonly<Record<RowPart, (sql: Sql) => Promise<string[]>>> = {
  accounts: async (sql) =>
    (await listAccounts(sql)).map(
      ({ username, is_active, groups }) =>
        `${username.padEnd(28)} ${is_active ? 'active' : 'deactivated'}; ${groups.map(({ name }) => name).join(', ') || 'no groups'}`,
    ),
  missions: async (sql) =>
    (await listMissions(sql)).map(
      ({ name, created_at, edited_at, uids, files }) =>
        `${name.padEnd(28)} ${counted(uids, 'map item')}, ${counted(files, 'file')}; made ${formatUtc(created_at.toISOString())}${edited_at === null ? '' : `, changed ${formatUtc(edited_at.toISOString())}`}`,
    ),
  files: async (sql) =>
    (await listFiles(sql)).map(
      ({ name, hash, bytes, submitter, submitted_at }) =>
        `${name.padEnd(28)} ${hash.slice(0, 12)} ${formatBytes(bytes)}, of ${submitter}${submitted_at === null ? '' : `, ${formatUtc(submitted_at.toISOString())}`}`,
    ),
};

/** One line, at the first phase. */
function loadingLine(): (phase: string) => void {
  let hasWritten = false;
  return () => {
    if (!hasWritten) say('Loading the archive into a scratch database...\n');
    hasWritten = true;
  };
}

async function connected<T>(
  places: readonly DatabasePlace[],
  key: DatabaseKey,
  use: (sql: Sql) => Promise<T>,
  lockTimeoutMs = 0,
): Promise<T> {
  const place = places.find((each) => each.key === key);
  if (place === undefined) throw new StackError(`The archive has no database ${key}.`, 'use another archive');
  const sql = connect(place.url, { name: 'holdfast-restore', max: 1, lasting: true, lockTimeoutMs });
  try {
    return await use(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

interface RowsRun extends Omit<AuditedRun, 'part'> {
  part: RowPart;
  names: readonly string[];
  overwrite: boolean;
  tokens: boolean;
  confirmed: boolean;
  print: (changes: readonly PartChange[]) => void;
}

/** Carries the outcome out of a transaction that must not be committed. */
class Tried extends Error {
  readonly changes: PartChange[];

  constructor(changes: PartChange[]) {
    super('tried only');
    this.changes = changes;
  }
}

/**
 * Tries it, prints what would change, and with `confirmed` does it, unless something is refused.
 * Resolves with the changes.
 */
export async function restoreRows(
  opened: Opened,
  running: readonly DatabasePlace[],
  run: RowsRun,
): Promise<PartChange[]> {
  const key = DATABASE[run.part];
  const only = { databases: [key], history: run.part === 'missions' };
  return withArchive({ ...opened, only, progress: loadingLine() }, (places) =>
    connected(places, key, (from) =>
      connected(
        running,
        key,
        async (to) => {
          const attempt = async (tx: TransactionSql): Promise<PartChange[]> => {
            throw new Tried(await restored(from, tx, run, false));
          };
          const tried = await to.begin(attempt).catch((error: unknown) => {
            if (error instanceof Tried) return error.changes;
            throw explained(error);
          });
          run.print(tried);
          const wanted = tried.filter(({ effect }) => effect !== 'kept');
          const isRefused = wanted.some(({ effect }) => effect === 'refused');
          if (!run.confirmed || wanted.length === 0 || isRefused) return tried;
          return audited({ ...run, part: ITEM[run.part] }, wanted, async () => {
            opened.aborted.throwIfAborted();
            return to
              .begin(async (tx) => restored(from, tx, run, true))
              .catch((error: unknown) => {
                throw explained(error);
              });
          });
        },
        LOCK_WITHIN_MS,
      ),
    ),
  );
}

function explained(error: unknown): unknown {
  if (error instanceof StackError || !(error instanceof Error)) return error;
  return new StackError(`The database refused: ${error.message}. Nothing was changed.`, 'run it again', error);
}

async function restored(
  from: Sql,
  to: TransactionSql,
  { part, names, overwrite, tokens }: RowsRun,
  isMeant: boolean,
): Promise<PartChange[]> {
  const now = new Date();
  const options: AccountOptions = { overwrite, tokens, now };
  if (part === 'accounts') {
    const known = await listAccounts(from);
    return restoreAccounts(
      { from, to },
      chosen(part, known, names, (each, name) => each.username_key === nameKey(name)),
      options,
    );
  }
  if (part === 'missions') {
    const known = await listMissions(from);
    const missions = chosen(part, known, names, (each, name) => each.name === name || each.guid === name);
    return restoreMissions({ from, to }, missions, { copyBytes: isMeant, now });
  }
  const known = await listFiles(from);
  const isFile = (each: (typeof known)[number], name: string): boolean =>
    each.name === name || (HASH_START.test(name) && each.hash.startsWith(name.toLowerCase()));
  return restoreFiles({ from, to }, chosen(part, known, names, isFile), isMeant);
}

/** Throws a StackError for a name that the archive doesn't have. */
function chosen<T>(
  part: RowPart,
  known: readonly T[],
  names: readonly string[],
  isNamed: (item: T, name: string) => boolean,
): readonly T[] {
  const missing = names.find((name) => !known.some((item) => isNamed(item, name)));
  if (missing !== undefined)
    throw new StackError(
      `The archive has no ${ITEM[part]} ${missing}, or it belongs to the stack itself. Nothing was changed.`,
      `list them with ./scripts/backup.sh show ARCHIVE ${part}`,
    );
  return names.length === 0 ? known : known.filter((item) => names.some((name) => isNamed(item, name)));
}
