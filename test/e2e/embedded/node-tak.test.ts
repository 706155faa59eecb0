// Drives the library of CloudTAK over its whole interface against a core with TLS, and compares
// what it calls with the table of docs/clients.md.

import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import TAK, { APIAuthCertificate, APIAuthPassword, TAKAPI } from '@tak-ps/node-tak';
import { MissionInviteType } from '@tak-ps/node-tak/lib/api/mission-invite';
import { MissionLayerType } from '@tak-ps/node-tak/lib/api/mission-layer';
import { MissionSubscriberRole } from '@tak-ps/node-tak/lib/api/mission';
import { strToU8, zipSync } from 'fflate';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { CLIENT_CALLS } from '@holdfast/core/client-calls';
import { HttpCoreContents } from '../../../shared/core/contents/contents.ts';
import { type HttpCore, httpCore } from '../../../shared/core/http.ts';
import { coreContentsContract } from '../../core/core-contents-contract.ts';
import { clientSequences } from './client-sequences.ts';
import { apiDevice, enroll } from './core-client.ts';
import { coreInProcess, type CoreInProcess } from './core-in-process.ts';
import { emptyDatabase } from './empty-database.ts';

const database = emptyDatabase();
let world: CoreInProcess;
let work: string;
let asConsole: HttpCore;
let tak: TAK;
let ada: TAKAPI;
let admin: TAKAPI;
const called = new Set<string>();
const failed: string[] = [];
const PATIENT = { timeout: 20_000 };

/** A certificate and its key as texts. */
interface Keys {
  cert: string;
  key: string;
}

/** The library as that device, with every call and its status noted. */
function apiOf({ cert, key }: Keys): TAKAPI {
  const auth = new APIAuthCertificate(cert, key);
  const plain = auth.fetch.bind(auth);
  auth.fetch = async (api, url, options: { method?: string } = {}) => {
    const answer = (await plain(api, url, { method: 'GET', ...options })) as { status: number };
    const call = `${options.method ?? 'GET'} ${new URL(url).pathname}`;
    if (answer.status < 400) called.add(call);
    else failed.push(`${answer.status} ${call}`);
    return answer;
  };
  return new TAKAPI(new URL(world.place.api), auth);
}

const pem = (text: string, kind: string): string =>
  new RegExp(`-----BEGIN ${kind}-----[\\s\\S]*?-----END ${kind}-----`).exec(text)?.[0] ?? '';

beforeAll(async () => {
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
  work = mkdtempSync(join(database.data(), 'work-'));
  world = await coreInProcess(database.url(), work, () => ['core_All']);
  asConsole = httpCore({ url: world.place.api, dataDir: world.place.directory });
  const device = await enroll(world.place, work, 'ada', 'any');
  const keys = {
    cert: readFileSync(device.certificateFile, 'utf8'),
    key: readFileSync(device.keyFile, 'utf8'),
  };
  const both = readFileSync((await apiDevice(world.place, work)).keyFile, 'utf8');
  ada = apiOf(keys);
  admin = apiOf({ cert: pem(both, 'CERTIFICATE'), key: pem(both, 'PRIVATE KEY') });
  tak = await TAK.connect(new URL(world.place.streaming.replace('tls:', 'ssl:')), {
    ...keys,
    rejectUnauthorized: false,
  });
  tak.on('error', () => undefined);
  const report = `<event version="2.0" uid="ada-1" type="a-f-G-U-C" how="m-g" time="${at(0)}" start="${at(0)}" stale="${at(600_000)}"><point lat="1" lon="2" hae="3" ce="4" le="5"/><detail><contact callsign="ADA" endpoint="*:-1:stcp"/><__group name="Cyan" role="Team Member"/><takv platform="x" version="1" device="d" os="o"/></detail></event>`;
  tak.write_xml(report);
});
afterAll(async () => {
  tak?.destroy();
  await asConsole?.close();
  await world?.core.close(100);
  vi.unstubAllEnvs();
});

function at(ms: number): string {
  return new Date(Date.now() + ms).toISOString();
}

it('node-tak signs in, and reads who is there and what is set', async () => {
  const signedIn = await TAKAPI.init(new URL(world.place.enrollment), new APIAuthPassword('ada', 'any'));
  expect((signedIn.auth as APIAuthPassword).jwt).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
  called.add('POST /oauth/token');
  await expect.poll(() => ada.Contacts.list(), PATIENT).toMatchObject([{ callsign: 'ADA', uid: 'ada-1' }]);
  expect((await ada.Client.list()).data).toMatchObject([{ callsign: 'ADA' }]);
  const query = { sortBy: 'CALLSIGN', direction: 'ASCENDING', page: -1, limit: -1 };
  expect((await ada.Subscription.list(query)).data).toMatchObject([{ clientUid: 'ada-1' }]);
  const { data: groups } = await ada.Group.list({ useCache: true });
  expect(groups.map(({ name }) => name)).toContain('All');
  await ada.Group.update(groups);
  await ada.Profile.connection({ syncSecago: 0, clientUid: 'ada-1' });
  expect((await ada.Files.config()).uploadSizeLimit).toBeGreaterThan(0);
  await ada.Locate.generate({ latitude: 1, longitude: 2, name: 'Lost', remarks: 'r' });
  expect((await ada.Iconsets.list()).data).toEqual([]);
  const { Security: security } = admin;
  expect((await security.securityConfig()).data).toMatchObject({ enableEnrollment: true, keystorePass: '' });
  expect((await security.authConfig()).data).toMatchObject({ groupPrefix: 'core_', serviceAccountCredential: '' });
  expect([(await security.verifyConfig()).data, (await security.isSecure()).data]).toEqual(['true', 'true']);
  expect((await admin.Certificate.list()).data.map(({ userDn }) => userDn)).toContain('ada');
});

it('node-tak keeps files', async () => {
  const bytes = Buffer.from('hello');
  const hash = createHash('sha256').update(bytes).digest('hex');
  const file = { name: 'a.txt', contentLength: bytes.length, keywords: ['k'], creatorUid: 'ada-1' };
  expect(await ada.Files.upload(file, bytes)).toMatchObject({ Hash: hash });
  expect(JSON.stringify(await ada.Files.list())).toContain(hash);
  expect(JSON.stringify(await ada.Files.count())).toContain('1');
  expect(await textOf(await ada.Files.download(hash))).toBe('hello');
  expect(JSON.parse(await ada.Files.meta(hash))).toMatchObject({ Name: 'a.txt', Size: '5' });
  await ada.Files.delete(hash);
  const zip = Buffer.from(zipSync({ 'a.txt': strToU8('a') }));
  const packed = createHash('sha256').update(zip).digest('hex');
  await ada.Files.uploadPackage({ name: 'p.zip', creatorUid: 'ada-1', hash: packed }, zip);
  expect((await ada.Package.list({ tool: 'public' })).results).toMatchObject([{ Hash: packed }]);
  await ada.Files.adminDelete(packed);
});

it('node-tak works in missions', async () => {
  const made = await ada.Mission.create({
    name: 'Fire',
    creatorUid: 'ada-1',
    description: 'd',
    group: ['All'],
    keywords: ['k'],
  });
  const opts = { token: String(made.token) };
  const { guid } = made;
  expect(await ada.Mission.get('Fire', { changes: true, logs: true }, opts)).toMatchObject({ guid });
  expect((await ada.Mission.getGuid(guid, {}, opts)).name).toBe('Fire');
  expect((await ada.Mission.list({})).data.map(({ name }) => name)).toEqual(['Fire']);
  expect(await ada.Mission.access('Fire', opts)).toBe(true);
  expect((await ada.Mission.update('Fire', { description: 'new' }, opts)).description).toBe('new');
  await ada.Mission.subscribe('Fire', { uid: 'ada-1' }, opts);
  expect(await ada.Mission.subscription('Fire', { uid: 'ada-1' }, opts)).toMatchObject({ clientUid: 'ada-1' });
  expect((await ada.Mission.role('Fire', opts)).type).toBe('MISSION_OWNER');
  expect((await ada.Mission.subscriptionRoles('Fire', opts)).data).toHaveLength(1);
  await ada.Mission.subscriptions('Fire', opts);
  // The library's type has an object there, and sends what it is as a text.
  const role = MissionSubscriberRole.MISSION_OWNER as never;
  await ada.Mission.setRole('Fire', { clientUid: 'ada-1', username: 'ada', role }, opts);
  await ada.Mission.contacts('Fire', opts);
  await ada.Mission.attachContents('Fire', { uids: ['ada-1', 'gone'] }, opts);
  await ada.Mission.detachContents('Fire', { uid: 'gone' }, opts);
  const event = `<event version="2.0" uid="pack-1" type="b-m-p-s-m" how="h-g-i-g-o" time="${at(0)}" start="${at(0)}" stale="${at(600_000)}"><point lat="1" lon="2" hae="3" ce="4" le="5"/><detail><contact callsign="Packed"/></detail></event>`;
  await ada.Mission.upload('Fire', 'ada-1', Readable.from(Buffer.from(zipSync({ 'p.cot': strToU8(event) }))), opts);
  const features = await ada.Mission.latestFeats('Fire', opts);
  expect(JSON.stringify(features)).toContain('Packed');
  expect((await ada.Mission.changes('Fire', { squashed: false }, opts)).data.length).toBeGreaterThan(3);
  expect((await textOf(await ada.Mission.getArchive('Fire', opts))).startsWith('PK')).toBe(true);

  const layer = await ada.MissionLayer.create(
    'Fire',
    { name: 'L', type: MissionLayerType.UID, creatorUid: 'ada-1' },
    opts,
  );
  await ada.MissionLayer.rename('Fire', layer.data.uid, { name: 'M', creatorUid: 'ada-1' }, opts);
  expect((await ada.MissionLayer.list('Fire', opts)).data).toMatchObject([{ name: 'M', uids: [] }]);
  expect([...(await ada.MissionLayer.listAsPathMap('Fire', opts)).keys()]).toEqual(['/M/']);
  expect(ada.MissionLayer.isEmpty((await ada.MissionLayer.get('Fire', layer.data.uid, opts)).data)).toBe(true);
  await ada.MissionLayer.delete('Fire', { uid: [layer.data.uid], creatorUid: 'ada-1' }, opts);

  const entry = { dtg: at(0), content: 'seen', creatorUid: 'ada-1', contentHashes: [], keywords: ['k'] };
  const { data: log } = await ada.MissionLog.create('Fire', entry, opts);
  expect((await ada.MissionLog.update('Fire', { ...entry, id: log.id, content: 'heard' }, opts)).data.content).toBe(
    'heard',
  );
  await ada.MissionLog.get(log.id);
  await ada.MissionLog.delete(log.id, opts);

  await ada.MissionInvite.invite('Fire', MissionInviteType.USERNAME, 'ada', { creatorUid: 'ada-1' }, opts);
  expect((await ada.MissionInvite.list('ada-1')).data).toMatchObject([{ missionName: 'Fire' }]);
  expect((await ada.MissionInvite.get('Fire', opts)).data).toMatchObject([{ invitee: 'ada' }]);
  await ada.MissionInvite.uninvite('Fire', MissionInviteType.USERNAME, 'ada', { creatorUid: 'ada-1' }, opts);

  await ada.Mission.unsubscribe('Fire', { uid: 'ada-1' }, opts);
  await ada.Mission.delete('Fire', { creatorUid: 'ada-1' }, opts);
});

it('node-tak reads history, and keeps video feeds, injectors and the repeater', async () => {
  await expect.poll(() => ada.Query.single('ada-1').catch(() => ''), PATIENT).toContain('callsign="ADA"');
  expect(await ada.Query.historyFeats('ada-1', { start: at(-60_000), end: at(60_000) })).toHaveLength(1);
  const range = { startTime: at(-60_000), endTime: at(60_000), groups: ['All'], format: 'kml' };
  expect(await textOf(await ada.Export.export(range))).toContain('<kml');

  const feed = { active: true, alias: 'F', url: 'rtsp://camera.example.org/live' };
  const camera = await ada.Video.create({ active: true, alias: 'Cam', groups: ['All'], feeds: [feed] });
  expect((await ada.Video.list()).videoConnections).toMatchObject([{ alias: 'Cam' }]);
  expect((await ada.Video.update({ ...camera, alias: 'New' })).alias).toBe('New');
  await ada.Video.delete(camera.uuid);

  const injector = { uid: `u-${randomUUID()}`, toInject: 'color argb="-1"' };
  await admin.Injectors.create(injector);
  expect((await admin.Injectors.list()).data).toEqual([injector]);
  expect((await admin.Injectors.get(injector.uid)).data).toEqual([injector]);
  await admin.Injectors.delete(injector);
  expect((await admin.Repeater.list()).data).toEqual([]);
  expect(await admin.Repeater.period()).toMatchObject({ data: 10_000 });
  await admin.Repeater.delete('none');
});

it('CloudTAK is set up with the certificate of an administrator and a password, and people sign in to it', async () => {
  // In the order of its server settings, its connections and its sign-in.
  expect((await admin.Files.config()).uploadSizeLimit).toBeGreaterThan(0);
  const signedIn = await TAKAPI.init(new URL(world.place.enrollment), new APIAuthPassword('ada', 'any'));
  const { cert, key, ca } = await signedIn.Credentials.generate();
  for (const call of ['GET /Marti/api/tls/config', 'POST /Marti/api/tls/signClient/v2']) called.add(call);
  expect(ca.length).toBeGreaterThan(0);
  const connection = await TAK.connect(new URL(world.place.streaming.replace('tls:', 'ssl:')), {
    cert,
    key,
    rejectUnauthorized: false,
  });
  const failures: unknown[] = [];
  connection.on('error', (error) => failures.push(error));
  await new Promise((resolve) => connection.once('secureConnect', resolve));
  const own = apiOf({ cert, key });
  const { data: channels } = await own.Group.list({ useCache: true });
  expect(channels).toEqual(expect.arrayContaining([expect.objectContaining({ name: 'All', direction: 'OUT' })]));
  expect((await admin.Group.list({ useCache: true })).data.map(({ name }) => name)).toContain('All');
  expect(signedIn.OAuth.parse((signedIn.auth as APIAuthPassword).jwt).sub).toBe('ada');
  expect((await own.Contacts.list()).map(({ uid }) => uid)).toContain('ada-1');
  connection.destroy();
  expect(failures).toEqual([]);
});

clientSequences(() => ({ place: world.place, work }));

// On the same core: what the console asks of it.
coreContentsContract('a real core', () => ({ contents: new HttpCoreContents(asConsole.port), group: 'All' }));

it('makes every call that the table says it does, and none is refused', () => {
  expect(failed.filter((each) => !each.startsWith('404 GET /Marti/api/cot/xml'))).toEqual([]);
  const asPath = (call: string): RegExp => {
    const path = call.replaceAll('.', String.raw`\.`).replaceAll(/:\w+/g, '[^/]+');
    return new RegExp(`^${path.replace('/missions/[^/]+', '/missions/(?:guid/)?[^/]+')}$`);
  };
  const driven = CLIENT_CALLS.filter(({ checked }) => checked === 'node-tak').map(({ call }) => call);
  const missing = driven.filter((call) => ![...called].some((each) => asPath(call).test(each)));
  expect(missing).toEqual([]);
  const known = CLIENT_CALLS.map(({ call }) => asPath(call));
  expect([...called].filter((each) => !known.some((pattern) => pattern.test(each)))).toEqual([]);
});

async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks).toString('latin1');
}
