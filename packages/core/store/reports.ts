// Reads and writes the table `ci_trap`: reports of devices with their packages, a bounded number.

import type postgres from 'postgres';
import type { RunSql } from './certificates.ts';
import { vectorText } from './groups.ts';
import type { Places } from './missions.ts';
import { visible } from './tables.ts';

/** The attributes that lists show; null: the report does not say. */
export interface ReportFacts {
  id: string;
  type: string | null;
  title: string | null;
  userCallsign: string | null;
  userDescription: string | null;
  /** ISO 8601. */
  dateTime: string | null;
  dateTimeDescription: string | null;
  /** WKT, in degrees. */
  location: string | null;
  locationDescription: string | null;
  eventScale: string | null;
  importance: string | null;
  status: string | null;
}

export interface Report {
  facts: ReportFacts;
  submitter: string;
}

export interface ReportContent {
  xml: string;
  /** The package, a zip. */
  data: Uint8Array<ArrayBuffer>;
}

export const REPORT_LIMITS = { all: 2_000, ofOne: 500, bytes: 512 * 1024 * 1024 } as const;

/** Rejects with an AppError `unavailable` when the database is away. */
export interface ReportStore {
  /** The latest first. */
  list(sees: Places): Promise<Report[]>;
  find(uid: string, sees: Places): Promise<Report | undefined>;
  content(uid: string): Promise<ReportContent | undefined>;
  /** `taken`: there is one of that id. `full`: there are too many. */
  add(report: Report & ReportContent, places: readonly number[], now: Date): Promise<'added' | 'taken' | 'full'>;
  /** Its groups and its submitter stay. `gone`: there is none. */
  replace(facts: ReportFacts, content: ReportContent, now: Date): Promise<'replaced' | 'gone' | 'full'>;
  /** False when there is none. */
  remove(uid: string): Promise<boolean>;
}

export function reportStore(run: RunSql): ReportStore {
  return {
    list: (sees) =>
      run(async (sql) => {
        const rows = await sql<Row[]>`
          SELECT submitter, body FROM ci_trap t WHERE ${visible(sql, sees, sql`t.groups`)} ORDER BY updated DESC, uid`;
        return rows.map(parsed);
      }),

    find: (uid, sees) =>
      run(async (sql) => {
        const [row] = await sql<Row[]>`
          SELECT submitter, body FROM ci_trap t WHERE t.uid = ${uid} AND ${visible(sql, sees, sql`t.groups`)}`;
        return row === undefined ? undefined : parsed(row);
      }),

    content: (uid) =>
      run(async (sql) => {
        const [row] = await sql<ReportContent[]>`SELECT xml, data FROM ci_trap WHERE uid = ${uid}`;
        return row;
      }),

    add: ({ facts, submitter, xml, data }, places, now) =>
      locked(run, async (tx) => {
        const { all, own, bytes, known } = await counted(tx, facts.id, submitter);
        if (known) return 'taken';
        const { all: mostOfAll, ofOne, bytes: mostBytes } = REPORT_LIMITS;
        if (all >= mostOfAll || own >= ofOne || bytes + data.length > mostBytes) return 'full';
        await tx`
          INSERT INTO ci_trap (uid, submitter, body, xml, data, groups, updated)
          VALUES (${facts.id}, ${submitter}, ${JSON.stringify(facts)}, ${xml}, ${Buffer.from(data)},
            ${vectorText(places)}::text::bit varying(32768), ${now})`;
        return 'added';
      }),

    replace: (facts, { xml, data }, now) =>
      locked(run, async (tx) => {
        const { bytes } = await counted(tx, facts.id, '');
        if (bytes + data.length > REPORT_LIMITS.bytes) return 'full';
        const { count } = await tx`
          UPDATE ci_trap SET body = ${JSON.stringify(facts)}, xml = ${xml}, data = ${Buffer.from(data)}, updated = ${now}
          WHERE uid = ${facts.id}`;
        return count === 1 ? 'replaced' : 'gone';
      }),

    remove: (uid) => run(async (sql) => (await sql`DELETE FROM ci_trap WHERE uid = ${uid}`).count === 1),
  };
}

interface Row {
  submitter: string;
  body: string;
}

function parsed({ submitter, body }: Row): Report {
  return { submitter, facts: JSON.parse(body) as ReportFacts };
}

function locked<T>(run: RunSql, work: (tx: postgres.ISql) => Promise<T>): Promise<T> {
  return run(async (sql) => {
    const outcome = await sql.begin(async (tx) => {
      await tx`LOCK TABLE ci_trap IN SHARE ROW EXCLUSIVE MODE`;
      return { is: await work(tx) };
    });
    return outcome.is;
  });
}

/** `bytes` are those of all others. */
async function counted(tx: postgres.ISql, uid: string, submitter: string) {
  const [row] = await tx<[{ all: number; own: number; bytes: number; known: boolean }]>`
    SELECT count(*)::int AS all, count(*) FILTER (WHERE submitter = ${submitter})::int AS own,
      coalesce(sum(octet_length(data)) FILTER (WHERE uid <> ${uid}), 0)::float8 AS bytes,
      coalesce(bool_or(uid = ${uid}), false) AS known FROM ci_trap`;
  return row;
}
