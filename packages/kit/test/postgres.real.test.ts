import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect as connectSocket, createServer } from 'node:net';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { repairPostgres } from '@holdfast/setup/repair-postgres';
import { memoryLog } from '../../../test/http/fake-deps.ts';
import { eventually } from '../../../test/e2e/embedded/embedded.ts';
import { emptyDatabase } from '../../../test/e2e/embedded/empty-database.ts';
import type { Log } from '../log.ts';
import { freshConnections, keptDatabase } from '../postgres/kept-database.ts';
import { migrate } from '../postgres/migrate.ts';
import { connect, withAwaitedDatabase, withDatabase } from '../postgres/postgres.ts';
import { Secret } from '../secret.ts';

const database = emptyDatabase();

/** The core has its tables in that database too. */
const VICTIM = { name: 'cot', variable: 'the URL', history: 'victim_history', shared: true };
const ONE = [{ number: 1, name: 'one', sql: 'CREATE TABLE one (n int)' }];

describe('the PostgreSQL client', () => {
  it('survives connections that are killed at any moment: every call ends, and the next one works', async () => {
    const url = new Secret(database.url());
    const migrateOnce = (withinMs: number) => withDatabase(url, 'victim', withinMs, (sql) => migrate(sql, ONE, VICTIM));
    const killer = connect(new Secret(database.url()), { name: 'killer', max: 1 });
    const kill = () => killer`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'victim'`;
    let killing = true;
    const kills = (async () => {
      while (killing) {
        await delay(Math.random() * 10);
        await kill();
      }
    })();
    const outcomes = { worked: 0, failed: 0 };
    const end = Date.now() + 4000;
    const caller = async (): Promise<void> => {
      while (Date.now() < end) {
        const call = migrateOnce(5000).then(
          () => 'worked' as const,
          () => 'failed' as const,
        );
        const outcome = await Promise.race([call, delay(10_000, 'hung' as const)]);
        if (outcome === 'hung') throw new Error('a call on a killed connection never ended');
        outcomes[outcome]++;
      }
    };
    await Promise.all([1, 2, 3, 4].map(caller));
    killing = false;
    await kills;
    expect(outcomes.failed).toBeGreaterThan(10);
    await delay(300);
    await migrateOnce(5000);
    expect(await migrateOnce(5000)).toEqual([]);
    await killer.end({ timeout: 1 });
  });

  it('fails one call for a connection that the server has ended, not the one after it as well', async () => {
    const sql = connect(new Secret(database.url()), { name: 'ended', max: 1 });
    const killer = connect(new Secret(database.url()), { name: 'killer', max: 1 });
    for (let round = 0; round < 5; round++) {
      const asleep = sql`SELECT pg_sleep(30)`.then(
        () => 'answered',
        () => 'failed',
      );
      const end = (): Promise<object[]> => killer`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'ended' AND state = 'active' AND wait_event = 'PgSleep'`;
      await eventually('it was ended', async () => (await end()).length === 1);
      expect(await asleep).toBe('failed');
      expect(await sql`SELECT 1 AS one`).toEqual([{ one: 1 }]);
    }
    await Promise.all([sql.end({ timeout: 1 }), killer.end({ timeout: 1 })]);
  });

  it('answers after a COPY that its reader was slow to take', async () => {
    const sql = connect(new Secret(database.url()), { name: 'copied', max: 1 });
    const read = sql.begin(async (tx) => {
      const rows = await tx.unsafe(`COPY (SELECT repeat('x', 200000)) TO STDOUT`).readable();
      let bytes = 0;
      for await (const chunk of rows as AsyncIterable<Buffer>) bytes += chunk.length;
      const [row] = await tx<{ text: string }[]>`SELECT repeat('y', 100000) AS text`;
      return [bytes, row?.text.length];
    });
    expect(await Promise.race([read, delay(10_000, 'hung')])).toEqual([200_001, 100_000]);
    await sql.end({ timeout: 1 });
  });

  it('gives up a call that is never answered, by name and time', async () => {
    const never = withDatabase(new Secret(database.url()), 'slow', 300, (sql) => sql`SELECT pg_sleep(30)`);
    await expect(never).rejects.toThrow('the database did not answer within 0.3 s');
  });

  it('passes on what the work itself throws, and explains what the connection does', async () => {
    const options = { name: 'kept', called: 'our own database', variable: 'DATABASE_URL', withinMs: 300 };
    const url = new Secret(database.url());
    const own = new RangeError('of the work');
    for (const run of [keptDatabase(url, options), freshConnections(url, options)]) {
      await expect(run(() => Promise.reject(own))).rejects.toBe(own);
      await expect(run((sql) => sql`SELECT pg_sleep(30)`)).rejects.toMatchObject({ code: 'unavailable' });
      await expect(run((sql) => sql`SELECT 1 / 0`)).rejects.toMatchObject({ code: '22012' });
    }
    const inWorkerd = freshConnections(url, { ...options, uncoded: 'connection' });
    await expect(inWorkerd(() => Promise.reject(new Error('Network connection lost.')))).rejects.toMatchObject({
      code: 'unavailable',
      message: 'Our own database does not answer: Network connection lost.',
    });
  });

  it('is repaired in exactly the known places, or the build stops', () => {
    const file = resolve(import.meta.dirname, '../../../node_modules/postgres/src/connection.js');
    const source = readFileSync(file, 'utf8');
    expect(repairPostgres(source)).not.toBe(source);
    expect(() => repairPostgres(source.replace('socket.write(chunk, fn)', 'socket.write(chunk)'))).toThrow(
      /postgres has changed/,
    );
  });
});

describe('a database that is waited for', () => {
  const one = (url: string, log: Log): Promise<object> =>
    withAwaitedDatabase(log, new Secret(url), 'awaited', 5_000, async (sql) => sql`SELECT 1 AS one`);

  it('may begin to listen later, and is then used', async () => {
    const real = new URL(database.url());
    const door = createServer((socket) => {
      const through = connectSocket(Number(real.port), real.hostname);
      socket.pipe(through).pipe(socket);
      socket.on('error', () => through.destroy());
      through.on('error', () => socket.destroy());
    });
    await once(door.listen(0, '127.0.0.1'), 'listening');
    const { port } = door.address() as AddressInfo;
    door.close();
    await once(door, 'close');
    const log = memoryLog();
    const answer = one(Object.assign(new URL(real), { hostname: '127.0.0.1', port: String(port) }).href, log);
    await eventually('it was missed', async () => log.events.length > 0, 10_000);
    await once(door.listen(port, '127.0.0.1'), 'listening');
    expect(await answer).toEqual([{ one: 1 }]);
    expect([log.events[0]?.event, log.events.at(-1)?.event]).toEqual(['database.awaited', 'database.answers']);
    door.close();
  });

  it('that answers and refuses is not waited for', async () => {
    const log = memoryLog();
    const url = Object.assign(new URL(database.url()), { pathname: '/nowhere' }).href;
    await expect(one(url, log)).rejects.toMatchObject({ code: '3D000' });
    expect(log.events).toEqual([]);
  });
});
