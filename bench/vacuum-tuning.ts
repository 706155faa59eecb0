// Dead rows over time while 64 % of the events are deleted at an even pace and inserts go on:
// PostgreSQL's stock settings of autovacuum against the tuned ones, on fresh copies of the same
// data directory, in alternating rounds. Both have the naptime of the embedded stack.

import { setTimeout as delay } from 'node:timers/promises';
import type postgres from 'postgres';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { withDatabase } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { cotWriter } from '../packages/core/store/cot-events.ts';
import { GroupVectors } from '../packages/core/store/groups.ts';
import { report, reportAim, sampleOf, show } from './measure.ts';
import { filledTemplate, freshCopy, inserting } from './retention.ts';
import { type BenchStack, benchStack } from './stack.ts';

const ROWS = Number(process.env['HOLDFAST_BENCH_VACUUM_ROWS'] ?? 2_000_000);
const ROUNDS = Number(process.env['HOLDFAST_BENCH_VACUUM_ROUNDS'] ?? 3);
/** The deletion takes so long; afterwards it is watched for a quarter of that. */
const SECONDS = Number(process.env['HOLDFAST_BENCH_VACUUM_SECONDS'] ?? 300);
const SHARE = 0.64;
/** Batches a second. */
const PACE = 4;
const WITHIN_MS = 3_600_000;
const STOCK = {
  DB_AUTOVACUUM_SCALE_FACTOR: '0.2',
  DB_AUTOVACUUM_COST_LIMIT: '200',
  DB_MAINTENANCE_WORK_MEM: '64MB',
};
const TUNED = {
  DB_AUTOVACUUM_SCALE_FACTOR: '0.05',
  DB_AUTOVACUUM_COST_LIMIT: '1000',
  DB_MAINTENANCE_WORK_MEM: '256MB',
};

interface Round {
  peak: number;
  /** Rows times seconds. */
  area: number;
  vacuums: number;
  seconds: number;
  deleted: number;
}

interface Sampled {
  dead: number;
  vacuums: number;
}

export async function run(): Promise<void> {
  const stack = await benchStack();
  try {
    const { data, template } = await filledTemplate(stack, ROWS);
    const [stock, tuned]: [Round[], Round[]] = [[], []];
    for (let round = 0; round < ROUNDS; round++) {
      await freshCopy(data, template, STOCK);
      stock.push(shown('stock', await measured(stack)));
      await freshCopy(data, template, TUNED);
      tuned.push(shown('tuned', await measured(stack)));
    }
    result(stock, tuned);
  } finally {
    stack.stop();
  }
}

function result(stock: readonly Round[], tuned: readonly Round[]): void {
  const ratios = (figure: (round: Round) => number) =>
    sampleOf(stock.map((each, index) => figure(tuned[index] ?? each) / figure(each)));
  const area = ratios((round) => round.area);
  report('vacuum-tuning: rows deleted', `${stock[0]?.deleted ?? 0} of ${ROWS} within ${SECONDS} s`);
  report('vacuum-tuning: dead rows times seconds, tuned to stock', show(area, '', 2));
  const peak = ratios((round) => round.peak);
  report('vacuum-tuning: most dead rows, tuned to stock', show(peak, '', 2));
  reportAim('vacuum-tuning: most dead rows, ratio tuned to stock', peak.median, 0.5, '');
}

function shown(what: string, round: Round): Round {
  const { peak, area, vacuums, seconds, deleted } = round;
  const most = `at most ${peak} dead rows, ${Math.round(area / seconds)} on average, ${vacuums} autovacuums`;
  report(`  ${what}`, `${most}, ${deleted} rows deleted in ${seconds.toFixed(0)} s`);
  return round;
}

async function measured({ database }: BenchStack): Promise<Round> {
  const url = new Secret(database);
  const run = keptDatabase(url, {
    name: 'core-archive',
    called: 'the database',
    variable: 'its URL',
    withinMs: 60_000,
  });
  const stopping = new AbortController();
  const inserts = inserting(cotWriter(run, new GroupVectors(run)), stopping.signal);
  const samples: Sampled[] = [];
  const watching = withDatabase(url, 'bench-watch', WITHIN_MS, (sql) => watch(sql, samples, stopping.signal));
  const deletion = await withDatabase(url, 'bench-delete', WITHIN_MS, deletePaced);
  await delay((SECONDS / 4) * 1000);
  stopping.abort();
  await Promise.all([inserts.ended, watching]);
  return {
    peak: Math.max(...samples.map(({ dead }) => dead)),
    area: samples.reduce((sum, { dead }) => sum + dead, 0),
    vacuums: samples.at(-1)?.vacuums ?? 0,
    ...deletion,
  };
}

/** Each second, as PostgreSQL's statistics have it. */
async function watch(sql: postgres.Sql, samples: Sampled[], signal: AbortSignal): Promise<void> {
  for (const begunMs = performance.now(); !signal.aborted;) {
    const [row] = await sql<[Sampled]>`
      SELECT n_dead_tup::float8 AS dead, autovacuum_count::float8 AS vacuums
      FROM pg_stat_user_tables WHERE relname = 'cot_router'`;
    samples.push(row);
    await delay(Math.max(0, begunMs + samples.length * 1000 - performance.now()));
  }
}

/**
 * The oldest rows, in batches of the same size; one that comes late is followed by the next at
 * once.
 */
async function deletePaced(sql: postgres.Sql): Promise<Pick<Round, 'seconds' | 'deleted'>> {
  const [{ first }] = await sql<[{ first: number }]>`SELECT min(id)::float8 AS first FROM cot_router`;
  const batches = SECONDS * PACE;
  const begunMs = performance.now();
  let deleted = 0;
  for (let batch = 1; batch <= batches; batch++) {
    const from = first + Math.floor((ROWS * SHARE * (batch - 1)) / batches);
    const before = first + Math.floor((ROWS * SHARE * batch) / batches);
    const { count } = await sql`DELETE FROM cot_router WHERE id >= ${from}::bigint AND id < ${before}::bigint`;
    deleted += count;
    await delay(Math.max(0, begunMs + (batch * 1000) / PACE - performance.now()));
  }
  return { seconds: (performance.now() - begunMs) / 1000, deleted };
}
