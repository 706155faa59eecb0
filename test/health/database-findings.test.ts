// What the modules database and autovacuum say where no server of a test can be brought to it, and of containers and volumes.

import { describe, expect, it } from 'vitest';
import type { VacuumHolder } from '../../shared/core/database/port.ts';
import { healthModuleOf } from '../../shared/health/modules/index.ts';
import type { Measurement } from '../../shared/health/port.ts';
import type { Container, ContainerMount } from '../../shared/host/port.ts';
import { DEFAULT_THRESHOLDS } from '../../shared/settings/status.ts';
import { runningContainer } from '../host/fake-container.ts';
import { measure } from './fake-measure.ts';
import { fakeMonitored, history, NOW, table, world } from './fake-monitored.ts';

const CONTAINER = runningContainer('db', { hosts: ['core-database'] });

const before = (seconds: number): string => new Date(NOW.getTime() - seconds * 1000).toISOString();

describe('a table with many dead rows', () => {
  const holder = (more: Partial<VacuumHolder>): VacuumHolder => ({
    kind: 'transaction',
    name: '4711',
    user: 'martiuser',
    application: 'map',
    since: before(61),
    seconds: 61,
    ...more,
  });
  const held = (by: VacuumHolder[]): Promise<Measurement> =>
    measure('autovacuum', (of) => {
      of.tables = [{ ...table('cot_router', 2000, 8000), last_vacuum: before(3600) }];
      of.holders = by;
    });

  it.each<[string, Partial<VacuumHolder>, boolean]>([
    ['a minute old', {}, true],
    ['younger', { since: before(59), seconds: 59 }, false],
    ['younger and older than the last vacuum', { since: before(3601), seconds: 59 }, true],
  ])('names a transaction that is %s: %j', async (_, more, named) => {
    const { message } = await held([holder(more)]);
    expect(
      message.includes('cleanup blocked by the transaction of pid 4711 (martiuser, map), open since 2026-03-04 0'),
    ).toBe(named);
  });

  it('names the oldest alone', async () => {
    const { message } = await held([
      holder({ since: before(10), seconds: 10 }),
      holder({ name: '1' }),
      holder({ name: '2' }),
    ]);
    expect(message).toContain('pid 1 ');
    expect(message).not.toMatch(/pid (4711|2) /);
  });

  it('names a replication slot, and how to drop it', async () => {
    const slot = {
      kind: 'replication slot',
      name: "'lost'",
      user: null,
      application: null,
      since: null,
      seconds: null,
    };
    const { message, remedies } = await held([slot as VacuumHolder]);
    expect(message).toContain("cleanup blocked by the replication slot 'lost'; ");
    expect(remedies).toEqual(["If nothing uses that slot any more, drop it: SELECT pg_drop_replication_slot('lost');"]);
  });

  it('is not held up by anything where it is small', async () => {
    const { status, remedies } = await measure('autovacuum', (of) => (of.holders = [holder({})]));
    expect([status, remedies]).toEqual(['ok', []]);
  });
});

it('a row that is a thousand million transactions old is a warning, one less is none', async () => {
  expect((await measure('autovacuum', (of) => (of.transactionAge = 999_999_999))).status).toBe('ok');
  expect(await measure('autovacuum', (of) => (of.transactionAge = 1_000_000_000))).toMatchObject({
    status: 'warning',
    remedies: [expect.stringContaining('VACUUM (FREEZE, VERBOSE);') as string],
  });
});

it('a setting that PostgreSQL itself has, and one that nobody knows, is set by its remedy', async () => {
  const { remedies } = await measure('autovacuum', (of) => {
    of.settings = { ...of.settings, autovacuum_vacuum_cost_limit: '200' };
    of.origins = {
      autovacuum_vacuum_cost_limit: { source: 'default', file: null, line: null, role: null, database: null },
    };
  });
  expect(remedies).toEqual(["ALTER SYSTEM SET autovacuum_vacuum_cost_limit = '1000'; SELECT pg_reload_conf();"]);
});

describe('a slot that is read too slowly', () => {
  it('is named, with how much is kept for it', async () => {
    const { message, remedies } = await measure('database', (of) => {
      of.size.wal_bytes = 4e9;
      of.server.slots = [{ name: "'standby'", active: true, retained_bytes: 3.5e9, wal_status: 'extended' }];
    });
    expect(message).toMatch(
      /WAL takes 4 GB, max_wal_size is 1 GB: the replication slot 'standby', which is behind, keeps 3\.5 GB/,
    );
    expect(remedies[0]).toContain("then SELECT pg_drop_replication_slot('standby');");
  });
});

describe('the volume of the database', () => {
  const container = (mounts: ContainerMount[], more: Partial<Container> = {}): Container => ({
    ...CONTAINER,
    name: 'stack-db-1',
    hosts: ['stack-db-1', 'core-database', '172.18.0.2'],
    mounts,
    ...more,
  });
  const on = (type: string, destination = '/data', name?: string): ContainerMount => ({
    type,
    destination,
    ...(name === undefined ? {} : { name }),
  });
  const measured = (containers: Container[] | undefined, host: string | undefined = 'core-database') =>
    measure('database', (of) => {
      of.containers = containers;
      of.wanted.databaseHost = host;
    });

  it.each<[string, ContainerMount[], string, string]>([
    ['a named volume', [on('volume', '/data', 'stack_database')], 'ok', 'named volume'],
    ['a volume at the directory itself', [on('volume', '/data/pgdata/', 'db')], 'ok', 'named volume'],
    ['a bind mount', [on('bind')], 'ok', 'bind mount'],
    ['a volume without a name', [on('volume', '/data', 'a1'.repeat(32))], 'warning', 'anonymous volume'],
    ['nothing', [], 'critical', 'none'],
    ['memory', [on('tmpfs')], 'critical', 'none'],
    ['a volume elsewhere', [on('volume', '/data/pg', 'other'), on('volume', '/dat', 'b')], 'critical', 'none'],
    ['memory on a volume', [on('volume', '/data', 'db'), on('tmpfs', '/data/pgdata')], 'critical', 'none'],
  ])('%s: %j is %s', async (_, mounts, status, volume) => {
    const measurement = await measured([container([], { name: 'other', hosts: ['other'] }), container(mounts)]);
    expect([measurement.status, measurement.data['volume']]).toEqual([status, volume]);
  });

  it('that is none is told with what saves the data first, as its owner', async () => {
    const { message, remedies } = await measured([container([])]);
    expect(message).toBe(
      'the database files (/data/pgdata) are in the container stack-db-1 itself: docker compose down deletes them.',
    );
    expect(remedies[0]).toMatch(
      /^Save it first: docker exec stack-db-1 pg_dump -Fc -U martiuser cot > core\.dump; .*volumes: \["database:\/data\/pgdata"\]/,
    );
  });

  it('is found by the address, too', async () =>
    expect((await measured([container([on('bind')])], '172.18.0.2')).data).toMatchObject({
      volume: 'bind mount',
      volume_container: 'stack-db-1',
    }));

  it.each<[string, Container[] | undefined, string | undefined, object]>([
    [
      'without a runtime is not applicable',
      undefined,
      'core-database',
      { volume: 'not applicable', volume_detail: null },
    ],
    [
      'of a database elsewhere is unknown',
      [container([])],
      'db.example.org',
      { volume: 'unknown', volume_detail: 'no running container is called db.example.org' },
    ],
    [
      'of a container that has ended is unknown',
      [container([], { state: 'exited' })],
      'core-database',
      { volume: 'unknown' },
    ],
  ])('%s, and nothing is said', async (_, containers, host, data) =>
    expect(await measured(containers, host)).toMatchObject({ status: 'ok', data }),
  );

  it('is unknown where the runtime does not answer, or the role may not see the directory', async () => {
    const of = world();
    of.containers = [];
    const monitored = {
      ...fakeMonitored(of),
      containers: { list: async () => Promise.reject(new Error('no engine')) },
    };
    const database = healthModuleOf('database');
    expect(await database?.measure(monitored, DEFAULT_THRESHOLDS, history())).toMatchObject({
      status: 'ok',
      data: { volume: 'unknown', volume_detail: 'no engine' },
    });
    const hidden = await measure('database', (around) => {
      around.containers = [container([])];
      around.server.data_directory = null;
    });
    expect(hidden).toMatchObject({ status: 'ok', data: { volume: 'unknown' } });
  });
});

describe('every remedy of a finding', () => {
  it('has at most 300 characters, whatever the names are', async () => {
    const long = 'x'.repeat(40);
    const measurements = await Promise.all([
      measure('autovacuum', (of) => {
        of.wanted.tuning = { scaleFactor: 0.2, costLimit: 200, maintenanceWorkMem: '64MB' };
        of.tables = [{ ...table(long, 5000, 5000), schema: long, options: { autovacuum_enabled: 'false' } }];
        of.holders = [
          {
            kind: 'prepared transaction',
            name: `'${long}'`,
            user: long,
            application: null,
            since: before(99),
            seconds: 99,
          },
        ];
        of.origins = { autovacuum: { source: 'role', file: null, line: null, role: long, database: long } };
        of.settings = { ...of.settings, autovacuum: 'off' };
      }),
      measure('database', (of) => {
        of.server.archive = { ...of.server.archive, mode: 'on', command: 'cp', failing: true };
        of.server.standby = true;
        of.server.pending_restart = ['max_connections'];
        of.server.owner = long;
        of.server.database = long;
        of.containers = [{ ...CONTAINER, name: long }];
      }),
    ]);
    const remedies = measurements.flatMap((each) => each.remedies);
    expect(remedies.length).toBeGreaterThan(6);
    for (const remedy of remedies) expect(remedy.length, remedy).toBeLessThanOrEqual(300);
  });
});
