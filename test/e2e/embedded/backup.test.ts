// A stack with a week of traffic is backed up while people use it, its directory is lost, and it
// comes back elsewhere: in another directory, on other ports, from the archive and the passphrase
// alone. Then single parts of the archive come back into it.

import { type ChildProcess, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
  asRoot,
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
import { type StreamDevice, letIn } from './stream-device.ts';

/** Mounts need the right to mount, which root in a container may lack. */
const mayMount = asRoot && spawnSync('unshare', ['-m', 'true']).status === 0;
const PASSWORD = 'Ford-4711-crossing';
const PEOPLE = Array.from({ length: 10 }, (_, index) => `person${index}`);
/** Of devices: those of the connection check get numbers that were given before. */
const ROWS = `
  SELECT 'c' || id AS id, md5(ROW(uid, cot_type, detail, servertime, event_pt, get_bit(groups, 0), length(groups))::text) AS sum
  FROM cot_router WHERE uid ~ '^(week|ANDROID)-'
  UNION ALL SELECT 'm' || id, md5(ROW(uid, chat_content, servertime)::text) FROM cot_router_chat`;
/** A week of ten devices, an event each quarter of an hour. */
const EVENTS = 10 * 7 * 24 * 4;
const CHATS = 500;

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
  await asMissionOwner('?creatorUid=ANDROID-person1', 'PUT');
  await asMissionOwner('/contents?creatorUid=ANDROID-person1', 'PUT', { uids: ['week-person1'] });
  await query(
    lost.file().database,
    `INSERT INTO cot_router (uid, cot_type, detail, servertime, groups)
    SELECT 'week-person' || n % 10, 'a-f-G', '<detail n="' || n || '"/>', now() - n * interval '30 s', vector
    FROM generate_series(1, ${EVENTS}) n, (SELECT ('1' || repeat('0', 32767))::bit varying(32768) AS vector) v`,
  );
  await query(
    lost.file().database,
    `INSERT INTO cot_router_chat (uid, cot_type, chat_content, servertime)
    SELECT 'chat-' || n, 'b-t-f', 'At the bridge at ' || n, now() - n * interval '20 minutes' FROM generate_series(1, ${CHATS}) n`,
  );
});

afterAll(async () => {
  if (found !== undefined) await stop(found.data);
});

/** The answer of the mission, as the device of its owner. */
async function asMissionOwner(path: string, method = 'GET', body?: object): Promise<{ status: number; body: string }> {
  const more = body === undefined ? [] : ['-H', 'content-type: application/json', '-d', JSON.stringify(body)];
  return asDevice(core, devices[1] as Device, `/Marti/api/missions/Flood${path}`, ['-X', method, ...more]);
}

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
  const ada = await letIn(core, devices[0] as Device, 'ADA');
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

  if (mayMount) await onFullDisk((data) => restore(archive, passphrase, data));

  const { code, output } = await outcomeOf(restore(archive));
  expect([code, output]).toEqual([0, expect.stringContaining('cot 400 days')]);
  expect(existsSync(building)).toBe(false);
  found = { ...found, offset };
  const kept = await query<{ id: string; sum: string }>(found.file().database, ROWS);
  const old = kept.filter(({ id }) => before.has(id));
  expect(old.length).toBeGreaterThan(EVENTS + CHATS);
  expect(old.filter(({ id, sum }) => before.get(id) !== sum)).toEqual([]);
  // Events that came after the moment of the backup have higher numbers.
  const numberOf = (id: string): number => Number(id.slice(1));
  const last = Math.max(...old.map(({ id }) => numberOf(id)));
  expect([...before.keys()].filter((id) => numberOf(id) <= last).length).toBe(old.length);
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
    letIn(core, devices[index] as Device, callsign);
  const [ada, bob] = [await open(0, 'ADA'), await open(1, 'BOB')];
  await bob.isUpToDate();
  ada.report(47.25);
  await bob.hears('where Ada is', (event) => event.uid() === ada.uid, 10_000);
  ada.leave();
  bob.leave();
  await enroll(core, work, 'person5', PASSWORD, 'new-phone');
});

it('records in the audit log which archive it was restored from', async () => {
  const records = await query<{ target: string; result: string; detail: string }>(
    found.file().state_database,
    "SELECT target, result, detail FROM audit_record WHERE action = 'backup.restore' AND phase = 'outcome'",
  );
  expect(records).toMatchObject([{ target: archives()[0], result: 'ok' }]);
  expect(JSON.parse(records[0]?.detail ?? '')).toMatchObject({ release: '0.1.0', history: true });
  expect(existsSync(join(found.data, 'management/restored.json'))).toBe(false);
});

it('gets single parts of an archive back while it runs, after saying what would change', async () => {
  const archive = join(backups, archives()[0] ?? '');
  const part = async (verb: string, ...args: string[]): Promise<{ code: number | null; output: string }> =>
    outcomeOf(run('backup.sh', [verb, archive, '--passphrase-file', passphrase, '--data', found.data, ...args]));
  const { database, identity_database, state_database } = found.file() as ReturnType<TestStack['file']> & {
    identity_database: string;
  };
  await query(identity_database, "DELETE FROM account WHERE username = 'person4'");
  await query(
    identity_database,
    "UPDATE account SET is_active = false, password_hash = NULL WHERE username = 'person2'",
  );
  expect((await asMissionOwner('?deepDelete=true', 'DELETE')).status).toBe(200);
  expect((await asMissionOwner('')).status).toBe(410);
  await query(database, "DELETE FROM cot_router WHERE uid = 'week-person1'");
  const env = join(found.data, '.env');
  writeFileSync(env, '# ours\nCOT_RETENTION_DAYS=500\nUPDATES_URL=off\n');

  const shown = await part('show');
  expect([shown.code, shown.output]).toEqual([
    0,
    expect.stringMatching(/1 setting: COT_RETENTION_DAYS\n[^]*10 accounts:[^]*Flood +1 map item, 0 files/),
  ]);
  const tried = await part('restore', 'settings');
  expect([tried.code, tried.output]).toEqual([0, expect.stringContaining('Nothing was changed')]);
  expect(tried.output).toMatch(/replaced +COT_RETENTION_DAYS +500 becomes 400/);
  expect(readFileSync(env, 'utf8')).toContain('=500');
  const set = await part('restore', 'settings', '--yes');
  expect([set.code, set.output]).toEqual([0, expect.stringContaining('A restart applies them')]);
  expect(readFileSync(env, 'utf8')).toBe('# ours\nCOT_RETENTION_DAYS=400\nUPDATES_URL=off\n');
  expect(readdirSync(found.data).filter((name) => name.startsWith('.env.before-restore-'))).toHaveLength(1);

  const people = await part('restore', 'accounts', 'person2', 'person4', '--overwrite', '--yes');
  expect([people.code, people.output]).toEqual([
    0,
    expect.stringMatching(/replaced +person2 [^]*stays deactivated[^]*new +person4 +active/),
  ]);
  await enroll(core, work, 'person4', PASSWORD, 'after-the-loss');
  await expect(enroll(core, work, 'person2', PASSWORD, 'still-out')).rejects.toThrow('401');
  const mission = await part('restore', 'missions', '--yes');
  expect([mission.code, mission.output]).toEqual([
    0,
    expect.stringMatching(/new +Flood +1 map item, 0 files, 1 event/),
  ]);
  await eventually('the mission is back', async () => (await asMissionOwner('')).body.includes('week-person1'), 20_000);
  expect(await query(database, "SELECT count(*)::int AS n FROM cot_router WHERE uid = 'week-person1'")).toEqual([
    { n: 1 },
  ]);

  const wrong = await part('restore', 'missions', 'Fire');
  expect([wrong.code, wrong.output]).toEqual([1, expect.stringContaining('The archive has no mission Fire')]);
  const records = await query<{ what: string }>(
    state_database,
    "SELECT action || ' ' || target || ' ' || result AS what FROM audit_record WHERE action LIKE 'backup.restore-%' AND phase = 'outcome' ORDER BY seq",
  );
  expect(records.map(({ what }) => what)).toEqual([
    'backup.restore-settings COT_RETENTION_DAYS ok',
    'backup.restore-account person2 ok',
    'backup.restore-account person4 ok',
    'backup.restore-mission Flood ok',
  ]);
  expect(existsSync(join(found.data, 'proof'))).toBe(false);
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

/** The disk has room when the restore begins, and is full when it loads. */
async function onFullDisk(restore: (data: string) => ChildProcess): Promise<void> {
  const disk = join(work, 'disk');
  const data = join(disk, 'data');
  mkdirSync(disk);
  expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=500m', 'tmpfs', disk]).status).toBe(0);
  try {
    const restoring = restore(data);
    const outcome = outcomeOf(restoring);
    await eventually('it loads', () => existsSync(join(`${data}.restoring`, 'pgdata')), 60_000);
    spawnSync('sh', ['-c', 'cat /dev/zero >"$1/filler"', 'sh', disk]);
    const { code, output } = await outcome;
    expect([code, output]).toEqual([1, expect.stringMatching(/No space left on device|is full[^]*Remedy: free some/)]);
    expect(readdirSync(disk)).toEqual(['filler']);
  } finally {
    spawnSync('umount', ['--lazy', disk]);
  }
}

async function refused(child: ChildProcess, why: string): Promise<void> {
  const { code, output } = await outcomeOf(child);
  expect([code, output]).toEqual([1, expect.stringContaining(why)]);
  expect(output).toContain('Remedy: ');
}
