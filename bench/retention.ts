// Retention of the embedded core while inserts go on: its batches against one single DELETE, as a
// TAK Server release does it, on fresh copies of the same data directory, in alternating rounds.

import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type postgres from 'postgres';
import { keptDatabase } from '@holdfast/kit/kept-database';
import type { Fields } from '@holdfast/kit/log';
import { withDatabase } from '@holdfast/kit/postgres';
import { KEEP_ALL, limitsAt } from '@holdfast/kit/retention';
import { Secret } from '@holdfast/kit/secret';
import { InsertLatencies } from '../packages/core/retention/pacer.ts';
import { retentionLog } from '../packages/core/retention/retention-log.ts';
import { RetentionService } from '../packages/core/retention/retention-service.ts';
import type { RunSql } from '../packages/core/store/certificates.ts';
import { type CotRow, type CotWriter, cotWriter } from '../packages/core/store/cot-events.ts';
import { GroupVectors } from '../packages/core/store/groups.ts';
import { report, reportAim, sampleOf, show } from './measure.ts';
import { type BenchStack, benchStack, OFFSET, script } from './stack.ts';

const ROWS = Number(process.env['HOLDFAST_BENCH_RETENTION_ROWS'] ?? 2_000_000);
const ROUNDS = Number(process.env['HOLDFAST_BENCH_RETENTION_ROUNDS'] ?? 3);
const DAYS = 90;
const KEPT_DAYS = 30;
const PEOPLE = 2_000;
const PER_SECOND = 500;
/** As the archive collects them. */
const TICK_MS = 25;
const QUIET_MS = 15_000;
const FILL_WITHIN_MS = 3_600_000;
const POLICY = { ...KEEP_ALL, cot: KEPT_DAYS };
const PLACES = [2, 5];
const DETAIL = `<detail><contact callsign="BENCH" endpoint="*:-1:stcp"/><__group name="Cyan" role="Team Member"/><status battery="80"/><takv device="BENCH" platform="BENCH" os="1" version="1"/><track speed="1.2" course="77.1"/>${'<remarks>x</remarks>'.repeat(6)}</detail>`;

interface Round {
  /** p99 of an insert before, and while rows were deleted. */
  quietMs: number;
  busyMs: number;
  seconds: number;
  maxMs: number;
  deleted: number;
}

export async function run(): Promise<void> {
  const stack = await benchStack();
  try {
    const { data, template } = await filledTemplate(stack, ROWS);
    const rounds = { single: [] as Round[], batches: [] as Round[] };
    for (let round = 0; round < ROUNDS; round++) {
      await freshCopy(data, template);
      rounds.single.push(shown('one DELETE', await measured(stack, oneDelete)));
      await freshCopy(data, template);
      rounds.batches.push(shown('batches', await measured(stack, inBatches)));
    }
    result(rounds.single, rounds.batches);
  } finally {
    stack.stop();
  }
}

/**
 * The data directory of the stack, which stands still then, and a copy of its filled cluster to
 * begin each round with.
 */
export async function filledTemplate(stack: BenchStack, rows: number): Promise<{ data: string; template: string }> {
  const data = dirname(stack.coreDirectory);
  const template = join(dirname(data), 'template');
  await filled(stack, rows);
  script('stop.sh', ['--data', data]);
  execFileSync('cp', ['-a', join(data, 'pgdata'), template]);
  return { data, template };
}

function result(single: readonly Round[], batches: readonly Round[]): void {
  const median = (of: readonly Round[], figure: (round: Round) => number): number =>
    sampleOf(of.map((each) => figure(each))).median;
  const figures = (of: readonly Round[], figure: (round: Round) => number, unit: string): string =>
    show(sampleOf(of.map((each) => figure(each))), unit, 1);
  report('retention: rows deleted', `${batches[0]?.deleted ?? 0} of ${ROWS}`);
  report(
    'retention: one DELETE',
    figures(single, ({ seconds }) => seconds, 's'),
  );
  report(
    'retention: batches',
    figures(batches, ({ seconds }) => seconds, 's'),
  );
  report(
    'retention: insert p99 without deletion',
    figures([...single, ...batches], ({ quietMs }) => quietMs, 'ms'),
  );
  report(
    'retention: insert p99 during one DELETE',
    figures(single, ({ busyMs }) => busyMs, 'ms'),
  );
  report(
    'retention: insert p99 during batches',
    figures(batches, ({ busyMs }) => busyMs, 'ms'),
  );
  report(
    'retention: longest transaction',
    figures(batches, ({ maxMs }) => maxMs, 'ms'),
  );
  const singleSeconds = median(single, ({ seconds }) => seconds);
  reportAim(
    'retention: insert p99, ratio to none',
    median(batches, ({ busyMs, quietMs }) => busyMs / quietMs),
    2,
    '',
  );
  const share = median(batches, ({ maxMs }) => maxMs) / 1000 / singleSeconds;
  reportAim('retention: longest transaction, share of one DELETE', share, 0.02, '', { digits: 4 });
  reportAim('retention: time, ratio to one DELETE', median(batches, ({ seconds }) => seconds) / singleSeconds, 1.6, '');
}

function shown(what: string, round: Round): Round {
  const { seconds, quietMs, busyMs, maxMs, deleted } = round;
  const texts = [`${seconds.toFixed(1)} s`, `p99 ${busyMs.toFixed(1)} ms (before ${quietMs.toFixed(1)})`];
  report(`  ${what}`, `${texts.join(', ')}, longest ${maxMs.toFixed(0)} ms, ${deleted} rows`);
  return round;
}

/** The rows first, their indexes afterwards. */
async function filled({ database }: BenchStack, rows: number): Promise<void> {
  const url = new Secret(database);
  await withDatabase(url, 'bench', FILL_WITHIN_MS, async (sql) => {
    await new GroupVectors((use) => use(sql)).ensure([PLACES]);
    const indexes = await sql<{ name: string; definition: string }[]>`
      SELECT indexname AS name, indexdef AS definition FROM pg_indexes
      WHERE tablename = 'cot_router' AND indexname <> 'cot_router_pkey'`;
    for (const { name } of indexes) await sql`DROP INDEX ${sql(name)}`;
    await sql`
      INSERT INTO cot_router (uid, cot_type, start, "time", stale, how, point_hae, point_ce, point_le, detail, servertime,
        servertime_hour, event_pt, groups)
      SELECT 'BENCH-' || n::bigint * 7919 % ${PEOPLE}::int, 'a-f-G-U-C', at, at, at + interval '75 s', 'm-g', 34.5, 4.8, 9999999, ${DETAIL},
        at, date_trunc('hour', at), point(n % 360 - 180, n % 180 - 90), v.vector
      FROM (SELECT n, now() - (${DAYS}::float8 * (1 - n::float8 / ${rows}::int)) * interval '1 day' AS at
        FROM generate_series(1, ${rows}::int) n) AS each, group_vector v
      WHERE v.places = ${PLACES.join()}`;
    await sql`INSERT INTO mission (name, creatoruid) VALUES ('bench', 'bench')`;
    await sql`INSERT INTO mission_uid SELECT id, 'BENCH-' || n FROM mission, generate_series(1, 5) n WHERE name = 'bench'`;
    for (const { definition } of indexes) await sql.unsafe(definition);
    await sql`VACUUM ANALYZE`;
  });
}

/** The stack starts on it with these settings. */
export async function freshCopy(data: string, template: string, settings: Record<string, string> = {}): Promise<void> {
  script('stop.sh', ['--data', data]);
  execFileSync('rm', ['-rf', join(data, 'pgdata')]);
  execFileSync('cp', ['-a', template, join(data, 'pgdata')]);
  execFileSync('sync');
  script(
    'start.sh',
    ['--embedded', '--detach', '--data', data, '--offset', String(OFFSET), '--env', '/dev/null'],
    settings,
  );
}

type Deletion = (stack: BenchStack, latencies: InsertLatencies) => Promise<Deleted>;
type Deleted = Pick<Round, 'seconds' | 'maxMs' | 'deleted'>;

async function measured(stack: BenchStack, deletion: Deletion): Promise<Round> {
  const run = keptDatabase(new Secret(stack.database), {
    name: 'core-archive',
    called: 'the database',
    variable: 'its URL',
    withinMs: 60_000,
  });
  const latencies = new InsertLatencies(() => performance.now());
  const stopping = new AbortController();
  const inserts = inserting(latencies.timed(cotWriter(run, new GroupVectors(run))), stopping.signal);
  await delay(QUIET_MS / 3);
  inserts.taken();
  await delay(QUIET_MS);
  const quietMs = p99(inserts.taken());
  const deleted = await deletion(stack, latencies);
  const busyMs = p99(inserts.taken());
  stopping.abort();
  await inserts.ended;
  return { quietMs, busyMs, ...deleted };
}

export function p99(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? 0;
}

/**
 * 500 events a second, collected as the archive does; a batch that comes late counts from when it
 * was due.
 */
export function inserting(writer: CotWriter, signal: AbortSignal) {
  let took: number[] = [];
  async function loop(): Promise<void> {
    const perTick = (PER_SECOND * TICK_MS) / 1000;
    let sent = 0;
    for (let tick = 1, begunMs = performance.now(); !signal.aborted; tick++) {
      const dueMs = begunMs + tick * TICK_MS;
      await delay(Math.max(0, dueMs - performance.now()));
      const count = Math.round(tick * perTick) - sent;
      sent += count;
      const ids = await writer.ids(count);
      await writer.write(rowsOf(ids), false);
      took.push(performance.now() - dueMs);
    }
  }
  const ended = loop();
  return {
    ended,
    taken() {
      const taken = took;
      took = [];
      return taken;
    },
  };
}

function rowsOf(ids: readonly string[]): CotRow[] {
  const timeMs = Date.now();
  return ids.map((id, n) => ({
    ids: [id],
    timeMs,
    startMs: timeMs,
    staleMs: timeMs + 75_000,
    event: {
      sender: 'bench',
      uid: `BENCH-${(Number(id) + n) % PEOPLE}`,
      type: 'a-f-G-U-C',
      how: 'm-g',
      access: undefined,
      qos: undefined,
      opex: undefined,
      caveat: undefined,
      releaseableTo: undefined,
      time: '',
      start: undefined,
      stale: undefined,
      point: { lat: 47, lon: 8, hae: 34.5, ce: 4.8, le: 9_999_999 },
      detail: DETAIL,
      receivedAtMs: timeMs,
      places: PLACES,
    },
  }));
}

/** As a release: one statement, its own transaction. */
async function oneDelete({ database }: BenchStack): Promise<Deleted> {
  return withDatabase(new Secret(database), 'bench-delete', FILL_WITHIN_MS, async (sql) => {
    const begunMs = performance.now();
    const { count } = await sql`
      DELETE FROM cot_router WHERE servertime < now() - ${KEPT_DAYS}::int * interval '1 day' AND cot_type <> 'b-t-f'
        AND uid NOT IN (SELECT uid FROM mission_uid)`;
    const tookMs = performance.now() - begunMs;
    return { seconds: tookMs / 1000, maxMs: tookMs, deleted: count };
  });
}

async function inBatches({ database }: BenchStack, latencies: InsertLatencies): Promise<Deleted> {
  const kept = keptDatabase(new Secret(database), {
    name: 'core-retention',
    called: 'it',
    variable: 'its URL',
    withinMs: 30_000,
  });
  const longest = { ms: 0 };
  const ended = Promise.withResolvers<Fields>();
  const done = (event: string, fields: Fields = {}): void => {
    if (event === 'retention.run') ended.resolve(fields);
  };
  const service = new RetentionService({
    retention: {
      policy: () => POLICY,
      exemptKeywords: () => [],
      schedule: () => '-',
      edited: () => undefined,
      onChange: () => undefined,
    },
    run: timedTransactions(kept, longest),
    missions: notRequested,
    latencies,
    schedules: { next: () => [] },
    timeZone: 'UTC',
    log: { info: done, warn: done, error: done },
    file: retentionLog(mkdtempSync(join(tmpdir(), 'holdfast-bench-')), () => new Date()),
    now: () => new Date(),
    steadyMs: () => performance.now(),
  });
  const begunMs = performance.now();
  await service.begin({ id: randomUUID(), limits: limitsAt(POLICY, new Date()), maxRows: null });
  const { state, error, rows } = await ended.promise;
  if (state !== 'done') throw new Error(`the run ended ${String(state)}: ${String(error)}`);
  const { cot = 0 } = rows as { cot?: number };
  return { seconds: (performance.now() - begunMs) / 1000, maxMs: longest.ms, deleted: cot };
}

const notRequested = {
  reads: { find: () => Promise.reject(new Error('not asked for here')) },
  writes: { remove: () => Promise.reject(new Error('not asked for here')) },
  announce: { deleted: () => undefined },
};

/** From the first statement to the commit, as this side sees it. */
function timedTransactions(run: RunSql, longest: { ms: number }): RunSql {
  const timed = (sql: postgres.Sql): postgres.Sql =>
    new Proxy(sql, {
      get: (target, name) =>
        name === 'begin'
          ? async (work: (tx: postgres.TransactionSql) => Promise<unknown>) => {
              const begunMs = performance.now();
              const result = await target.begin((tx) => work(tx));
              longest.ms = Math.max(longest.ms, performance.now() - begunMs);
              return result;
            }
          : (Reflect.get(target, name) as unknown),
    });
  return (use) => run((sql) => use(timed(sql)));
}
