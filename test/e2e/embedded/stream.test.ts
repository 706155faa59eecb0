// The sentence that the stream has to keep, with real devices on a running stack: who sees whom,
// who falls off, what is stored.

import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type CoT from '@tak-ps/node-cot';
import { beforeAll, expect, it } from 'vitest';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { Secret } from '@holdfast/kit/secret';
import { httpIdentity } from '../../../shared/identity/authentik/http.ts';
import { exclusiveByDatabase } from '../../../shared/identity/exclusive.ts';
import type { Identity } from '../../../shared/identity/port.ts';
import {
  apiDevice,
  asDevice,
  coreOf,
  type CorePlace,
  curl,
  type Device,
  enroll,
  workDirectory,
} from './core-client.ts';
import { eventually, newStack, query, secretsOf, type TestStack } from './embedded.ts';
import { commandsOf } from './page-commands.ts';
import { RUN, stands } from './running-stack.ts';
import { letIn, position, type StreamDevice, streamDevice } from './stream-device.ts';

const MARKER = `marker-1${RUN}`;
let stack: TestStack;
let core: CorePlace;
let work: string;
let identity: Identity;

beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start()).code).toBe(0);
  core = coreOf(stack);
  work = workDirectory(stack);
  const state = new Secret(stack.file().state_database);
  identity = httpIdentity({
    url: `http://127.0.0.1:${9000 + stack.offset}`,
    token: new Secret(secretsOf(stack)['IDENTITY_TOKEN'] ?? ''),
    fetch,
    exclusive: exclusiveByDatabase(keptDatabase(state, { name: 'test', called: 'our database', variable: 'its URL' })),
  });
});

/** Somebody in these groups, enrolled with an app password. */
async function enrolled(person: string, ...groups: string[]): Promise<Device> {
  const username = `${person}${RUN}`;
  const { id: accountId } = await identity.accounts.create({ username, name: username });
  for (const name of groups) {
    const group =
      (await identity.groups.named(`core_${name}${RUN}`)) ?? (await identity.groups.create(`core_${name}${RUN}`));
    await identity.groups.addMember(group.id, accountId);
  }
  const identifier = `enroll-${username}`;
  const description = 'for its first certificate';
  const { key } = await identity.appPasswords.create({ identifier, accountId, description, expiresAt: null });
  return enroll(core, work, username, key);
}

const open = (who: Device, callsign: string): Promise<StreamDevice> => letIn(core, who, `${callsign}${RUN}`);

const stored = async (condition: string): Promise<number> => {
  const [row] = await query<{ n: number }>(
    stack.file().database,
    `SELECT count(*)::int AS n FROM cot_router WHERE ${condition}`,
  );
  return row?.n ?? -1;
};

const isFrom =
  (uid: string, type = 'a-f-G-U-C') =>
  (event: CoT): boolean =>
    event.uid() === uid && event.type() === type;
const messagesOf = (event: CoT): string => {
  const { remarks } = event.raw.event.detail ?? {};
  return typeof remarks === 'object' && '_text' in remarks ? (remarks._text ?? '') : '';
};

it('two people of a group see each other, late comers too, and nobody else does', async () => {
  const [ada, bob, cy] = [await enrolled('ada', 'Blue'), await enrolled('bob', 'Blue'), await enrolled('cy', 'Red')];
  const adas = await open(ada, 'ADA');
  const cys = await open(cy, 'CY');
  adas.report(47.125);
  cys.report();
  await eventually("Ada's position is stored", async () => (await stored(`uid = '${adas.uid}'`)) === 1);

  const bobs = await open(bob, 'BOB');
  expect((await bobs.hears('where Ada is', isFrom(adas.uid))).position()).toEqual([8.25, 47.125]);
  bobs.report(47.25);
  await adas.hears('where Bob is', isFrom(bobs.uid));
  adas.chat({ uid: bobs.uid, callsign: `BOB${RUN}` }, 'Come to the ford & wait <there>.');
  const chat = await bobs.hears('what Ada says', (event) => event.type() === 'b-t-f');
  expect(messagesOf(chat)).toBe('Come to the ford & wait <there>.');
  bobs.chat({ uid: adas.uid, callsign: `ADA${RUN}` }, 'On my way.');
  const answer = await adas.hears('what Bob says', (event) => event.type() === 'b-t-f');
  expect(messagesOf(answer)).toBe('On my way.');
  await cys.isUpToDate();
  expect(cys.heard.map((event) => event.type())).toEqual(['t-x-takp-v', 't-x-c-t-r']);
  expect(cys.isOpen).toBe(true);
  expect(adas.heard.some(isFrom(adas.uid))).toBe(false);

  await eventually('the chat is stored', async () => (await chats()).length === 2);
  expect(await chats()).toEqual([
    { sender: `ADA${RUN}`, dest: bobs.uid, content: 'Come to the ford & wait <there>.', room: `BOB${RUN}` },
    { sender: `BOB${RUN}`, dest: adas.uid, content: 'On my way.', room: `ADA${RUN}` },
  ]);
  const contacts = await asDevice(core, bob, '/Marti/api/contacts/all');
  const shown = JSON.parse(contacts.body) as { callsign: string; notes: string; team: string; takv: string }[];
  expect(shown.map(({ callsign, notes, team, takv }) => [callsign, notes, team, takv])).toEqual([
    [`ADA${RUN}`, `ada${RUN}`, 'Cyan', 'ATAK-CIV:5.3.0'],
    [`BOB${RUN}`, `bob${RUN}`, 'Cyan', 'ATAK-CIV:5.3.0'],
  ]);

  await delay(50);
  const admin = await apiDevice(core, work);
  expect((await asDevice(core, admin, `/Marti/api/certadmin/cert/${ada.hash}`, ['-X', 'DELETE'])).status).toBe(200);
  await eventually('Ada falls off', () => !adas.isOpen);
  const gone = await bobs.hears('that Ada has gone', (event) => event.type() === 't-x-d-d');
  expect(gone.raw.event.detail?.link).toMatchObject({ _attributes: { uid: adas.uid, relation: 'p-p' } });
  const again = await streamDevice(core, ada, `ADA${RUN}`);
  await eventually('Ada cannot return', () => !again.isOpen);
  expect(again.heard).toEqual([]);

  const endpoints = async (): Promise<string[][]> => {
    const { body } = await asDevice(core, bob, '/Marti/api/clientEndPoints');
    const { data } = JSON.parse(body) as { data: { callsign: string; lastStatus: string }[] };
    return data.map(({ callsign, lastStatus }) => [callsign, lastStatus]);
  };
  await expect.poll(endpoints).toEqual([
    [`ADA${RUN}`, 'Disconnected'],
    [`BOB${RUN}`, 'Connected'],
  ]);
  for (const each of [bobs, cys]) each.leave();
});

const chats = () =>
  query(
    stack.file().database,
    `SELECT sender_callsign AS sender, dest_uid AS dest, chat_content AS content, chat_room AS room FROM cot_router_chat
     WHERE sender_callsign IN ('ADA${RUN}', 'BOB${RUN}') ORDER BY id`,
  );

it('two people see each other come and go by the commands of docs/stream.md', async () => {
  const directory = join(work, 'by-the-page');
  mkdirSync(directory);
  for (const [name, device] of [
    ['ada', await enrolled('pam', 'Gold')],
    ['bob', await enrolled('quinn', 'Gold')],
  ] as const) {
    renameSync(device.certificateFile, join(directory, `${name}.pem`));
    renameSync(device.keyFile, join(directory, `${name}.key`));
  }
  const commands = commandsOf('stream.md', [
    ['data/core', core.directory],
    ['127.0.0.1:8089', new URL(core.streaming).host],
  ]);
  const { stdout } = await promisify(execFile)('bash', ['-c', commands], { cwd: directory });
  expect(stdout.match(/type="[tab]-[^"]+"|callsign="ada"/g)).toEqual([
    'type="t-x-takp-v"',
    'type="a-f-G-U-C"',
    'callsign="ada"',
    'type="t-x-d-d"',
    'type="a-f-G-U-C"',
  ]);
});

it('who switches a group off hears nothing of it from then on, and where the others are when it is on again', async () => {
  const [kim, lou] = [await enrolled('kim', 'Blue'), await enrolled('lou', 'Blue')];
  const [kims, lous] = [await open(kim, 'KIM'), await open(lou, 'LOU')];
  kims.report();
  await lous.hears('where Kim is', isFrom(kims.uid));
  lous.report(47.25);
  await kims.hears('where Lou is', isFrom(lous.uid));
  const switchBlue = async (active: boolean): Promise<void> => {
    const groups = ['IN', 'OUT'].map((direction) => ({ name: `Blue${RUN}`, direction, active }));
    const body = ['-X', 'PUT', '-H', 'content-type: application/json', '-d', JSON.stringify(groups)];
    expect((await asDevice(core, kim, `/Marti/api/groups/active?clientUid=${kims.uid}`, body)).status).toBe(200);
  };

  await switchBlue(false);
  await kims.isUpToDate();
  kims.heard.splice(0);
  lous.report(47.75);
  await lous.isUpToDate();
  await kims.isUpToDate();
  expect(kims.heard.filter(isFrom(lous.uid))).toEqual([]);

  await switchBlue(true);
  const seen = await kims.hears('where Lou is by now', isFrom(lous.uid));
  expect(seen.position()).toEqual([8.25, 47.75]);
  for (const each of [kims, lous]) each.leave();
});

it('a mission package that one uploads is fetched by the other, and is not there for strangers', async () => {
  const [dee, eve, fay] = [await enrolled('dee', 'Blue'), await enrolled('eve', 'Blue'), await enrolled('fay', 'Red')];
  const file = join(work, 'package.zip');
  writeFileSync(file, randomBytes(300_000));
  const hash = createHash('sha256').update(readFileSync(file)).digest('hex');
  const path = `/Marti/sync/missionupload?hash=${hash}&filename=route.zip&creatorUid=ANDROID-DEE&keyword=missionpackage`;
  const { status, body: url } = await asDevice(core, dee, path, ['-F', `assetfile=@${file};filename=route.zip`]);
  expect([status, new URL(url).search]).toEqual([200, `?hash=${hash}`]);

  const fetched = join(work, 'fetched.zip');
  const own = (who: Device): string[] => ['--cert', who.certificateFile, '--key', who.keyFile];
  expect((await asDevice(core, eve, `/Marti/sync/missionquery?hash=${hash}`)).body).toBe(url);
  const { pathname, search } = new URL(url);
  await curl(core, [...own(eve), `${core.api}${pathname}${search}`, '-o', fetched, '--no-include']);
  expect(readFileSync(fetched).equals(readFileSync(file))).toBe(true);
  expect((await asDevice(core, fay, `/Marti/sync/missionquery?hash=${hash}`)).status).toBe(404);
  expect((await asDevice(core, fay, `/Marti/sync/content?hash=${hash}`)).status).toBe(404);
});

it('a marker that one sends to a mission reaches whoever is subscribed, who is told, and nobody else', async () => {
  const [hal, ida, joe] = [await enrolled('hal', 'Blue'), await enrolled('ida', 'Blue'), await enrolled('joe', 'Blue')];
  const [hals, idas, joes] = [await open(hal, 'HAL'), await open(ida, 'IDA'), await open(joe, 'JOE')];
  for (const each of [hals, idas, joes]) each.report();
  await joes.hears('where Ida is', isFrom(idas.uid));
  const mission = `/Marti/api/missions/Search%20north${RUN}`;
  const created = await asDevice(core, hal, `${mission}?creatorUid=${hals.uid}&group=Blue${RUN}`, ['-X', 'PUT']);
  expect(created.status).toBe(201);
  await joes.hears('that there is a mission', (event) => event.type() === 't-x-m-n');
  const subscribed = await asDevice(core, ida, `${mission}/subscription?uid=${idas.uid}`, ['-X', 'PUT']);
  expect(subscribed.status).toBe(201);

  const marker = position(MARKER, 'Tent', 47.75);
  marker.addDest({ mission: `Search north${RUN}` });
  hals.send(marker);
  await idas.hears('the marker', isFrom(MARKER));
  await idas.hears('that the mission has changed', (event) => event.type() === 't-x-m-c');
  const { body } = await asDevice(core, ida, mission);
  const [{ uids }] = (JSON.parse(body) as { data: [{ uids: { data: string }[] }] }).data;
  expect(uids.map(({ data }) => data)).toEqual([MARKER]);
  expect(joes.heard.some((event) => [MARKER].includes(event.uid()) || event.type() === 't-x-m-c')).toBe(false);
  for (const each of [hals, idas, joes]) each.leave();
});

it.skipIf(stands)(
  'neither a database nor a core that is killed in the middle of the traffic loses or doubles what was taken in',
  async () => {
    const gus = await enrolled('gus', 'Green');
    const device = await open(gus, 'GUS');
    let sent = 0;
    const report = (): void => device.send(position(`gus-${sent++}`, 'GUS', 47));
    const database = stack.pid('database');
    for (let round = 0; round < 40; round++) {
      for (let each = 0; each < 10; each++) report();
      if (round === 10) process.kill(database, 'SIGKILL');
      await delay(20);
    }
    const rows = "uid LIKE 'gus-%'";
    await eventually('everything is stored', async () => (await stored(rows).catch(() => -1)) === sent, 30_000);
    expect(await distinct()).toBe(sent);

    const taken = sent;
    for (let each = 0; each < 40; each++) {
      report();
      if (each === 20) process.kill(stack.pid('core'), 'SIGKILL');
      await delay(5);
    }
    await eventually('the connection has ended', () => !device.isOpen);
    const again = await letIn(core, gus, 'AGAIN');
    const [from, until] = [sent, (sent += 5)];
    for (let n = from; n < until; n++) again.send(position(`gus-${n}`, 'GUS', 47));
    const numbered = (first: number, end: number): string =>
      `uid LIKE 'gus-%' AND substr(uid, 5)::int >= ${first} AND substr(uid, 5)::int < ${end}`;
    await eventually('what came after is stored', async () => (await stored(numbered(from, until))) === 5);
    expect(await stored(numbered(0, taken))).toBe(taken);
    expect(await distinct()).toBe(await stored(rows));
    again.leave();
  },
);

async function distinct(): Promise<number | undefined> {
  const [row] = await query<{ n: number }>(
    stack.file().database,
    "SELECT count(DISTINCT uid)::int AS n FROM cot_router WHERE uid LIKE 'gus-%'",
  );
  return row?.n;
}
