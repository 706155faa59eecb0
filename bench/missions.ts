// A mission of 1,000 contents: how long the core takes to list it over one kept connection.

import postgres from 'postgres';
import { coreApi } from './core-api.ts';
import { p95, report, reportAim, sampleOf, show } from './measure.ts';
import { benchStack, type BenchStack } from './stack.ts';

const CONTENTS = 1_000;
const ROUNDS = 50;
const MAX_MS = 100;
const MISSION = '/Marti/api/missions/Large';

export async function run(): Promise<void> {
  const stack = await benchStack({ UPDATES_URL: 'off' });
  const core = coreApi(stack);
  try {
    await fill(stack);
    await core.ask('PUT', `${MISSION}?creatorUid=bench`);
    const uids = Array.from({ length: CONTENTS }, (_, n) => `large-${n + 1}`);
    await core.ask('PUT', `${MISSION}/contents?creatorUid=bench`, JSON.stringify({ uids }));
    const times: number[] = [];
    for (let round = -3; round < ROUNDS; round++) {
      const began = performance.now();
      const { data } = JSON.parse(await core.ask('GET', MISSION)) as { data: { uids: unknown[] }[] };
      if (data[0]?.uids.length !== CONTENTS) throw new Error(`${data[0]?.uids.length} contents`);
      if (round >= 0) times.push(performance.now() - began);
    }
    report(`a mission of ${CONTENTS} contents`, show(sampleOf(times), 'ms', 1));
    reportAim('  p95', p95(times), MAX_MS, 'ms', { digits: 1 });
  } finally {
    core.close();
    stack.stop();
  }
}

/** One event of each uid, of no group. */
async function fill({ database }: BenchStack): Promise<void> {
  const sql = postgres(database, { max: 1, onnotice: () => undefined });
  try {
    await sql`
      INSERT INTO cot_router (uid, cot_type, how, start, "time", stale, point_hae, point_ce, point_le, detail, event_pt, groups)
      SELECT 'large-' || n, 'a-f-G', 'm-g', now(), now(), now(), 1, 2, 3, '<detail><contact callsign="c"/></detail>',
        point(1, 2), B'0'::bit varying FROM generate_series(1, ${CONTENTS}::int) n`;
  } finally {
    await sql.end();
  }
}
