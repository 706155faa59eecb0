// Backup and restore of the embedded stack against pg_dump, zstd and pg_restore on the same rows.
// They must be of version 16 or later; HOLDFAST_BENCH_PG is the directory that holds them.

import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { withDatabase } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { InsertLatencies } from '../packages/core/retention/pacer.ts';
import { cotWriter } from '../packages/core/store/cot-events.ts';
import { GroupVectors } from '../packages/core/store/groups.ts';
import { report, reportAim, sampleOf, show } from './measure.ts';
import { inserting, p99 } from './retention.ts';
import { benchStack, OFFSET, script } from './stack.ts';

const ROWS = Number(process.env['HOLDFAST_BENCH_BACKUP_ROWS'] ?? 2_000_000);
const ROUNDS = Number(process.env['HOLDFAST_BENCH_BACKUP_ROUNDS'] ?? 3);
const CLIENT = process.env['HOLDFAST_BENCH_PG'];
const HOME = resolve(import.meta.dirname, '..');
const FILL_WITHIN_MS = 3_600_000;
const QUIET_MS = 15_000;
const PEOPLE = 2_000;
const PLACES = [2, 5];

interface Taken {
  seconds: number;
  bytes: number;
}

export async function run(): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'holdfast-bench-backups-'));
  const key = join(work, 'key');
  writeFileSync(key, randomBytes(24).toString('hex'));
  const stack = await benchStack();
  try {
    await fill(stack.database);
    const data = dirname(stack.coreDirectory);
    const [bare, ours] = [[] as Taken[], [] as (Taken & { peakMb: number })[]];
    for (let round = 0; round < ROUNDS; round++) {
      bare.push(await dumped(stack.database, join(work, `bare-${round}.zst`)));
      ours.push(await backedUp(data, join(work, `ours-${round}.age`), key));
    }
    resultOfTaking(bare, ours);
    await latencies(stack.database, async () => void (await backedUp(data, join(work, 'busy.age'), key)));
    await proof(data, join(work, 'proven.age'), key);
    await restores(stack.database, work, key);
  } finally {
    stack.stop();
    rmSync(work, { recursive: true, force: true });
  }
}

function resultOfTaking(bare: readonly Taken[], ours: readonly (Taken & { peakMb: number })[]): void {
  const seconds = (of: readonly Taken[]) => sampleOf(of.map((each) => each.seconds));
  const bytes = (of: readonly Taken[]) => sampleOf(of.map((each) => each.bytes)).median;
  report(`backup: ${ROWS} events, pg_dump and zstd`, show(seconds(bare), 's', 1));
  report(`backup: ${ROWS} events, scripts/backup.sh`, show(seconds(ours), 's', 1));
  report('backup: size, pg_dump and zstd; ours', `${megabytes(bytes(bare))}; ${megabytes(bytes(ours))} MB`);
  reportAim('backup: time, ratio to pg_dump and zstd', seconds(ours).median / seconds(bare).median, 1.2, '');
  reportAim('backup: size, ratio to pg_dump and zstd', bytes(ours) / bytes(bare), 1.1, '');
  reportAim('backup: memory beside PostgreSQL', Math.max(...ours.map(({ peakMb }) => peakMb)), 200, 'MB', {
    digits: 0,
  });
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

/** Rows as devices send them: positions and tracks that vary, one group of readers each. */
async function fill(database: string): Promise<void> {
  await withDatabase(new Secret(database), 'bench', FILL_WITHIN_MS, async (sql) => {
    await new GroupVectors((use) => use(sql)).ensure([PLACES]);
    await sql`
      INSERT INTO cot_router (uid, cot_type, start, "time", stale, how, point_hae, point_ce, point_le, detail, servertime,
        servertime_hour, event_pt, groups)
      SELECT 'BENCH-' || n::bigint * 7919 % ${PEOPLE}::int, 'a-f-G-U-C', at, at, at + interval '75 s', 'm-g',
        round((random() * 900)::numeric, 1), 4.8, 9999999,
        format('<detail><contact callsign="B-%s" endpoint="*:-1:stcp"/><__group name="Cyan" role="Team Member"/><status battery="%s"/><takv device="BENCH" platform="BENCH" os="1" version="1"/><track speed="%s" course="%s"/><remarks>%s</remarks></detail>',
          n % ${PEOPLE}::int, n % 100, random() * 9, random() * 360, md5(n::text)),
        at, date_trunc('hour', at), point(random() * 360 - 180, random() * 180 - 90), v.vector
      FROM (SELECT n, now() - (90 * (1 - n::float8 / ${ROWS}::int)) * interval '1 day' AS at
        FROM generate_series(1, ${ROWS}::int) n) AS each, group_vector v
      WHERE v.places = ${PLACES.join()}`;
    await sql`VACUUM ANALYZE cot_router`;
  });
}

/** A program of PostgreSQL's own, of the directory that was named or of PATH. */
function client(name: string): string {
  return CLIENT === undefined ? name : join(CLIENT, name);
}

async function dumped(database: string, file: string): Promise<Taken> {
  const begunMs = performance.now();
  await shell(`"$PG_DUMP" --dbname="$URL" | zstd -q -T1 -o "$FILE"`, {
    PG_DUMP: client('pg_dump'),
    URL: database,
    FILE: file,
  });
  return { seconds: (performance.now() - begunMs) / 1000, bytes: statSync(file).size };
}

async function shell(line: string, env: Record<string, string>): Promise<void> {
  const child = spawn('bash', ['-euo', 'pipefail', '-c', line], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`${line} ended with ${String(code)}`);
}

async function backedUp(
  data: string,
  file: string,
  key: string,
  options = ['--no-proof'],
): Promise<Taken & { peakMb: number }> {
  const begunMs = performance.now();
  const args = ['--data', data, '--output', file, '--passphrase-file', key, ...options];
  const child = spawn(join(HOME, 'scripts/backup.sh'), args, { stdio: 'ignore' });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  let peakMb = 0;
  const timer = setInterval(() => (peakMb = Math.max(peakMb, peakMbOf(child.pid ?? 0))), 100);
  const [code] = await ended;
  clearInterval(timer);
  if (code !== 0) throw new Error(`backup.sh ended with ${String(code)}`);
  return { seconds: (performance.now() - begunMs) / 1000, bytes: statSync(file).size, peakMb };
}

/** What the proof takes is what a backup with one takes longer than one without. */
async function proof(data: string, file: string, key: string): Promise<void> {
  const without = await backedUp(data, file, key);
  const proven = await backedUp(data, `${file}.proven`, key, []);
  const { level } = (JSON.parse(readFileSync(`${file}.proven.json`, 'utf8')) as { proof: { level: string } }).proof;
  if (level !== 'serves') throw new Error(`the proof reached ${level}`);
  reportAim(`backup: proof of ${ROWS} events`, proven.seconds - without.seconds, 180, 's', { digits: 0 });
}

function peakMbOf(pid: number): number {
  try {
    return (Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024) / 1e6;
  } catch {
    return 0;
  }
}

async function latencies(database: string, work: () => Promise<void>): Promise<void> {
  const sql = keptDatabase(new Secret(database), {
    name: 'core-archive',
    called: 'the database',
    variable: 'its URL',
    withinMs: 60_000,
  });
  const stopping = new AbortController();
  const writer = new InsertLatencies(() => performance.now()).timed(cotWriter(sql, new GroupVectors(sql)));
  const inserts = inserting(writer, stopping.signal);
  await delay(QUIET_MS / 3);
  inserts.taken();
  await delay(QUIET_MS);
  const quietMs = p99(inserts.taken());
  await work();
  const busyMs = p99(inserts.taken());
  stopping.abort();
  await inserts.ended;
  report('backup: insert p99 without, during a backup', `${quietMs.toFixed(1)}; ${busyMs.toFixed(1)} ms`);
  reportAim('backup: insert p99, ratio to none', busyMs / quietMs, 2, '');
}

/** From the file to a stack that answers, against pg_restore into a database of another stack. */
async function restores(database: string, work: string, key: string): Promise<void> {
  const archive = join(work, readdirSync(work).find((name) => name.endsWith('.age')) ?? '');
  const dump = join(work, 'bare.dump');
  execFileSync(client('pg_dump'), ['--format=custom', `--file=${dump}`, `--dbname=${database}`]);
  const [bare, ours] = [[] as number[], [] as number[]];
  for (let round = 0; round < ROUNDS; round++) {
    bare.push(await bareRestore(dump, join(work, `bare-${round}`)));
    const data = join(work, `restored-${round}`);
    const begunMs = performance.now();
    script('start.sh', [...startArguments(data), '--restore', archive, '--passphrase-file', key]);
    ours.push((performance.now() - begunMs) / 1000);
    removed(data);
  }
  report('restore: pg_restore into an empty database', show(sampleOf(bare), 's', 1));
  report('restore: start.sh --restore, until the stack answers', show(sampleOf(ours), 's', 1));
  reportAim('restore: time, ratio to pg_restore', sampleOf(ours).median / sampleOf(bare).median, 1.3, '');
}

async function bareRestore(dump: string, data: string): Promise<number> {
  script('start.sh', startArguments(data));
  const { database } = JSON.parse(readFileSync(join(data, 'stack.json'), 'utf8')) as { database: string };
  await withDatabase(new Secret(database), 'bench', FILL_WITHIN_MS, async (sql) => {
    await sql`DROP SCHEMA public CASCADE`;
    await sql`CREATE SCHEMA public`;
  });
  const begunMs = performance.now();
  await shell('"$PG_RESTORE" --no-owner --no-privileges --dbname="$URL" "$FILE" 2>/dev/null || true', {
    PG_RESTORE: client('pg_restore'),
    URL: database,
    FILE: dump,
  });
  const seconds = (performance.now() - begunMs) / 1000;
  const [{ rows } = { rows: 0 }] = await withDatabase(
    new Secret(database),
    'bench',
    FILL_WITHIN_MS,
    async (sql) => sql<{ rows: number }[]>`SELECT count(*)::int AS rows FROM cot_router`,
  );
  if (rows < ROWS) throw new Error(`pg_restore brought ${rows} rows of ${ROWS}`);
  removed(data);
  return seconds;
}

function startArguments(data: string): string[] {
  return ['--embedded', '--detach', '--data', data, '--offset', String(OFFSET + 300), '--env', '/dev/null'];
}

function removed(data: string): void {
  script('stop.sh', ['--data', data, '--remove', '--yes-delete-everything', data]);
}
