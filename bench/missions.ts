// A mission of 1,000 contents: how long the core takes to list it over one kept connection.

import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import postgres from 'postgres';
import { report, reportAim, sampleOf, show } from './measure.ts';
import { benchStack, type BenchStack } from './stack.ts';

const CONTENTS = 1_000;
const ROUNDS = 50;
const MAX_MS = 100;
const MISSION = '/Marti/api/missions/Large';
const JSON_TYPE = { 'content-type': 'application/json' };

export async function run(): Promise<void> {
  const stack = await benchStack({ UPDATES_URL: 'off' });
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ...identityOf(stack) });
  try {
    const ask = (method: string, path: string, body = ''): Promise<string> =>
      exchanged({ stack, agent }, method, path, body);
    await fill(stack);
    await ask('PUT', `${MISSION}?creatorUid=bench`);
    const uids = Array.from({ length: CONTENTS }, (_, n) => `large-${n + 1}`);
    await ask('PUT', `${MISSION}/contents?creatorUid=bench`, JSON.stringify({ uids }));
    const times: number[] = [];
    for (let round = -3; round < ROUNDS; round++) {
      const began = performance.now();
      const { data } = JSON.parse(await ask('GET', MISSION)) as { data: { uids: unknown[] }[] };
      if (data[0]?.uids.length !== CONTENTS) throw new Error(`${data[0]?.uids.length} contents`);
      if (round >= 0) times.push(performance.now() - began);
    }
    const p95 = times.toSorted((one, other) => one - other)[Math.ceil(times.length * 0.95) - 1] ?? 0;
    report(`a mission of ${CONTENTS} contents`, show(sampleOf(times), 'ms', 1));
    reportAim('  p95', p95, MAX_MS, 'ms', { digits: 1 });
  } finally {
    agent.destroy();
    stack.stop();
  }
}

function identityOf({ coreDirectory }: BenchStack) {
  const file = (name: string): Buffer => readFileSync(join(coreDirectory, 'certs/files', name));
  return { ca: file('ca.pem'), pfx: file('svc_api.p12'), passphrase: 'atakatak' };
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

function exchanged(
  { stack, agent }: { stack: BenchStack; agent: Agent },
  method: string,
  path: string,
  body: string,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: stack.corePort, agent, method, path, headers: JSON_TYPE };
    const requested = request(options, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (chunk: string) => (text += chunk));
      answer.on('end', () =>
        (answer.statusCode ?? 0) < 300 ? resolve(text) : reject(new Error(`${path}: ${answer.statusCode} ${text}`)),
      );
    });
    requested.on('error', reject);
    requested.end(body);
  });
}
