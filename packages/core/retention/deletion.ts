// One run: type after type, batch after batch, each a transaction with the progress of the run in it. What goes wrong in one
// type keeps no other from being done.

import { setTimeout as delay } from 'node:timers/promises';
import type postgres from 'postgres';
import { messageOf } from '@holdfast/kit/app-error';
import type { CoreRetentionRun } from '@holdfast/kit/core-wire';
import type { Retained, RetentionPolicy } from '@holdfast/kit/retention';
import type { Announce } from '../missions/announce.ts';
import type { RunSql } from '../store/certificates.ts';
import type { MissionWrites } from '../store/mission-writes.ts';
import type { MissionReads } from '../store/missions.ts';
import { type RetentionRunStore, type RunProgress, RunTaken } from '../store/retention-runs.ts';
import {
  asBatch,
  type Batch,
  deleteChat,
  deleteEvents,
  deleteFiles,
  deleteLegacyChat,
  deleteMissionEvents,
  deleteMissionFiles,
  eventsOfMission,
  FILES_AT_ONCE,
  FIRST_MISSION_EVENT,
  FROM_THE_FIRST,
  oldChat,
  oldEvents,
  oldLegacyChat,
  type Page,
  type Position,
} from './deletion-batches.ts';
import { doomedMission, keptInWords } from './limits.ts';
import { type Latencies, Pacer } from './pacer.ts';
import { isAway, type Patience, persistently } from './persistence.ts';

/** The run was told to stop. */
export class RunStopped extends Error {}
/** It would delete more than it may. */
export class TooManyRows extends Error {}

export interface DeletionOptions {
  /** In force now, which may be another than when the run began. */
  policy: () => RetentionPolicy;
  run: RunSql;
  runs: RetentionRunStore;
  missions: DoomedMissions;
  exemptKeywords: readonly string[];
  mostRows: number | null;
  latencies: Latencies;
  patience: Patience;
  signal: AbortSignal;
  now: () => Date;
  steadyMs: () => number;
}

export interface DoomedMissions {
  reads: Pick<MissionReads, 'find'>;
  writes: Pick<MissionWrites, 'remove'>;
  announce: Pick<Announce, 'deleted'>;
}

type Tx = postgres.TransactionSql;
/** The tables whose rows go. */
type IndexedTable = 'events' | 'chat' | 'files';
type IndexShares = Record<IndexedTable, number>;
type Count = (progress: RunProgress, batch: Batch) => RunProgress;

export const DELETION_ORDER: readonly Retained[] = ['missions', 'files', 'missionpackages', 'cot', 'geochat'];

const MOST_SHARE = 4;

/** Resolves with what went wrong in single types. Rejects with RunStopped, TooManyRows, RunTaken, or the database away. */
export async function deleteDoomed(begun: CoreRetentionRun, options: DeletionOptions): Promise<string[]> {
  const { policy, run, runs, missions, exemptKeywords, mostRows, latencies, patience, signal, now, steadyMs } = options;
  let current: Retained | undefined;
  const pacer = new Pacer(latencies);
  let withIndexes: IndexShares = { events: 1, chat: 1, files: 1 };

  async function pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) throw new RunStopped();
  }

  function record(tx: Tx, add: (sofar: RunProgress) => RunProgress): Promise<void> {
    return runs.progress(tx, begun.id, (sofar) => {
      const next = add(sofar);
      if (mostRows !== null && allRows(next) > mostRows)
        throw new TooManyRows(`it would delete more than ${mostRows} rows, which is the most that it may`);
      return next;
    });
  }

  /** Another core may have closed the run while the database was away. */
  async function again(): Promise<void> {
    const row = await runs.find(begun.id);
    if (row?.state !== 'running') throw new RunTaken('another core has closed this run');
    pacer.halve();
  }

  const patiently = <T>(work: () => Promise<T>): Promise<T> => persistently(work, again, pause, patience);

  /** Whoever sees too much go and has it kept, keeps the rest of it. */
  function mustStillGo(): void {
    const limit = current === undefined ? undefined : begun.limits[current];
    if (current === undefined || limit === undefined) return;
    const kept = keptInWords(current, new Date(limit), policy(), new Date(begun.startedAt));
    if (kept !== undefined) throw new Error(`stopped, for since the run began ${kept}`);
  }

  async function inTransaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const done = await run((sql) =>
      sql.begin(async (tx) => {
        await asBatch(tx);
        return work(tx);
      }),
    );
    return done as T;
  }

  async function batchOf(step: (tx: Tx) => Promise<Batch>, count: Count): Promise<Batch> {
    mustStillGo();
    pacer.begins();
    const begunMs = steadyMs();
    let doneMs = begunMs;
    const batch = await inTransaction(async (tx) => {
      const batch = await step(tx);
      if (batch.deleted > 0) await record(tx, (sofar) => count(sofar, batch));
      doneMs = steadyMs();
      return batch;
    });
    const endedMs = steadyMs();
    pacer.ended({ batchMs: endedMs - begunMs, rows: batch.scanned, commitMs: endedMs - doneMs });
    return batch;
  }

  async function drain(first: Position, step: (tx: Tx, from: Position) => Promise<Batch>, count: Count): Promise<void> {
    for (let from: Position | undefined = first; from !== undefined;) {
      const at: Position = from;
      const batch: Batch = await patiently(() => batchOf((tx) => step(tx, at), count));
      from = batch.next;
      await pause(batch.deleted === 0 ? 0 : pacer.pace.pauseMs);
    }
  }

  /** Rows by their ids: a page is read, then deleted batch by batch. */
  async function drainPages(
    first: Position,
    read: (tx: Tx, from: Position) => Promise<Page>,
    step: (tx: Tx, ids: readonly string[]) => Promise<Batch>,
    count: Count,
  ): Promise<void> {
    for (let from: Position | undefined = first; from !== undefined;) {
      const at: Position = from;
      const { ids, next } = await patiently(() => inTransaction((tx) => read(tx, at)));
      for (let done = 0; done < ids.length;) {
        const batch = await patiently(() => batchOf((tx) => step(tx, ids.slice(done, done + pacer.pace.rows)), count));
        done += batch.scanned;
        await pause(batch.deleted === 0 ? 0 : pacer.pace.pauseMs);
      }
      from = next;
    }
  }

  async function nextMission(limit: string, from: Position): Promise<(Position & { guid: string }) | undefined> {
    const [row] = await run(
      (sql) => sql<(Position & { guid: string })[]>`
        SELECT id::text AS id, guid::text AS guid, create_time::text AS at FROM mission
        WHERE ${doomedMission(sql, limit)} AND (create_time, id) > (${from.at}::text::timestamptz, ${from.id}::bigint)
        ORDER BY mission.create_time, mission.id LIMIT 1`,
    );
    return row;
  }

  /** A run that is killed in between leaves the mission, so that the next one finds the rest. */
  async function deleteMission(id: number, guid: string): Promise<void> {
    const counting =
      (what: 'cot' | 'files'): Count =>
      (sofar, { deleted, bytes }) => ({
        ...sofar,
        included: { ...sofar.included, [what]: sofar.included[what] + deleted },
        bytes: sofar.bytes + bytes * withIndexes[what === 'cot' ? 'events' : 'files'],
      });
    await drainPages(
      FIRST_MISSION_EVENT,
      (tx, from) => eventsOfMission(tx, id, from),
      (tx, ids) => deleteMissionEvents(tx, id, ids),
      counting('cot'),
    );
    await drain(FROM_THE_FIRST, (tx, from) => deleteMissionFiles(tx, id, from, FILES_AT_ONCE), counting('files'));
    await patiently(async () => {
      mustStillGo();
      const mission = await missions.reads.find({ guid }, 'all');
      if (mission === undefined || mission.id !== id || mission.inviteOnly) return;
      const isGone = await missions.writes.remove(mission, '', now(), (tx) =>
        record(tx, (sofar) => plusRows(sofar, 'missions', 1)),
      );
      const places = mission.groups.map(({ place }) => place);
      if (isGone) missions.announce.deleted(mission, places, '');
    });
  }

  async function deleteMissions(limit: string): Promise<void> {
    for (let from = FROM_THE_FIRST; ;) {
      const at = from;
      const found = await patiently(() => nextMission(limit, at));
      if (found === undefined) return;
      await deleteMission(Number(found.id), found.guid);
      await pause(0);
      from = found;
    }
  }

  const counting =
    (type: Retained, table: IndexedTable): Count =>
    (sofar, { deleted, bytes }) =>
      plusRows(sofar, type, deleted, bytes * withIndexes[table]);
  const deleteFilesOf = (type: 'files' | 'missionpackages', limit: string): Promise<void> => {
    const wanted = { packages: type === 'missionpackages', exemptKeywords };
    return drain(
      FROM_THE_FIRST,
      (tx, from) => deleteFiles(tx, limit, from, FILES_AT_ONCE, wanted),
      counting(type, 'files'),
    );
  };

  const STEPS: Record<Retained, (limit: string) => Promise<void>> = {
    missions: deleteMissions,
    files: (limit) => deleteFilesOf('files', limit),
    missionpackages: (limit) => deleteFilesOf('missionpackages', limit),
    cot: (limit) =>
      drainPages(FROM_THE_FIRST, (tx, from) => oldEvents(tx, limit, from), deleteEvents, counting('cot', 'events')),
    async geochat(limit) {
      await drainPages(FROM_THE_FIRST, (tx, from) => oldChat(tx, limit, from), deleteChat, counting('geochat', 'chat'));
      await drainPages(
        FROM_THE_FIRST,
        (tx, from) => oldLegacyChat(tx, limit, from),
        deleteLegacyChat,
        counting('geochat', 'events'),
      );
    },
  };

  const errors: string[] = [];
  withIndexes = await patiently(() => indexShares(run));
  for (const type of DELETION_ORDER) {
    const limit = begun.limits[type];
    if (limit === undefined) continue;
    current = type;
    try {
      mustStillGo();
      await STEPS[type](limit);
    } catch (error) {
      if (isOfWholeRun(error)) throw error;
      errors.push(`${type}: ${messageOf(error)}`);
    }
  }
  return errors;
}

/** How much larger each table is with its indexes: what a row frees. A table of a few pages tells nothing of that. */
async function indexShares(run: RunSql): Promise<IndexShares> {
  const [row] = await run(
    (sql) => sql<[IndexShares]>`
      SELECT ${share(sql, 'cot_router')} AS events, ${share(sql, 'cot_router_chat')} AS chat, ${share(sql, 'resource')} AS files`,
  );
  return row;
}

function share(sql: postgres.Sql, table: string): postgres.Fragment {
  return sql`least(${MOST_SHARE}, pg_total_relation_size(${table}::text::regclass)::float8
    / greatest(pg_table_size(${table}::text::regclass), 1))`;
}

function isOfWholeRun(error: unknown): boolean {
  return error instanceof RunStopped || error instanceof TooManyRows || error instanceof RunTaken || isAway(error);
}

function plusRows({ rows, included, bytes }: RunProgress, type: Retained, more: number, moreBytes = 0): RunProgress {
  return { rows: { ...rows, [type]: (rows[type] ?? 0) + more }, included, bytes: bytes + moreBytes };
}

function allRows({ rows, included }: RunProgress): number {
  return Object.values(rows).reduce((sum, each) => sum + each, included.cot + included.files);
}
