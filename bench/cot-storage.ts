// The real stack with its database: events sent over the stream until they are in the table,
// against a bare loop of inserts of 100 rows into the same table, in alternating rounds; and
// fan-out with storage on.

import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { appPassword } from './app-password.ts';
import { preparedEvent, writeNumber } from './cot-order.ts';
import { type CotServer, load } from './cot-servers.ts';
import { report, reportAim, sampleOf, show } from './measure.ts';
import type { BenchStack } from './stack.ts';

const ROUNDS = Number(process.env['HOLDFAST_BENCH_COT_ROUNDS'] ?? 5);
const EVENTS = 50_000;
const ROWS = 100;
const WINDOW = 1_000;
const LOOK_EVERY_MS = 10;
/** A core that stores no more for so long has stored what it will. */
const QUIET_MS = 5_000;
const USER = 'bench-cot';

/** The stream of the stack, for a device that was enrolled by an app password. */
export async function streamOf(stack: BenchStack, directory: string, user = USER): Promise<CotServer> {
  const [key, requestFile, certificate] = ['key', 'csr', 'pem'].map((end) => join(directory, `enrolled.${end}`)) as [
    string,
    string,
    string,
  ];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384', '-nodes', '-keyout', key];
  const subject = `/O=Holdfast/OU=CoT/CN=${user}`;
  await promisify(execFile)('openssl', ['req', '-new', ...curve, '-out', requestFile, '-subj', subject]);
  const ca = join(stack.coreDirectory, 'certs/files/ca.pem');
  const body = await enrolled(stack, user, readFileSync(ca), readFileSync(requestFile));
  const { signedCert } = JSON.parse(body) as { signedCert: string };
  writeFileSync(certificate, `-----BEGIN CERTIFICATE-----\n${signedCert.trim()}\n-----END CERTIFICATE-----\n`);
  return { pid: stack.pid('core'), port: stack.streamPort, files: { ca, certificate, key } };
}

async function enrolled(stack: BenchStack, user: string, ca: Buffer, signingRequest: Buffer): Promise<string> {
  const authorization = `Basic ${Buffer.from(`${user}:${await appPassword(stack, user)}`).toString('base64')}`;
  const url = `https://127.0.0.1:${stack.enrollmentPort}/Marti/api/tls/signClient/v2?clientUid=${user}&version=3`;
  return new Promise((done, reject) => {
    const sent = request(url, { ca, method: 'POST', headers: { authorization } }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString()));
      response.once('end', () => {
        if (response.statusCode === 200) done(body);
        else reject(new Error(`enrollment: ${response.statusCode} ${body}`));
      });
    });
    sent.once('error', reject).end(signingRequest);
  });
}

/** Resolves when the core has stored nothing for a moment. */
export async function archiveIdle({ database }: BenchStack): Promise<void> {
  const sql = postgres(database, { max: 1, fetch_types: false });
  for (let last = -1, now = await lastId(sql); last !== now; now = await lastId(sql)) {
    last = now;
    await pause(500);
  }
  await sql.end();
}

export async function storage(stack: BenchStack, core: CotServer): Promise<void> {
  const sql = postgres(stack.database, { max: 1, fetch_types: false, onnotice: () => undefined });
  const watch = postgres(stack.database, { max: 1, fetch_types: false, onnotice: () => undefined });
  const figures = { bare: [] as number[], core: [] as number[] };
  let missing = 0;
  try {
    await storedByCore(watch, core);
    const places = await placesOfCore(watch);
    for (let round = 0; round < ROUNDS; round++) {
      await emptied(sql);
      figures.bare.push(await storedByLoop(sql, places));
      await emptied(sql);
      const stored = await storedByCore(watch, core);
      figures.core.push(stored.perSecond);
      missing += stored.missing;
    }
  } finally {
    await sql.end();
    await watch.end();
  }
  report(`cot: ${EVENTS} events stored, real stack`, show(sampleOf(figures.core), 'rows a second'));
  report(`cot: bare loop of inserts of ${ROWS} rows`, show(sampleOf(figures.bare), 'rows a second'));
  reportAim('cot: events sent and not stored, in all rounds', missing, 0, '', { digits: 0 });
  const ratio = sampleOf(figures.core).median / sampleOf(figures.bare).median;
  reportAim('cot: rows a second, ratio to the bare loop', ratio, 0.7, '', { least: true });
}

async function emptied(sql: postgres.Sql): Promise<void> {
  await sql`TRUNCATE cot_router CASCADE`;
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

async function lastId(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ last: string }[]>`SELECT last_value::text AS last FROM cot_router_seq`;
  return Number(row?.last ?? 0);
}

async function countOf(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ events: string }[]>`
    SELECT count(DISTINCT (uid, substring(detail FROM '~([0-9]{16})')))::text AS events FROM cot_router`;
  return Number(row?.events ?? 0);
}

/**
 * From the first event that is sent until the last one is in the table; the table holds nothing
 * else.
 */
async function storedByCore(sql: postgres.Sql, core: CotServer): Promise<{ perSecond: number; missing: number }> {
  await emptied(sql);
  const work = { kind: 'flood', window: WINDOW, events: EVENTS } as const;
  const sending = load(core, { connections: 2, publishing: 1, work });
  const seen = await watched(sql);
  const { begunAtMs, delivered, expected } = await sending;
  if (delivered < expected) throw new Error(`the stream delivered ${delivered} of ${expected} events`);
  return { perSecond: (EVENTS * 1000) / (seen - begunAtMs), missing: EVENTS - (await countOf(sql)) };
}

/**
 * When all events were in the table, or when nothing was added any more. The core takes its ids
 * from the sequence in blocks, so only the rows themselves tell how far it is; they are counted
 * once their ids span enough.
 */
async function watched(sql: postgres.Sql): Promise<number> {
  let [span, changedAt] = [-1, Date.now()];
  while (Date.now() - changedAt < QUIET_MS) {
    const now = await idSpan(sql);
    if (now !== span) [span, changedAt] = [now, Date.now()];
    if (now >= EVENTS && (await rowCount(sql)) >= EVENTS) return Date.now();
    await pause(LOOK_EVERY_MS);
  }
  return changedAt;
}

async function idSpan(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ span: string }[]>`
    SELECT coalesce(max(id) - min(id) + 1, 0)::text AS span FROM cot_router`;
  return Number(row?.span ?? 0);
}

async function rowCount(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ rows: string }[]>`SELECT count(*)::text AS rows FROM cot_router`;
  return Number(row?.rows ?? 0);
}

/** The set of groups that the core has written with its rows. */
async function placesOfCore(sql: postgres.Sql): Promise<string> {
  const [row] = await sql<{ places: string }[]>`
    SELECT places FROM group_vector WHERE vector = (SELECT groups FROM cot_router LIMIT 1)`;
  if (row === undefined) throw new Error('the core has stored nothing, or a vector of groups that stands in no table');
  return row.places;
}

/**
 * One connection, one statement after the other, each with the columns that the core writes; rows a
 * second.
 */
async function storedByLoop(sql: postgres.Sql, places: string): Promise<number> {
  const { event, numberAt } = preparedEvent(0);
  const vector = sql`(SELECT vector FROM group_vector WHERE places = ${places})`;
  const begun = performance.now();
  for (let n = 0; n < EVENTS; n += ROWS) {
    const rows = Array.from({ length: ROWS }, (_, k) => {
      writeNumber(event, numberAt, n + k);
      return rowOf(event, new Date().toISOString());
    });
    await sql`
      INSERT INTO cot_router (uid, cot_type, access, qos, opex, start, "time", stale, how, point_hae, point_ce, point_le, detail,
        servertime, servertime_hour, event_pt, groups, caveat, releaseableto)
      SELECT uid, type, NULL, NULL, NULL, start::timestamptz, "time"::timestamptz, stale::timestamptz, how, hae::numeric,
        ce::numeric, le::numeric, detail, servertime::timestamptz, hour::timestamptz, pt::point, g.vector, NULL, NULL
      FROM (VALUES ${sql(rows)}) AS v (uid, type, start, "time", stale, how, hae, ce, le, detail, servertime, hour, pt),
        ${vector} AS g`;
  }
  return (EVENTS * 1000) / (performance.now() - begun);
}

function rowOf(event: Buffer, now: string): string[] {
  const text = event.toString('latin1');
  const detail = text.slice(text.indexOf('<detail>'), text.indexOf('</event>'));
  const hour = `${now.slice(0, 13)}:00:00Z`;
  const [uid, type, how, point] = ['BENCH-0000', 'a-f-G-U-C', 'm-g', '(13.3777,52.5163)'];
  const [hae, ce, le] = ['34.5', '4.8', '9999999'];
  return [uid, type, now, now, now, how, hae, ce, le, detail, now, hour, point];
}
