// GET /api/health/autovacuum and /database, live, at 200 tables, against the bare query on a kept
// connection of the same role, in alternating rounds. Then 16 callers at once: how many
// measurements they cost.

import { Agent, get } from 'node:http';
import postgres from 'postgres';
import { report, reportAim, sampleOf, show } from './measure.ts';
import { benchStack, type BenchStack } from './stack.ts';

const TABLES = 200;
const ROUNDS = 7;
const ASKS = 150;
const CALLERS = 16;
const BURSTS = 20;
const AGENT = new Agent({ keepAlive: true });

/** What a person would write by hand to see the same. */
const BARE = {
  autovacuum: `
    SELECT schemaname, relname, n_dead_tup, n_live_tup, last_autovacuum, last_vacuum
    FROM pg_stat_user_tables ORDER BY n_dead_tup DESC`,
  database: `
    SELECT pg_database_size(current_database()), sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables`,
};

type Module = keyof typeof BARE;

export async function run(): Promise<void> {
  const stack = await benchStack();
  const sql = postgres(stack.readerDatabase, { max: 1, fetch_types: false });
  try {
    await makeTables(stack);
    for (const module of ['autovacuum', 'database'] as const) await compare(module, stack, sql);
    for (const module of ['autovacuum', 'database'] as const) await together(module, stack);
  } finally {
    AGENT.destroy();
    await sql.end({ timeout: 1 });
    stack.stop();
  }
}

async function makeTables({ database }: BenchStack): Promise<void> {
  const owner = postgres(database, { max: 1, onnotice: () => undefined });
  for (let number = 0; number < TABLES; number++) {
    await owner.unsafe(`
      CREATE TABLE t${number} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text, at timestamptz DEFAULT now())
        WITH (autovacuum_vacuum_threshold = 1000000000, autovacuum_vacuum_insert_threshold = -1);
      CREATE INDEX ON t${number} (at);
      INSERT INTO t${number} (note) SELECT md5(n::text) FROM generate_series(1, 200) n;
      DELETE FROM t${number} WHERE id % 7 = ${number % 7}`);
  }
  await owner.end();
}

async function compare(module: Module, stack: BenchStack, sql: postgres.Sql): Promise<void> {
  const bare: number[] = [];
  const ours: number[] = [];
  const query = async (): Promise<unknown> => sql.unsafe(BARE[module], [], { prepare: true });
  const ask = async (): Promise<unknown> => answerOf(module, stack);
  await median(query);
  await median(ask);
  for (let round = 0; round < ROUNDS; round++) {
    bare.push(await median(query));
    ours.push(await median(ask));
  }
  report(`bare query for ${module}, ${TABLES} tables, p50`, show(sampleOf(bare), 'ms', 2));
  report(`/api/health/${module}, p50`, show(sampleOf(ours), 'ms', 2));
  reportAim('  ratio of the medians', sampleOf(ours).median / sampleOf(bare).median, 1.3, 'times');
}

async function median(action: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let count = 0; count < ASKS; count++) {
    const begun = performance.now();
    await action();
    times.push(performance.now() - begun);
  }
  return sampleOf(times).median;
}

async function answerOf(module: Module, stack: BenchStack): Promise<{ updated_at: string }> {
  return JSON.parse(await textOf(`/api/health/${module}`, stack)) as { updated_at: string };
}

/** Over kept connections, with as little client as Node has. */
async function textOf(path: string, { apiPort, authorization }: BenchStack): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port: apiPort, path, headers: { authorization }, agent: AGENT }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk)).once('end', () => resolve(text));
    }).once('error', reject);
  });
}

/** Each measurement carries the time at which it was made, and costs the same queries. */
async function together(module: Module, stack: BenchStack): Promise<void> {
  const made: number[] = [];
  for (let burst = 0; burst < BURSTS; burst++) {
    const answers = await Promise.all(Array.from({ length: CALLERS }, () => answerOf(module, stack)));
    made.push(new Set(answers.map((answer) => answer.updated_at)).size);
  }
  report(`measurements that ${CALLERS} callers of ${module} at once cost`, show(sampleOf(made), ''));
  reportAim('  median', sampleOf(made).median, 1, '');
}
