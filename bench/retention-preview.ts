// How long a preview of retention takes over ten million events of 90 days: what GET
// /api/retention/preview does, without HTTP. Beside it how long the job takes that counts the rows
// per day, and how far off the answer is when counting would take too long.

import postgres from 'postgres';
import { keptDatabase } from '@holdfast/kit/kept-database';
import type { RetentionPolicy } from '@holdfast/kit/retention';
import { Secret } from '@holdfast/kit/secret';
import { countRetentionDays } from '../shared/retention/count-days.ts';
import { retentionFacts } from '../shared/retention/facts.ts';
import { retentionHistoryTable } from '../shared/retention/history-table.ts';
import { previewRetention, type RetentionPreview } from '../shared/retention/preview.ts';
import { FIGURES, STATE } from '../shared/runtime/both-hosts.ts';
import { report, reportAim, sampleOf, show } from './measure.ts';
import { type BenchStack, benchStack } from './stack.ts';

const EVENTS = Number(process.env['HOLDFAST_BENCH_PREVIEW_ROWS'] ?? 10_000_000);
const TIMES = 20;
/** As the API asks. */
const WITHIN_MS = 800;
const AIM_MS = 1000;
const POLICY: RetentionPolicy = { cot: 30, geochat: 30, files: 30, missionpackages: 30, missions: 60 };
const ALL: RetentionPolicy = { cot: 1, geochat: 1, files: 1, missionpackages: 1, missions: 1 };

export async function run(): Promise<void> {
  const stack = await benchStack();
  try {
    const filled = await timed(() => fill(stack));
    report(`${EVENTS} events, 200,000 of chat, 2,000 files`, `filled in ${(filled.ms / 1000).toFixed(0)} s`);
    await restartDatabase(stack);
    const preview = previewOf(stack);
    const cold = await timed(() => preview(POLICY, WITHIN_MS));
    reportAim(`first preview, database just started${exactness(cold.answer)}`, cold.ms, AIM_MS, ' ms', { digits: 0 });
    await measure('keep 30 days', () => preview(POLICY, WITHIN_MS));
    await measure('keep one day', () => preview(ALL, WITHIN_MS));
    await compareEstimates(stack, preview);
  } finally {
    stack.stop();
  }
}

async function measure(what: string, ask: () => Promise<RetentionPreview>): Promise<void> {
  const times: number[] = [];
  let rows = '';
  for (let time = 0; time < TIMES; time++) {
    const { ms, answer } = await timed(ask);
    times.push(ms);
    rows = `${answer.rows} rows${exactness(answer)}`;
  }
  const sample = sampleOf(times);
  report(`${what}: ${rows}`, show(sample, 'ms'));
  reportAim('  the slowest', sample.most, AIM_MS, ' ms', { digits: 0 });
}

/**
 * With so little time that nothing large is counted: first by the size of the table, then by the
 * rows per day.
 */
async function compareEstimates(
  stack: BenchStack,
  preview: (policy: RetentionPolicy, withinMs: number) => Promise<RetentionPreview>,
): Promise<void> {
  const exact = (await preview(POLICY, 20_000)).types.cot?.rows ?? 0;
  const off = async (): Promise<string> => {
    const { ms, answer } = await timed(() => preview(POLICY, 20));
    const rows = answer.types.cot?.rows ?? 0;
    return `${((rows / exact - 1) * 100).toFixed(2)} % off${exactness(answer)}, ${ms.toFixed(0)} ms`;
  };
  report('cot, at most all rows of the table', await off());
  const deps = depsOf(stack);
  const counted = await timed(() => countRetentionDays(deps, new AbortController().signal));
  report(`rows per day, ${counted.answer.statements} statements`, `${(counted.ms / 1000).toFixed(1)} s`);
  report('cot, estimated by the rows per day', await off());
}

function exactness({ exact }: RetentionPreview): string {
  return exact ? ', exact' : ', estimated';
}

function depsOf(stack: BenchStack) {
  return {
    retentionFacts: retentionFacts(keptDatabase(new Secret(stack.readerDatabase), FIGURES)),
    retentionHistory: retentionHistoryTable(keptDatabase(new Secret(stack.stateDatabase), STATE)),
    schedules: { fault: () => undefined, next: () => [] },
    timeZone: 'UTC',
  };
}

function previewOf(stack: BenchStack) {
  const read = async () => ({ policy: POLICY, exemptKeywords: ['keep'], schedule: '-' });
  const deps = { ...depsOf(stack), retentionFiles: { read } };
  return (policy: RetentionPolicy, withinMs: number) => previewRetention(deps, { policy, unit: 'days', withinMs });
}

async function timed<T>(work: () => Promise<T>): Promise<{ answer: T; ms: number }> {
  const began = performance.now();
  const answer = await work();
  return { answer, ms: performance.now() - began };
}

/**
 * 90 days until now of 5,000 devices, a hundred of them in missions; every 50th event is chat as
 * older releases kept it.
 */
async function fill({ database }: BenchStack): Promise<void> {
  const sql = postgres(database, { max: 1, fetch_types: false, onnotice: () => undefined });
  try {
    await sql`SET maintenance_work_mem = '512MB'`;
    const indexes = await sql<{ name: string; definition: string }[]>`
      SELECT indexname AS name, indexdef AS definition FROM pg_indexes
      WHERE tablename = 'cot_router' AND indexname <> 'cot_router_pkey'`;
    for (const { name } of indexes) await sql.unsafe(`DROP INDEX ${name}`);
    await sql`
      INSERT INTO cot_router (uid, cot_type, how, start, "time", stale, point_hae, point_ce, point_le, detail, servertime)
      SELECT 'ANDROID-' || lpad((n % 5000)::text, 16, '0'), CASE WHEN n % 50 = 0 THEN 'b-t-f' ELSE 'a-f-G-U-C' END, 'm-g',
        at, at, at + interval '5 min', 412.5, 9.9, 9999999,
        '<detail><contact callsign="EAGLE ' || n % 5000 || '" endpoint="*:-1:stcp"/><track course="12.3" speed="1.2"/>'
          || '<__group name="Cyan" role="Team Member"/><status battery="87"/><takv os="34" version="5.2.0"/></detail>', at
      FROM (
        SELECT n, now() - interval '90 days' + n * (interval '90 days' / ${EVENTS}::float8) AS at
        FROM generate_series(1, ${EVENTS}::int) n) event`;
    for (const { definition } of indexes) await sql.unsafe(definition);
    await sql`
      INSERT INTO cot_router_chat (uid, cot_type, servertime)
      SELECT 'GeoChat.' || n, 'b-t-f', now() - interval '90 days' + n * interval '38.88 s' FROM generate_series(1, 200000) n`;
    await sql`
      INSERT INTO resource (data, name, keywords, submissiontime, hash)
      SELECT decode(repeat(md5(n::text), 500), 'hex'), 'file ' || n, '{photo}', now() - n * interval '1 hour', md5(n::text)
      FROM generate_series(1, 2000) n`;
    await sql`
      INSERT INTO mission (name, create_time) SELECT 'mission ' || n, now() - n * interval '4 days' FROM generate_series(1, 20) n`;
    await sql`
      INSERT INTO mission_uid (mission_id, uid)
      SELECT m.id, 'ANDROID-' || lpad((m.id * 5 + n)::text, 16, '0') FROM mission m, generate_series(0, 4) n`;
    for (const table of ['cot_router', 'cot_router_chat', 'resource', 'mission', 'mission_uid'])
      await sql.unsafe(`VACUUM ANALYZE ${table}`);
  } finally {
    await sql.end({ timeout: 2 });
  }
}

/** What PostgreSQL itself holds in memory is gone then; what the system does is not. */
async function restartDatabase(stack: BenchStack): Promise<void> {
  const before = stack.pid('database');
  process.kill(before, 'SIGINT');
  for (;;) {
    await new Promise((tick) => setTimeout(tick, 100));
    const sql = postgres(stack.database, { max: 1, fetch_types: false });
    const answers = await sql`SELECT 1`.then(
      () => true,
      () => false,
    );
    await sql.end({ timeout: 1 });
    if (answers && ![0, before].includes(stack.pid('database'))) return;
  }
}
