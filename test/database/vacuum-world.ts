// A core's database in which tables are vacuumed, as the contract of the vacuum wants one.

import { keptDatabase } from '@holdfast/kit/kept-database';
import { connect, type Sql } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import type { VacuumFacts } from '../../shared/database/port.ts';
import { vacuumFacts } from '../../shared/database/vacuum/facts.ts';
import { coreVacuum, type CoreVacuumOptions } from '../../shared/database/vacuum/statement.ts';
import { CORE } from '../../shared/runtime/both-hosts.ts';
import { eventually } from '../e2e/embedded/embedded.ts';
import type { VacuumWorld } from './vacuum-contract.ts';

export interface RealVacuum extends VacuumWorld {
  /** As the owner. */
  sql: Sql;
  /** What was logged: event and fields. */
  logged: [string, Record<string, unknown>][];
  /** Runs statements in order and waits until the server counts what they did. */
  counted: (...statements: string[]) => Promise<void>;
  /** Resolves when no session can see rows any more that are deleted by now: VACUUM FULL would keep them. */
  unseen: () => Promise<void>;
  /** Begins the statement on a session of that name, in a transaction; resolves when it was carried out. */
  holding: (statement: string, application: string) => Promise<() => Promise<void>>;
  end: () => Promise<void>;
}

export function readerOf(url: string): VacuumFacts {
  return vacuumFacts(keptDatabase(new Secret(url), { ...CORE, name: 'vacuum-test', withinMs: 20_000 }));
}

export function realVacuum(owner: string, reader: string): RealVacuum {
  const url = new Secret(owner);
  // One session for the whole file: a session that reaches its age ends behind our back, and sends its counts while it
  // ends, perhaps after an ANALYZE of the next session, which would then count the rows twice.
  const sql = connect(url, { name: 'the owner', max: 1, lasting: true });
  const logged: RealVacuum['logged'] = [];
  const note = (event: string, fields = {}): void => void logged.push([event, fields]);
  const options: CoreVacuumOptions = { url, log: { info: note, warn: note, error: note } };
  const facts = readerOf(reader);

  /** Counts of a session that is busy come late, and would be added to those of ANALYZE. */
  async function counted(...statements: string[]): Promise<void> {
    for (const statement of statements) {
      await sql.unsafe(statement);
      await sql`SELECT pg_stat_force_next_flush()`;
      await sql`SELECT 1`;
    }
  }

  /** Autovacuum's ANALYZE of another table of the database is enough: its snapshot lasts as long as it. */
  async function unseen(): Promise<void> {
    const [{ next }] = await sql<[{ next: string }]>`SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next`;
    const older = () => sql`
      SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_xmin::text::int8 < ${next}::int8`;
    await eventually('no session sees what was deleted', async () => (await older()).length === 0, 60_000);
  }

  async function holding(statement: string, application: string): Promise<() => Promise<void>> {
    const holder = connect(url, { name: application, max: 1 });
    const { promise: enough, resolve: release } = Promise.withResolvers<void>();
    const { promise: holds, resolve: isHeld, reject: isNot } = Promise.withResolvers<void>();
    const transaction = holder
      .begin(async (held) => {
        await held.unsafe(statement);
        isHeld();
        await enough;
      })
      .catch(isNot);
    await holds;
    return async () => {
      release();
      await transaction;
      await holder.end({ timeout: 1 });
    };
  }

  const quoted = (table: string): string => `"${table.replaceAll('"', '""')}"`;

  return {
    sql,
    facts,
    logged,
    counted,
    unseen,
    holding,
    vacuum: coreVacuum(options),
    patient: coreVacuum({ ...options, lockTimeoutMs: 60_000 }),
    make: (table) =>
      counted(
        `DROP TABLE IF EXISTS ${quoted(table)}`,
        `CREATE TABLE ${quoted(table)} (id int PRIMARY KEY, note text) WITH (autovacuum_enabled = false)`,
        `INSERT INTO ${quoted(table)} SELECT n, md5(n::text) FROM generate_series(1, 20000) n`,
        `ANALYZE ${quoted(table)}`,
        `DELETE FROM ${quoted(table)} WHERE id % 2 = 0`,
      ),
    drop: (table) => counted(`DROP TABLE ${quoted(table)}`),
    hold: (table, application) => holding(`SELECT count(*) FROM ${quoted(table)}`, application),
    ended: (job) =>
      eventually('the statement ends', async () => (await facts.statement(job))?.state !== 'running', 30_000),
    async crash() {
      const victim = connect(url, { name: 'victim', max: 1 });
      const bystander = connect(url, { name: 'bystander', max: 1 });
      const bystanding = bystander`SELECT pg_sleep(600)`.catch(() => undefined);
      const [row] = await victim<[{ pid: number }]>`SELECT pg_backend_pid() AS pid`;
      const stands = () => sql`SELECT FROM pg_stat_activity WHERE application_name = 'bystander' AND state = 'active'`;
      await eventually('somebody stands by', async () => (await stands()).length === 1, 10_000);
      process.kill(row.pid, 'SIGKILL');
      await bystanding;
      await Promise.all([victim.end({ timeout: 0 }), bystander.end({ timeout: 0 })]);
      const answers = async (): Promise<boolean> => {
        const [one] = await sql`SELECT 1`.catch(() => []);
        return one !== undefined && (await facts.server().catch(() => undefined)) !== undefined;
      };
      await eventually('the server is back', answers, 30_000);
    },
    end: () => sql.end({ timeout: 1 }),
  };
}
