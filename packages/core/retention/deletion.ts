// Runs one retention run: type by type, batch by batch, each batch a transaction that includes the
// progress. A failure of one type doesn't stop the others.

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
import { expiredMission, formatKept } from './limits.ts';
import { type Latencies, Pacer } from './pacer.ts';
import { isUnavailable, type Patience, retryForever } from './retry-forever.ts';

/** The run was told to stop. */
export class RunStopped extends Error {}
/** It would delete more than it may. */
export class TooManyRows extends Error {}

export interface DeletionOptions {
  /** In force now, which may be another than when the run began. */
  policy: () => RetentionPolicy;
  run: RunSql;
  runs: RetentionRunStore;
  missions: ExpiredMissions;
  exemptKeywords: readonly string[];
  maxRows: number | null;
  latencies: Latencies;
  patience: Patience;
  signal: AbortSignal;
  now: () => Date;
  steadyMs: () => number;
}

export interface ExpiredMissions {
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

const MAX_SHARE = 4;

/**
 * @example
 * const errors = await new Deletion(begun, parts).run();
 */
export class Deletion {
  readonly #begun: CoreRetentionRun;
  readonly #options: DeletionOptions;
  readonly #pacer: Pacer;
  #current: Retained | undefined;
  #withIndexes: IndexShares = { events: 1, chat: 1, files: 1 };

  constructor(begun: CoreRetentionRun, options: DeletionOptions) {
    this.#begun = begun;
    this.#options = options;
    this.#pacer = new Pacer(options.latencies);
  }

  /**
   * Resolves with what went wrong in single types. Rejects with RunStopped, TooManyRows, RunTaken,
   * or the database away.
   */
  async run(): Promise<string[]> {
    const errors: string[] = [];
    this.#withIndexes = await this.#retry(() => indexShares(this.#options.run));
    for (const type of DELETION_ORDER) {
      const limit = this.#begun.limits[type];
      if (limit === undefined) continue;
      this.#current = type;
      try {
        this.#mustStillGo();
        await this.#deleteType(type, limit);
      } catch (error) {
        if (isOfWholeRun(error)) throw error;
        errors.push(`${type}: ${messageOf(error)}`);
      }
    }
    return errors;
  }

  async #deleteType(type: Retained, limit: string): Promise<void> {
    switch (type) {
      case 'missions':
        return this.#deleteMissions(limit);
      case 'files':
      case 'missionpackages':
        return this.#deleteFiles(type, limit);
      case 'cot':
        return this.#drainPages(
          FROM_THE_FIRST,
          (tx, from) => oldEvents(tx, limit, from),
          deleteEvents,
          this.#counting('cot', 'events'),
        );
      case 'geochat':
        await this.#drainPages(
          FROM_THE_FIRST,
          (tx, from) => oldChat(tx, limit, from),
          deleteChat,
          this.#counting('geochat', 'chat'),
        );
        return this.#drainPages(
          FROM_THE_FIRST,
          (tx, from) => oldLegacyChat(tx, limit, from),
          deleteLegacyChat,
          this.#counting('geochat', 'events'),
        );
    }
  }

  #deleteFiles(type: 'files' | 'missionpackages', limit: string): Promise<void> {
    const wanted = { packages: type === 'missionpackages', exemptKeywords: this.#options.exemptKeywords };
    return this.#drain(
      FROM_THE_FIRST,
      (tx, from) => deleteFiles(tx, limit, from, FILES_AT_ONCE, wanted),
      this.#counting(type, 'files'),
    );
  }

  #counting(type: Retained, table: IndexedTable): Count {
    return (sofar, { deleted, bytes }) => plusRows(sofar, type, deleted, bytes * this.#withIndexes[table]);
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#options.signal }).catch(() => undefined);
    if (this.#options.signal.aborted) throw new RunStopped();
  }

  #record(tx: Tx, add: (sofar: RunProgress) => RunProgress): Promise<void> {
    return this.#options.runs.progress(tx, this.#begun.id, (sofar) => {
      const next = add(sofar);
      if (this.#options.maxRows !== null && allRows(next) > this.#options.maxRows)
        throw new TooManyRows(`it would delete more than ${this.#options.maxRows} rows, which is the most that it may`);
      return next;
    });
  }

  /** Another core may have closed the run while the database was away. */
  async #again(): Promise<void> {
    const row = await this.#options.runs.find(this.#begun.id);
    if (row?.state !== 'running') throw new RunTaken('another core has closed this run');
    this.#pacer.halve();
  }

  /** Whoever sees too much go and has it kept, keeps the rest of it. */
  #mustStillGo(): void {
    const limit = this.#current === undefined ? undefined : this.#begun.limits[this.#current];
    if (this.#current === undefined || limit === undefined) return;
    const kept = formatKept(this.#current, new Date(limit), this.#options.policy(), new Date(this.#begun.startedAt));
    if (kept !== undefined) throw new Error(`stopped, for since the run began ${kept}`);
  }

  async #inTransaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const done = await this.#options.run((sql) =>
      sql.begin(async (tx) => {
        await asBatch(tx);
        return work(tx);
      }),
    );
    return done as T;
  }

  async #batchOf(step: (tx: Tx) => Promise<Batch>, count: Count): Promise<Batch> {
    this.#mustStillGo();
    this.#pacer.begins();
    const begunMs = this.#options.steadyMs();
    let doneMs = begunMs;
    const batch = await this.#inTransaction(async (tx) => {
      const batch = await step(tx);
      if (batch.deleted > 0) await this.#record(tx, (sofar) => count(sofar, batch));
      doneMs = this.#options.steadyMs();
      return batch;
    });
    const endedMs = this.#options.steadyMs();
    this.#pacer.ended({ batchMs: endedMs - begunMs, rows: batch.scanned, commitMs: endedMs - doneMs });
    return batch;
  }

  async #drain(first: Position, step: (tx: Tx, from: Position) => Promise<Batch>, count: Count): Promise<void> {
    for (let from: Position | undefined = first; from !== undefined;) {
      const at: Position = from;
      const batch: Batch = await this.#retry(() => this.#batchOf((tx) => step(tx, at), count));
      from = batch.next;
      await this.#pause(batch.deleted === 0 ? 0 : this.#pacer.pace.pauseMs);
    }
  }

  /** Rows by their ids: a page is read, then deleted batch by batch. */
  async #drainPages(
    first: Position,
    read: (tx: Tx, from: Position) => Promise<Page>,
    step: (tx: Tx, ids: readonly string[]) => Promise<Batch>,
    count: Count,
  ): Promise<void> {
    for (let from: Position | undefined = first; from !== undefined;) {
      const at: Position = from;
      const { ids, next } = await this.#retry(() => this.#inTransaction((tx) => read(tx, at)));
      for (let done = 0; done < ids.length;) {
        const batch = await this.#retry(() =>
          this.#batchOf((tx) => step(tx, ids.slice(done, done + this.#pacer.pace.rows)), count),
        );
        done += batch.scanned;
        await this.#pause(batch.deleted === 0 ? 0 : this.#pacer.pace.pauseMs);
      }
      from = next;
    }
  }

  async #nextMission(limit: string, from: Position): Promise<(Position & { guid: string }) | undefined> {
    const [row] = await this.#options.run(
      (sql) => sql<(Position & { guid: string })[]>`
        SELECT id::text AS id, guid::text AS guid, create_time::text AS at FROM mission
        WHERE ${expiredMission(sql, limit)} AND (create_time, id) > (${from.at}::text::timestamptz, ${from.id}::bigint)
        ORDER BY mission.create_time, mission.id LIMIT 1`,
    );
    return row;
  }

  /** A run that is killed in between leaves the mission, so that the next one finds the rest. */
  async #deleteMission(id: number, guid: string): Promise<void> {
    const counting =
      (what: 'cot' | 'files'): Count =>
      (sofar, { deleted, bytes }) => ({
        ...sofar,
        included: { ...sofar.included, [what]: sofar.included[what] + deleted },
        bytes: sofar.bytes + bytes * this.#withIndexes[what === 'cot' ? 'events' : 'files'],
      });
    await this.#drainPages(
      FIRST_MISSION_EVENT,
      (tx, from) => eventsOfMission(tx, id, from),
      (tx, ids) => deleteMissionEvents(tx, id, ids),
      counting('cot'),
    );
    await this.#drain(FROM_THE_FIRST, (tx, from) => deleteMissionFiles(tx, id, from, FILES_AT_ONCE), counting('files'));
    await this.#retry(async () => {
      this.#mustStillGo();
      const mission = await this.#options.missions.reads.find({ guid }, 'all');
      if (mission === undefined || mission.id !== id || mission.inviteOnly) return;
      const isGone = await this.#options.missions.writes.remove(mission, '', this.#options.now(), (tx) =>
        this.#record(tx, (sofar) => plusRows(sofar, 'missions', 1)),
      );
      const places = mission.groups.map(({ place }) => place);
      if (isGone) this.#options.missions.announce.deleted(mission, places, '');
    });
  }

  async #deleteMissions(limit: string): Promise<void> {
    for (let from = FROM_THE_FIRST; ;) {
      const at = from;
      const found = await this.#retry(() => this.#nextMission(limit, at));
      if (found === undefined) return;
      await this.#deleteMission(Number(found.id), found.guid);
      await this.#pause(0);
      from = found;
    }
  }

  #retry<T>(work: () => Promise<T>): Promise<T> {
    return retryForever(
      work,
      () => this.#again(),
      (ms) => this.#pause(ms),
      this.#options.patience,
    );
  }
}

/**
 * How much larger each table is with its indexes: what a row frees. A table of a few pages tells
 * nothing of that.
 */
async function indexShares(run: RunSql): Promise<IndexShares> {
  const [row] = await run(
    (sql) => sql<[IndexShares]>`
      SELECT ${share(sql, 'cot_router')} AS events, ${share(sql, 'cot_router_chat')} AS chat, ${share(sql, 'resource')} AS files`,
  );
  return row;
}

function share(sql: postgres.Sql, table: string): postgres.Fragment {
  return sql`least(${MAX_SHARE}, pg_total_relation_size(${table}::text::regclass)::float8
    / greatest(pg_table_size(${table}::text::regclass), 1))`;
}

function isOfWholeRun(error: unknown): boolean {
  return (
    error instanceof RunStopped || error instanceof TooManyRows || error instanceof RunTaken || isUnavailable(error)
  );
}

function plusRows({ rows, included, bytes }: RunProgress, type: Retained, more: number, moreBytes = 0): RunProgress {
  return { rows: { ...rows, [type]: (rows[type] ?? 0) + more }, included, bytes: bytes + moreBytes };
}

function allRows({ rows, included }: RunProgress): number {
  return Object.values(rows).reduce((sum, each) => sum + each, included.cot + included.files);
}
