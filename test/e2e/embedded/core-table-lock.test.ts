// The core of a real stack while its table of events is locked, as by VACUUM FULL: devices hear
// each other, people are answered, and what has waited is stored.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { withDatabase } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import {
  apiDevice,
  asDevice,
  coreOf,
  type CorePlace,
  type Device,
  enroll,
  newChannel,
  newPerson,
  workDirectory,
} from './core-client.ts';
import { eventually, newStack, query, stop, type TestStack } from './embedded.ts';
import { position, type StreamDevice, letIn } from './stream-device.ts';

const PASSWORD = 'a long enough password';
const MISSION = '/Marti/api/missions/locked';
const EVENTS = 200;
let stack: TestStack;
let place: CorePlace;
let admin: Omit<Device, 'hash'>;
let work: string;
let devices: [StreamDevice, StreamDevice];

beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
  place = coreOf(stack);
  work = workDirectory(stack);
  admin = await apiDevice(place, work);
  const people = [await newPerson(stack, 'ada', PASSWORD), await newPerson(stack, 'bob', PASSWORD)];
  await newChannel(stack, 'Search', people);
  const [ada, bob] = [await enroll(place, work, 'ada', PASSWORD), await enroll(place, work, 'bob', PASSWORD)];
  devices = [await letIn(place, ada, 'ADA'), await letIn(place, bob, 'BOB')];
  for (const device of devices) device.report();
});
afterAll(() => stop(stack.data));

const ask = (path: string, ...more: string[]) => asDevice(place, admin, path, more);
const statusesOf = async (paths: readonly string[]): Promise<number[]> =>
  (await Promise.all(paths.map((path) => ask(path)))).map(({ status }) => status);
const stored = async (): Promise<number> => {
  const [row] = await query<{ n: number }>(
    stack.file().database,
    "SELECT count(*)::int AS n FROM cot_router WHERE uid LIKE 'locked-%'",
  );
  return row?.n ?? 0;
};

it('hears, is answered and stores as without the lock, a little later', async () => {
  const json = ['-H', 'content-type: application/json', '--data', '{"uids":["ANDROID-ADA"]}', '-X', 'PUT'];
  expect((await ask(`${MISSION}?creatorUid=x`, '-X', 'PUT')).status).toBe(201);
  expect((await ask(`${MISSION}/contents?creatorUid=x`, ...json)).status).toBe(200);
  const [ada, bob] = devices;
  await withDatabase(new Secret(stack.file().database), 'vacuum', 60_000, (sql) =>
    sql.begin(async (tx) => {
      await tx`LOCK TABLE cot_router IN ACCESS EXCLUSIVE MODE`;
      for (let n = 0; n < EVENTS; n++) ada.send(position(`locked-${n}`, `E${n}`, 47));
      await bob.hears('the last event', ({ raw }) => raw.event._attributes.uid === `locked-${EVENTS - 1}`, 30_000);
      const missions = statusesOf(Array.from({ length: 8 }, () => MISSION));
      const counts = statusesOf(['/Marti/api/database/cotCount', `${MISSION}/cot`]);
      const others = [
        '/Marti/api/certadmin/cert/active',
        '/Marti/api/groups/all',
        '/Marti/api/missions',
        '/Marti/sync/search',
      ];
      expect(await statusesOf(others)).toEqual([200, 200, 200, 200]);
      expect(await missions).toEqual(Array.from({ length: 8 }, () => 200));
      expect(await counts).toEqual([503, 503]);
      await enroll(place, work, 'ada', PASSWORD, 'meanwhile');
      expect((await ask('/actuator/health')).status).toBe(200);
    }),
  );
  await eventually('all are stored', async () => (await stored()) === EVENTS, 10_000);
  expect(await query(stack.file().database, 'SELECT FROM archive_loss')).toEqual([]);
});
