// The probe at a real core: CoT from one end to the other, nothing stored, nobody disturbed.

import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { coreDevices } from '../../shared/adapters/core-devices.ts';
import { PROBE_ACCOUNT, PROBE_GROUP } from '../../shared/domain/names.ts';
import type { CoreDevices } from '../../shared/ports/core-devices.ts';
import { type ProbeDeps, runProbe } from '../../shared/verbs/run-probe.ts';
import { connectionOf, eventOf } from '../contract/core-devices.ts';
import { fakeMonitored, type World, world } from '../fakes/monitored.ts';
import { coreInProcess, type CoreInProcess } from './core-in-process.ts';
import { eventually, query } from './embedded.ts';
import { emptyDatabase } from './empty-database.ts';

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
  devices = coreDevices({
    apiUrl: at.place.api,
    streamingUrl: at.place.streaming,
    caFile: join(at.place.directory, 'certs/files/ca.pem'),
    clientKeys: at.clientKeys,
  });
  around = world();
  around.now = new Date();
  probeHash = await at.enrolled(PROBE_ACCOUNT);
  const [made] = await around.certificateBook.made();
  if (made === undefined) throw new Error('no certificate');
  const issuedAt = new Date().toISOString();
  const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
  const book = { made: async () => [{ ...made, hash: probeHash, issuedAt, expiresAt }], revocations: async () => [] };
  deps = {
    ...fakeMonitored(around),
    now: () => new Date(),
    certificateBook: book,
    clientKeys: at.clientKeys,
    coreDevices: devices,
  };
});

const STAGES = ['account', 'bind', 'groups', 'certificate', 'connect', 'send', 'receive', 'end'];

const storedOf = async (type: string): Promise<number> => {
  const [row] = await query<{ n: number }>(
    database.url(),
    `SELECT count(*)::int AS n FROM cot_router WHERE cot_type = '${type}'`,
  );
  return row?.n ?? -1;
};

it('an event goes the whole way in well under two seconds, and is not stored', async () => {
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
  // What is sent later and stored shows that nothing is on its way any more.
  const open = connectionOf(await devices.connect(probeHash));
  await devices.send(open, eventOf('stored'));
  await eventually('the other event is stored', async () => (await storedOf('t-x-holdfast-test')) === 1, 10_000);
  expect(await storedOf('t-x-holdfast-probe')).toBe(0);
  await devices.close(open);
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
    ...all,
    async received(connection, uid) {
      await all.answers(connection);
      return all.received(connection, uid, 0);
    },
  };
}
