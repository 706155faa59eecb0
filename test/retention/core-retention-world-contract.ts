// The retention service over a real database, with rows of every kind that it may find.

import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type postgres from 'postgres';
import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import { KEEP_ALL, type RetentionLimits, type RetentionPolicy } from '@holdfast/kit/retention';
import { createMissions } from '../../packages/core/missions/create-missions.ts';
import type { Latencies } from '../../packages/core/retention/pacer.ts';
import { retentionLog } from '../../packages/core/retention/retention-log.ts';
import { RetentionService, type RetentionServiceOptions } from '../../packages/core/retention/retention-service.ts';
import type { RunSql } from '../../packages/core/store/certificates.ts';
import { eventually } from '../e2e/embedded/embedded.ts';
import { memoryLog } from '../http/fake-deps.ts';

export const LIMIT = '2026-03-01T00:00:00.000Z';
const BEFORE = '2026-02-28T23:59:59.999Z';

export interface RetentionWorld {
  service: RetentionService;
  policy: RetentionPolicy;
  exempt: string[];
  /** The file that was changed by hand. */
  edited: { file: string | undefined };
  log: ReturnType<typeof memoryLog>;
  notices: { type: string; subject: readonly unknown[]; detail: string }[];
  /** What the retention log says. */
  messagesOf(): string;
  /** Ordered with all limits at LIMIT, of those types; resolves when it has ended. */
  whole(types: readonly (keyof RetentionPolicy)[], maxRows?: number): Promise<CoreRetentionRun>;
  begun(types: readonly (keyof RetentionPolicy)[], maxRows?: number): Promise<CoreRetentionRun>;
  ended(id: string): Promise<CoreRetentionRun>;
}

const QUIET: Latencies = { slowest: () => undefined, usual: () => undefined };

export function retentionWorld(
  sql: postgres.Sql,
  data: string,
  given: Partial<RetentionServiceOptions> = {},
): RetentionWorld {
  const run: RunSql = (use) => use(sql);
  const reports: RetentionWorld['notices'] = [];
  const log = memoryLog();
  const now = (): Date => new Date();
  const { parts } = createMissions({
    run,
    tokenKey: Buffer.alloc(32, 1),
    hostname: 'cot.example.org',
    notices: () => ({
      toDevices: () => undefined,
      toPlaces: (subject, { type, detail }) => void reports.push({ type, subject, detail }),
    }),
    connected: { list: () => [] },
    log,
    now,
  });
  const policy: RetentionPolicy = { ...KEEP_ALL, cot: 1, geochat: 1, files: 1, missionpackages: 1, missions: 1 };
  const exempt: string[] = [];
  const edited: RetentionWorld['edited'] = { file: undefined };
  const directory = mkdtempSync(join(data, 'retention-'));
  const service = new RetentionService({
    retention: {
      policy: () => ({ ...policy }),
      exemptKeywords: () => exempt,
      schedule: () => '-',
      edited: () => edited.file,
      onChange: () => undefined,
    },
    run,
    missions: parts,
    latencies: QUIET,
    schedules: { next: () => [] },
    timeZone: 'UTC',
    log,
    file: retentionLog(directory, now),
    now,
    steadyMs: () => performance.now(),
    patience: { firstPauseMs: 20, maxPauseMs: 100, forMs: 10_000, lockedForMs: 60_000 },
    ...given,
  });
  const begun: RetentionWorld['begun'] = (types, maxRows) => {
    const limits: RetentionLimits = Object.fromEntries(types.map((type) => [type, LIMIT]));
    return service.begin({ id: randomUUID(), limits, maxRows: maxRows ?? null });
  };
  const find = async (id: string) => (await service.runs()).find((each) => each.id === id);
  const ended: RetentionWorld['ended'] = async (id) => {
    await eventually('the run has ended', async () => (await find(id))?.state !== 'running', 60_000);
    return (await find(id)) as CoreRetentionRun;
  };
  return {
    service,
    policy,
    exempt,
    edited,
    log,
    notices: reports,
    messagesOf: () => readFileSync(join(directory, 'logs/takserver-retention.log'), 'utf8'),
    begun,
    whole: async (types, maxRows) => ended((await begun(types, maxRows)).id),
    ended,
  };
}

type Transaction = (tx: postgres.TransactionSql) => Promise<unknown>;

/** The database, with this in the place of its transactions. */
export function insteadOfBegin(sql: postgres.Sql, begin: (work: Transaction) => Promise<unknown>): RunSql {
  return (use) => use(new Proxy(sql, { get: (sql, name) => (name === 'begin' ? begin : Reflect.get(sql, name)) }));
}

/** The same, but a transaction that says so stays open, with what it has done, until `end`. */
export function heldTransaction(sql: postgres.Sql, isHeld: (done: unknown) => boolean) {
  const end = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  const run = insteadOfBegin(sql, (work) =>
    sql.begin(async (tx) => {
      const done = await work(tx);
      if (isHeld(done)) {
        reached.resolve();
        await end.promise;
      }
      return done;
    }),
  );
  return { run, reached: reached.promise, end: () => end.resolve() };
}

/** What a transaction that has deleted rows gives back. */
export const isDeletion = (done: unknown): boolean =>
  typeof done === 'object' && done !== null && /"deleted":[1-9]/.test(JSON.stringify(done));

/** Rows of every kind; those that are doomed lie a millisecond before LIMIT. */
export function retentionRows(sql: () => postgres.Sql) {
  const idOf = async (rows: Promise<readonly postgres.Row[]>): Promise<number> => Number((await rows)[0]?.['id']);
  return {
    event: (uid: string, at: string | null = BEFORE, type: string | null = 'a-f-G') =>
      idOf(sql()`INSERT INTO cot_router (uid, cot_type, servertime) VALUES (${uid}, ${type}, ${at}) RETURNING id`),
    chat: (uid: string, at: string | null = BEFORE) =>
      idOf(sql()`INSERT INTO cot_router_chat (uid, cot_type, servertime) VALUES (${uid}, 'b-t-f', ${at}) RETURNING id`),
    file: (name: string, keywords: string[] | null = null, at: string | null = BEFORE, bytes = 10) =>
      idOf(sql()`
        INSERT INTO resource (name, hash, keywords, submissiontime, data)
        VALUES (${name}, ${name}, ${keywords === null ? null : `{${keywords.map((word) => JSON.stringify(word)).join()}}`}::text::varchar[],
          ${at}, convert_to(repeat('x', ${bytes}), 'UTF8')) RETURNING id`),
    mission: (name: string, at = BEFORE, inviteOnly = false) =>
      idOf(sql()`
        INSERT INTO mission (name, create_time, invite_only, tool) VALUES (${name}, ${at}, ${inviteOnly}, 'public') RETURNING id`),
    holds: async (mission: number, what: { uid?: string; file?: number }): Promise<void> => {
      if (what.uid !== undefined)
        await sql()`INSERT INTO mission_uid (mission_id, uid) VALUES (${mission}, ${what.uid})`;
      if (what.file !== undefined)
        await sql()`INSERT INTO mission_resource (mission_id, resource_id, resource_hash) VALUES (${mission}, ${what.file}, 'h')`;
    },
    many: (count: number, from = '2026-01-01') => sql()`
      INSERT INTO cot_router (uid, cot_type, servertime)
      SELECT 'many-' || n % 50, 'a-f-G', ${from}::text::timestamptz + n * interval '1 ms' FROM generate_series(1, ${count}::int) n`,
    uids: async (): Promise<string[]> =>
      (await sql()<{ uid: string }[]>`SELECT uid FROM cot_router ORDER BY uid`).map(({ uid }) => uid),
    chats: async (): Promise<string[]> =>
      (await sql()<{ uid: string }[]>`SELECT uid FROM cot_router_chat ORDER BY uid`).map(({ uid }) => uid),
    files: async (): Promise<string[]> =>
      (await sql()<{ name: string }[]>`SELECT name FROM resource ORDER BY name`).map(({ name }) => name),
    missions: async (): Promise<string[]> =>
      (await sql()<{ name: string }[]>`SELECT name FROM mission ORDER BY name`).map(({ name }) => name),
    emptied: async (): Promise<void> => {
      await sql()`TRUNCATE cot_router, cot_router_chat, cot_image, cot_thumbnail, cot_link, resource, retention_run,
        mission, mission_uid, mission_resource, mission_subscription, mission_keyword, mission_change CASCADE`;
    },
  };
}
