// A stack is backed up while people use it, its directory is lost, and it comes back elsewhere: in
// another directory, on other ports, from the archive and the passphrase alone.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { basic } from '../../http/fake-deps.ts';
import {
  apiDevice,
  asDevice,
  coreOf,
  type CorePlace,
  type Device,
  enroll,
  listedSerials,
  newChannel,
  newPerson,
  serialOf,
  verdictOf,
} from './core-client.ts';
import {
  eventually,
  freeOffset,
  newDataDirectory,
  newStack,
  outcomeOf,
  query,
  run,
  stop,
  type TestStack,
} from './embedded.ts';
import { type StreamDevice, streamDevice } from './stream-device.ts';

const PASSWORD = 'Ford-4711-crossing';
const PEOPLE = Array.from({ length: 10 }, (_, index) => `person${index}`);
/** Of devices: those of the connection check get numbers that were given before. */
const ROWS = "SELECT id, md5(c::text) AS sum FROM cot_router c WHERE uid ~ '^(week|ANDROID)-'";

let lost: TestStack;
let found: TestStack;
let core: CorePlace;
let work: string;
let backups: string;
let passphrase: string;
let admin: Omit<Device, 'hash'>;
const devices: Device[] = [];
const isRevoked = (index: number): boolean => index % 3 === 0 && index > 0;

beforeAll(async () => {
  lost = await newStack();
  work = join(dirname(lost.data), 'work');
  backups = join(work, 'backups');
  mkdirSync(backups, { recursive: true });
  passphrase = join(work, 'passphrase');
  writeFileSync(passphrase, 'seven gulls over the harbor\n');
  const env = join(work, 'settings');
  writeFileSync(env, 'COT_RETENTION_DAYS=400\n');
  expect(await lost.start(['--env', env])).toMatchObject({ code: 0 });
  core = coreOf(lost);
  const accounts = await Promise.all(PEOPLE.map((name) => newPerson(lost, name, PASSWORD)));
  await newChannel(lost, 'Blue', accounts);
  for (const name of PEOPLE) devices.push(await enroll(core, work, name, PASSWORD));
  admin = await apiDevice(core, work);
  for (const [index, { hash }] of devices.entries())
    if (isRevoked(index)) await asDevice(core, admin, `/Marti/api/certadmin/cert/${hash}`, ['-X', 'DELETE']);
  await query(
    lost.file().database,
    `INSERT INTO cot_router (uid, cot_type, detail, servertime, groups)
    SELECT 'week-' || n, 'a-f-G', '<detail n="' || n || '"/>', now() - n * interval '1 minute', vector
    FROM generate_series(1, 2000) n, (SELECT ('1' || repeat('0', 32767))::bit varying(32768) AS vector) v`,
  );
});

afterAll(async () => {
  if (found !== undefined) await stop(found.data);
});

const backup = (...args: string[]): ChildProcess =>
  run('backup.sh', ['--data', lost.data, '--output', backups, '--passphrase-file', passphrase, '--no-proof', ...args]);
const archives = (): string[] => readdirSync(backups).filter((name) => name.endsWith('.age'));
const partials = (): string[] => readdirSync(backups).filter((name) => name.endsWith('.partial'));

/** Ends a script and everything that it has started in its session. */
function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  process.kill(-(child.pid ?? 0), signal);
}

it('leaves nothing of a backup that is stopped, and cleans up after one that is killed', async () => {
  const stopped = backup();
  const outcome = outcomeOf(stopped);
  await eventually('it writes', () => partials().length === 1, 20_000);
  kill(stopped, 'SIGTERM');
  expect(await outcome).toMatchObject({ code: 1, output: expect.stringContaining('interrupted') as string });
  expect(readdirSync(backups)).toEqual([]);

  const killed = backup();
  await eventually('it writes', () => partials().length === 1, 20_000);
  kill(killed, 'SIGKILL');
  await once(killed, 'exit');
  expect([partials().length, archives().length]).toEqual([1, 0]);
});

it('is backed up while events come', async () => {
  const ada = await streamDevice(core, devices[0] as Device, 'ADA');
  const reporting = setInterval(() => ada.report(47 + Math.random()), 20);
  const { code, output } = await outcomeOf(backup());
  clearInterval(reporting);
  ada.leave();
  expect([code, output]).toEqual([0, expect.stringMatching(/Deleted \.holdfast-.*Backup .* rows, in /s)]);
  expect([partials().length, archives().length]).toEqual([0, 1]);
  const file = join(work, 'mine.age');
  const own = [
    '--data',
    lost.data,
    '--output',
    file,
    '--passphrase-file',
    passphrase,
    '--without-history',
    '--no-proof',
  ];
  expect(await outcomeOf(run('backup.sh', own))).toMatchObject({ code: 0 });
  const again = await outcomeOf(run('backup.sh', own));
  expect([again.code, again.output]).toEqual([1, expect.stringContaining('mine.age already exists')]);
});

it('is restored by a new start on other ports, after its directory is lost', async () => {
  const { database } = lost.file();
  const rows = await query<{ id: string; sum: string }>(database, ROWS);
  const before = new Map(rows.map(({ id, sum }) => [id, sum]));
  await stop(lost.data);
  const noStack = await outcomeOf(backup());
  expect([noStack.code, noStack.output]).toEqual([1, expect.stringContaining('No stack is running')]);
  rmSync(lost.data, { recursive: true });

  found = await newStack(newDataDirectory());
  const offset = await freeOffset();
  const archive = join(backups, archives()[0] ?? '');
  const restore = (file: string, key = passphrase, data = found.data): ChildProcess =>
    run(
      'start.sh',
      ['--embedded', '--detach', '--data', data, '--offset', String(offset)].concat(
        '--restore',
        file,
        '--passphrase-file',
        key,
      ),
    );
  const wrong = join(work, 'wrong');
  writeFileSync(wrong, 'eight gulls');
  await refused(restore(archive, wrong), 'The passphrase does not open this archive.');
  await refused(restore(join(work, 'none')), 'not found');
  await refused(restore(archive, passphrase, work), 'is not empty');
  expect(existsSync(found.data)).toBe(false);

  const building = `${found.data}.restoring`;
  const killed = restore(archive);
  await eventually('it loads', () => existsSync(join(building, 'pgdata')), 60_000);
  kill(killed, 'SIGKILL');
  await once(killed, 'exit');
  expect([existsSync(found.data), existsSync(building)]).toEqual([false, true]);

  const { code, output } = await outcomeOf(restore(archive));
  expect([code, output]).toEqual([0, expect.stringContaining('cot 400 days')]);
  expect(existsSync(building)).toBe(false);
  found = { ...found, offset };
  const kept = await query<{ id: string; sum: string }>(found.file().database, ROWS);
  const old = kept.filter(({ id }) => before.has(id));
  expect(old.length).toBeGreaterThan(2_000);
  expect(old.filter(({ id, sum }) => before.get(id) !== sum)).toEqual([]);
  const last = Math.max(...old.map(({ id }) => Number(id)));
  expect([...before.keys()].filter((id) => Number(id) <= last).length).toBe(old.length);
});

it('lets in who was in, and nobody who was out', async () => {
  core = coreOf(found);
  const serials = await listedSerials(core);
  for (const [index, device] of devices.entries()) {
    const { status } = await asDevice(core, device, '/Marti/api/version');
    const verdict = await verdictOf(core, device.certificateFile);
    expect([index, status, verdict]).toEqual(isRevoked(index) ? [index, 0, 'certificate revoked'] : [index, 200, 'OK']);
    expect(serials.includes(await serialOf(device.certificateFile))).toBe(isRevoked(index));
  }
  const open = async (index: number, callsign: string): Promise<StreamDevice> =>
    streamDevice(core, devices[index] as Device, callsign);
  const [ada, bob] = [await open(0, 'ADA'), await open(1, 'BOB')];
  await bob.isUpToDate();
  ada.report(47.25);
  await bob.hears('where Ada is', (event) => event.uid() === ada.uid, 10_000);
  ada.leave();
  bob.leave();
  await enroll(core, work, 'person5', PASSWORD, 'new-phone');
});

it('keeps the console, the audit log and what jobs have done', async () => {
  const { api, webadmin, state_database } = found.file();
  const signedIn = await fetch(`${api}/api/users`, {
    headers: { authorization: basic(webadmin.username, webadmin.password) },
  });
  expect(signedIn.status).toBe(200);
  const verified = await outcomeOf(run('audit.sh', ['verify', '--data', found.data]));
  expect([verified.code, verified.output]).toEqual([0, expect.anything()]);
  expect(
    await query(
      state_database,
      "SELECT FROM alert WHERE state = 'pending' AND raised_at < (SELECT max(started_at) FROM stack_start)",
    ),
  ).toEqual([]);
  const starts = await query<{ n: number }>(state_database, 'SELECT count(*)::int AS n FROM stack_start');
  expect(starts).toEqual([{ n: 2 }]);
});

async function refused(child: ChildProcess, why: string): Promise<void> {
  const { code, output } = await outcomeOf(child);
  expect([code, output]).toEqual([1, expect.stringContaining(why)]);
  expect(output).toContain('Remedy: ');
}
