// Fills a stack with made-up people, groups, devices and certificates, so that no page is empty.

import { DAY_MS } from '@holdfast/kit/time';
import { asDevice, type CorePlace, type Device, enroll } from '../embedded/core-client.ts';
import { letIn, type StreamDevice } from '../embedded/stream-device.ts';

export interface Furnishable {
  api: string;
  webadmin: { username: string; password: string };
  core: CorePlace;
  /** Where keys and certificates of devices are kept. */
  work: string;
}

export interface Furniture {
  /** Connected, each under its callsign. */
  devices: StreamDevice[];
  /** May read everything. */
  viewer: { username: string; password: string };
  /** May nothing but what is her own. */
  plain: { username: string; password: string };
  /** Ids by username. */
  ids: ReadonlyMap<string, number>;
}

const GROUPS = ['Blue', 'Red', 'Search North', 'Search South', 'Medical'];

interface Made {
  username: string;
  name: string;
  groups: readonly string[];
  days?: number;
}

const PEOPLE: readonly Made[] = [
  { username: 'ada.lindt', name: 'Ada Lindt', groups: ['Blue', 'Search North'] },
  { username: 'ben.okafor', name: 'Ben Okafor', groups: ['Blue', 'Medical'] },
  { username: 'carla.ruiz', name: 'Carla Ruiz', groups: ['Red'], days: 2 },
  { username: 'dmitri.hale', name: 'Dmitri Hale', groups: ['Search South'], days: 5 },
  { username: 'elin.berg', name: 'Elin Berg', groups: ['Blue', 'Search North'] },
  { username: 'farid.nasser', name: 'Farid Nasser', groups: ['Medical'] },
  { username: 'greta.maurer', name: 'Greta Maurer', groups: ['Search North'], days: 1 },
  { username: 'hugo.stein', name: 'Hugo Stein', groups: ['Red', 'Search South'] },
  { username: 'ines.costa', name: 'Inês Costa', groups: ['Blue'] },
  { username: 'jonas.weber', name: 'Jonas Weber', groups: [] },
  { username: 'vera.holm', name: 'Vera Holm', groups: ['Blue'] },
  { username: 'nora.keller', name: 'Nora Keller', groups: ['Blue', 'Search North'] },
];
const ON_STREAM = ['ada.lindt', 'ben.okafor', 'elin.berg', 'hugo.stein'];
const CALLSIGNS = ['Lantern 1', 'Medic 2', 'Ridge 4', 'Harbour'];
const PASSWORD = 'a password for the tests 7';

type Ask = (method: string, path: string, body?: unknown) => Promise<unknown>;

/** The JSON of a success, as the web-admin. */
function asking({ api, webadmin }: Furnishable): Ask {
  const authorization = `Basic ${Buffer.from(`${webadmin.username}:${webadmin.password}`).toString('base64')}`;
  return async (method, path, body) => {
    const answer = await fetch(`${api}${path}`, {
      method,
      headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  };
}

export async function furnish(place: Furnishable): Promise<Furniture> {
  const ask = asking(place);
  for (const name of GROUPS) await ask('POST', '/api/groups', { name });
  const ids = new Map<string, number>();
  for (const { days, ...user } of PEOPLE) {
    const expiry = days === undefined ? {} : { expires_at: new Date(Date.now() + days * DAY_MS).toISOString() };
    const { id } = (await ask('POST', '/api/users', { ...user, ...expiry })) as { id: number };
    ids.set(user.username, id);
  }
  const idOf = (username: string): number => ids.get(username) ?? 0;
  for (const username of ['vera.holm', 'nora.keller'])
    await ask('POST', `/api/users/${idOf(username)}/password`, { password: PASSWORD });
  await ask('PATCH', `/api/users/${idOf('vera.holm')}`, { role: 'viewer' });
  await ask('DELETE', `/api/users/${idOf('jonas.weber')}`);

  const own = await Promise.all(ON_STREAM.map((username) => enrolled(place, ask, username, idOf(username))));
  const devices = await Promise.all(own.map((device, at) => onStream(place, device, CALLSIGNS[at] ?? '', at)));
  for (const device of own.slice(0, 1)) await giveMission(place, device);
  const lost = (await ask('POST', '/api/ops/certs', { username: 'carla.ruiz', name: 'lost-phone' })) as {
    file: string;
  };
  await ask('POST', `/api/ops/certs/${encodeURIComponent(lost.file)}/revoke`);
  await enrolled(place, ask, 'nora.keller', idOf('nora.keller'));
  await ask('POST', '/api/service-accounts', { name: 'weather-feed', kind: 'data', groups: ['Blue'] });
  const expires_at = new Date(Date.now() + 90 * DAY_MS).toISOString();
  await ask('POST', '/api/tokens', { name: 'backup', scope: 'read', expires_at });
  await ask('PUT', '/api/retention', { policy: { cot: 30, geochat: 90 } });
  return {
    devices,
    viewer: { username: 'vera.holm', password: PASSWORD },
    plain: { username: 'nora.keller', password: PASSWORD },
    ids,
  };
}

/** By the link that is handed to a person. */
async function enrolled({ core, work }: Furnishable, ask: Ask, username: string, id: number): Promise<Device> {
  const { url } = (await ask('POST', `/api/users/${id}/enrollment`)) as { url: string };
  const token = new URL(url).searchParams.get('token') ?? '';
  return enroll(core, work, username, token, `ANDROID-${username}`);
}

async function onStream({ core }: Furnishable, device: Device, callsign: string, at: number): Promise<StreamDevice> {
  const stream = await letIn(core, device, callsign);
  stream.report(47.5 + at * 0.04);
  await stream.isUpToDate();
  return stream;
}

/** By a device, as ATAK does it: with its own position and a file in it. */
async function giveMission({ core }: Furnishable, device: Device): Promise<void> {
  const [creatorUid, mission] = ['ANDROID-Lantern%201', '/Marti/api/missions/Search%20North'];
  const answerTo = async (method: string, path: string, body?: string): Promise<string> => {
    const sent = body === undefined ? [] : ['-H', 'Content-Type: application/json', '-d', body];
    const answer = await asDevice(core, device, path, ['-X', method, ...sent]);
    if (answer.status >= 300 || answer.status === 0) throw new Error(`${path}: ${answer.status} ${answer.body}`);
    return answer.body;
  };
  const described = new URLSearchParams({ description: 'Two teams along the ridge' }).toString();
  await answerTo('PUT', `${mission}?creatorUid=${creatorUid}&group=Search%20North&${described}`);
  const upload = await answerTo('POST', `/Marti/sync/upload?name=plan.json&creatorUid=${creatorUid}`, '{"teams":2}');
  const { Hash: hash } = JSON.parse(upload) as { Hash: string };
  const contents = JSON.stringify({ hashes: [hash], uids: ['ANDROID-Lantern 1'] });
  await answerTo('PUT', `${mission}/contents?creatorUid=${creatorUid}`, contents);
  const entry = { content: 'Team 2 is at the hut', creatorUid: 'ANDROID-Lantern 1', missionNames: ['Search North'] };
  await answerTo('POST', '/Marti/api/missions/logs/entries', JSON.stringify(entry));
}
