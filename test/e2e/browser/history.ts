// A past for a stack that has just begun: weeks of events, of sizes, of health and of retention runs, straight into its databases.

import postgres from 'postgres';
import { eventually } from '../embedded/eventually.ts';

/** Thirty days of traffic: positions of a dozen devices, some sensors and chat, more in the daytime. */
const EVENTS = `
INSERT INTO cot_router (uid, cot_type, how, point_hae, detail, servertime)
SELECT 'ANDROID-' || n % 12, (ARRAY['a-f-G-U-C', 'a-f-G-U-C', 'a-f-G-U-C', 'b-m-p-s-m', 'a-f-A-M-H', 'u-d-f'])[1 + n % 6], 'm-g', 420,
  '<detail><contact callsign="' || (ARRAY['Lantern 1', 'Medic 2', 'Ridge 4', 'Harbour', 'Drone 7', 'Base'])[1 + n % 6] || '"/>'
  || repeat('<track speed="1.5" course="270"/>', 4 + n % 20) || '</detail>',
  now() - interval '30 days' + n * interval '43.2 s' + sin(n / 318.3) * interval '2 hours'
FROM generate_series(1, 60000) n;
INSERT INTO cot_router_chat (uid, cot_type, detail, servertime, chat_room)
SELECT 'GeoChat.' || n, 'b-t-f', '<detail/>', now() - interval '90 days' + n * interval '1 hour', 'All Chat Rooms'
FROM generate_series(1, 2000) n;
DELETE FROM cot_router WHERE id % 9 = 0;
ANALYZE`;

const RETENTION_RUNS = `
INSERT INTO retention_run (id, source, trigger, state, started_at, finished_at, limits, rows, included, bytes)
SELECT 'made-up-' || n, 'core', 'schedule', 'done', at, at + interval '41 s' + n * interval '3 s', '{}',
  jsonb_build_object('cot', 1900 + 37 * (n % 5), 'geochat', 24 + n % 3), '{}', 1200000 + 31000 * (n % 6)
FROM (SELECT n, date_trunc('day', now()) - n * interval '1 day' + interval '3 hours' AS at FROM generate_series(1, 12) n) AS nights
ON CONFLICT DO NOTHING`;

/** Back from the sample that is there: each hour, then each minute, as it is kept. */
const SIZES = `
INSERT INTO growth_sample (at, database_bytes, wal_bytes, max_wal_bytes, mounts)
SELECT now.at - back, (now.database_bytes * (1 - 0.014 * days + 0.004 * sin(days * 6.3)))::bigint, now.wal_bytes, now.max_wal_bytes,
  (SELECT jsonb_agg(mount || jsonb_build_object('free_bytes', ((mount->>'free_bytes')::numeric * (1 + 0.0002 * days))::bigint))
   FROM jsonb_array_elements(now.mounts) AS mount)
FROM (SELECT * FROM growth_sample WHERE database_bytes IS NOT NULL ORDER BY at DESC LIMIT 1) AS now,
  LATERAL (SELECT make_interval(hours => n) AS back, n / 24.0 AS days FROM generate_series(1, 960) n) AS steps
ON CONFLICT DO NOTHING`;

const TABLES = `
INSERT INTO growth_table (day, schema_name, table_name, bytes, rows)
SELECT now.day - n, now.schema_name, now.table_name, (now.bytes * (1 - 0.014 * n))::bigint, (now.rows * (1 - 0.014 * n))::bigint
FROM (SELECT * FROM growth_table WHERE day = (SELECT max(day) FROM growth_table)) AS now, generate_series(1, 40) n
ON CONFLICT DO NOTHING`;

/** Five minutes apart for two days, an hour for two weeks; figures move a little around what they are. */
const HEALTH = `
INSERT INTO health_sample (at, modules)
SELECT now.at - back, (SELECT jsonb_object_agg(name, module || jsonb_build_object(
    'since', now.at - interval '15 days', 'status', 'ok',
    'figure', CASE WHEN jsonb_typeof(module->'figure') = 'number'
      THEN (module->>'figure')::float8 * (1 - 0.01 * n / 60 + 0.08 * sin(n / 7.0 + length(name))) END))
  FROM jsonb_each(now.modules) AS each(name, module))
FROM (SELECT * FROM health_sample ORDER BY at DESC LIMIT 1) AS now,
  LATERAL (SELECT n, n * interval '5 minutes' AS back FROM generate_series(1, 576) n
    UNION ALL SELECT 576 + n, interval '2 days' + n * interval '1 hour' FROM generate_series(1, 280) n) AS steps
ON CONFLICT DO NOTHING`;

interface Databases {
  /** The core's, as its owner. */
  core: string;
  /** Our own. */
  state: string;
}

export async function giveEvents({ core }: Databases): Promise<void> {
  await withDatabase(core, async (sql) => void (await sql.unsafe(EVENTS)));
}

/** Once it has measured itself. The sizes lead to what the database has now, with the events that were given. */
export async function givePast({ core, state }: Databases): Promise<void> {
  const bytes = await withDatabase(core, async (sql) => {
    const [size] = await sql<{ bytes: string }[]>`SELECT pg_database_size(current_database()) AS bytes`;
    return Number(size?.bytes);
  });
  await withDatabase(state, async (sql) => {
    const has = async (table: string): Promise<boolean> =>
      (await sql.unsafe(`SELECT FROM ${table} LIMIT 1`)).length > 0;
    for (const [table, past] of [
      ['growth_sample', SIZES],
      ['growth_table', TABLES],
      ['health_sample', HEALTH],
    ] as const) {
      await eventually(`there is something in ${table}`, () => has(table), 150_000);
      if (table === 'growth_sample')
        await sql`UPDATE growth_sample SET database_bytes = ${bytes} WHERE database_bytes IS NOT NULL`;
      await sql.unsafe(past);
    }
    await sql.unsafe(RETENTION_RUNS);
  });
}

async function withDatabase<T>(url: string, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return await work(sql);
  } finally {
    await sql.end({ timeout: 2 });
  }
}
