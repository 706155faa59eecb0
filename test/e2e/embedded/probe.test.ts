// The probe at a real core: CoT from one end to the other and into the table, nobody disturbed.

import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { PROBE_ACCOUNT, PROBE_GROUP } from '@holdfast/kit/names';
import { Secret } from '@holdfast/kit/secret';
import { coreDatabase } from '../../../shared/core/database/database.ts';
import { TlsCoreDevices } from '../../../shared/core/devices/devices.ts';
import type { CoreDevices } from '../../../shared/core/devices/port.ts';
import { type ProbeDeps, runProbe } from '../../../shared/devices/connections/probe.ts';
import { connectionOf } from '../../core/core-devices-contract.ts';
import { fakeMonitored, type World, world } from '../../health/fake-monitored.ts';
import { coreInProcess, type CoreInProcess } from './core-in-process.ts';
import { eventually, query } from './embedded.ts';
import { emptyDatabase } from './empty-database.ts';

const READER = { name: 'probe-test', called: 'the database', variable: 'CORE_DATABASE_URL', withinMs: 5_000 };
const database = emptyDatabase();
/** As the core reads them. */
const groups = new Map<string, string[]>([[PROBE_ACCOUNT, [PROBE_GROUP]]]);
let at: CoreInProcess;
let around: World;
let devices: CoreDevices;
let deps: ProbeDeps;
let probeHash: string;

beforeAll(async () => {
  const work = mkdtempSync(join(database.data(), 'work-'));
  at = await coreInProcess(database.url(), work, (username) => groups.get(username) ?? []);
  devices = new TlsCoreDevices({
    apiUrl: at.place.api,
    streamingUrl: at.place.streaming,
    caFile: join(at.place.directory, 'certs/files/ca.pem'),
    clientKeys: at.clientKeys,
  });
  around = world();
  around.now = new Date();
  probeHash = await at.enrolled(PROBE_ACCOUNT);
  const [made] = await around.certificateStore.made();
  if (made === undefined) throw new Error('no certificate');
  const issuedAt = new Date().toISOString();
  const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
  const store = { made: async () => [{ ...made, hash: probeHash, issuedAt, expiresAt }], revocations: async () => [] };
  deps = {
    ...fakeMonitored(around),
    now: () => new Date(),
    certificateStore: store,
    clientKeys: at.clientKeys,
    coreDevices: devices,
    coreDatabase: coreDatabase({ run: keptDatabase(new Secret(database.url()), READER) }),
  };
});

const STAGES = ['account', 'bind', 'groups', 'certificate', 'connect', 'send', 'receive', 'store', 'end'];

const storedOf = async (type: string): Promise<number> => {
  const [row] = await query<{ n: number }>(
    database.url(),
    `SELECT count(*)::int AS n FROM cot_router WHERE cot_type = '${type}'`,
  );
  return row?.n ?? -1;
};

it('an event goes the whole way and is found in the table in well under two seconds', async () => {
  const took: number[] = [];
  // The fastest of some: others use this machine too.
  while (took.length < 3 || (took.length < 10 && Math.min(...took) >= 2_000)) {
    const results = await runProbe(deps);
    expect(results.map(({ stage, ok, problem }) => [stage, ok, problem])).toEqual(
      STAGES.map((name) => [name, true, null]),
    );
    took.push(results.reduce((sum, { milliseconds }) => sum + milliseconds, 0));
  }
  expect(Math.min(...took)).toBeLessThan(2_000);
  expect(await storedOf('t-x-holdfast-probe')).toBe(took.length);
});

it('an event that is delivered and not stored is noticed, though nobody else sends', { timeout: 60_000 }, async () => {
  const sql = (text: string): Promise<unknown> => query(database.url(), text);
  await sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no room'; END $$`);
  await sql('CREATE TRIGGER refuse BEFORE INSERT ON cot_router EXECUTE FUNCTION refuse()');
  try {
    expect((await runProbe(deps)).at(-1)).toMatchObject({
      stage: 'store',
      ok: false,
      problem: expect.stringContaining('not in the table cot_router'),
    });
  } finally {
    await sql('DROP TRIGGER refuse ON cot_router');
  }
  // What could not be written meanwhile may come late; a new event is stored again.
  await eventually('events are stored again', async () => (await runProbe(deps)).every(({ ok }) => ok), 30_000);
});

it('a core that has lost the groups is noticed, and those without a group hear nothing of it', async () => {
  groups.clear();
  await eventually(
    'the core has read the groups anew',
    async () => {
      const last = (await runProbe({ ...deps, coreDevices: hasty(devices) })).at(-1);
      return last?.stage === 'receive' && !last.ok;
    },
    30_000,
  );
  const bystander = connectionOf(await devices.connect(await at.enrolled('nobody')));
  const uids: string[] = [];
  await runProbe({
    ...deps,
    coreDevices: {
      ...hasty(devices),
      send: async (connection, event) => {
        uids.push(/ uid="([^"]*)"/.exec(event)?.[1] ?? '');
        await devices.send(connection, event);
        await devices.answers(connection);
      },
    },
  });
  expect(await devices.answers(bystander)).toBe(true);
  expect(await devices.received(bystander, uids[0] ?? '', 0)).toBeUndefined();
});

/** Waits for an event no longer than the answer to a ping takes. */
function hasty(all: CoreDevices): CoreDevices {
  return {
    roles: (hash) => all.roles(hash),
    connect: (hash) => all.connect(hash),
    answers: (connection) => all.answers(connection),
    send: (connection, event) => all.send(connection, event),
    close: (connection) => all.close(connection),
    async received(connection, uid) {
      await all.answers(connection);
      return all.received(connection, uid, 0);
    },
  };
}
