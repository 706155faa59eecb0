// Stored history: the events of one device by the core's API, and the first minutes of a replay by ours.

import { withDatabase } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import { GroupVectors } from '../packages/core/store/groups.ts';
import { coreApi } from './core-api.ts';
import { p95, report, reportAim, sampleOf, show } from './measure.ts';
import { benchStack } from './stack.ts';

const ROWS = Number(process.env['HOLDFAST_BENCH_HISTORY_ROWS'] ?? 10_000_000);
const DAYS = 90;
const ROUNDS = 60;
const DEVICES = 100;
const EVERY_S = 5;
const FILL_WITHIN_MS = 3_600_000;
const PLACES = [2, 5];
/** A device reports every five seconds while it is on: 500 events are its last 40 minutes. */
const PER_DEVICE = 500;
const MINUTE_MS = 60_000;

export async function run(): Promise<void> {
  const stack = await benchStack({ UPDATES_URL: 'off' });
  const core = coreApi(stack);
  try {
    await fill(stack.database);
    const people = ROWS / PER_DEVICE;
    const all = await timed(async (round) => {
      const text = await core.ask('GET', `/Marti/api/cot/xml/BENCH-${(round * 7919) % people}/all`);
      if (text.split('<event ').length - 1 !== PER_DEVICE) throw new Error(`not all events: ${text.slice(0, 200)}`);
    });
    report(`history: ${PER_DEVICE} events of one device of ${ROWS}`, show(sampleOf(all), 'ms', 1));
    reportAim('  p95', p95(all), 50, 'ms', { digits: 1 });
    const since = Date.now() - 60 * MINUTE_MS;
    const until = since + 5 * MINUTE_MS;
    const query = `since=${new Date(since).toISOString()}&until=${new Date(until).toISOString()}`;
    const replay = await timed(async () => {
      const answer = await fetch(`${stack.api}/api/tracks?${query}`, {
        headers: { authorization: stack.authorization },
      });
      const { tracks } = (await answer.json()) as { tracks: { uid: string }[] };
      const found = tracks.filter(({ uid }) => uid.startsWith('REPLAY-')).length;
      if (found !== DEVICES) throw new Error(`${found} devices`);
    });
    report(`replay: first 5 minutes of an hour of ${DEVICES} devices`, show(sampleOf(replay), 'ms', 0));
    reportAim('  p95', p95(replay), 1000, 'ms', { digits: 0 });
  } finally {
    core.close();
    stack.stop();
  }
}

/** Three rounds before the first are not counted: they fill the caches. */
async function timed(work: (round: number) => Promise<void>): Promise<number[]> {
  const times: number[] = [];
  for (let round = -3; round < ROUNDS; round++) {
    const began = performance.now();
    await work(round + 3);
    if (round >= 0) times.push(performance.now() - began);
  }
  return times;
}

/** Events over 90 days, and the last hour of the devices that are replayed. */
async function fill(database: string): Promise<void> {
  await withDatabase(new Secret(database), 'bench', FILL_WITHIN_MS, async (sql) => {
    await new GroupVectors((use) => use(sql)).ensure([PLACES]);
    const detail =
      '<detail><contact callsign="C"/><__group name="Cyan" role="Team Member"/><track speed="1" course="2"/></detail>';
    await sql`
      INSERT INTO cot_router (uid, cot_type, start, "time", stale, how, point_hae, point_ce, point_le, detail, servertime,
        servertime_hour, event_pt, groups)
      SELECT uid, 'a-f-G-U-C', at, at, at + interval '75 s', 'm-g', 100, 4.8, 9999999, ${detail}, at, date_trunc('hour', at),
        point(random() * 360 - 180, random() * 180 - 90), v.vector
      FROM (
        SELECT 'BENCH-' || n / ${PER_DEVICE}::int AS uid, now() - ${DAYS}::int * (1 - n::float8 / ${ROWS}::int) * interval '1 day' AS at
        FROM generate_series(0, ${ROWS}::int - 1) n
        UNION ALL
        SELECT 'REPLAY-' || d, now() - s * interval '1 s'
        FROM generate_series(3700, 0, -${EVERY_S}::int) s, generate_series(1, ${DEVICES}::int) d
      ) AS each, group_vector v WHERE v.places = ${PLACES.join()}`;
    await sql`VACUUM ANALYZE cot_router`;
  });
}
