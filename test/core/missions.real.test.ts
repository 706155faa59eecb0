// The missions of a core that answers as a test says, over TLS, and archives of them on a real disk.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bytesOfBase64 } from '@holdfast/kit/text';
import { MissionArchiveFiles } from '../../shared/core/missions/archives.ts';
import { HttpCoreMissions } from '../../shared/core/missions/missions.ts';
import { failureOf, type OddCore, sendJson } from './fake-odd-core.ts';
import { FIRST_GUID } from './fake-missions.ts';
import { withOddCore } from './with-odd-core.ts';

const BASE = '/Marti/api/missions';
const OF_FIRST = `${BASE}/guid/${FIRST_GUID}`;
const NEW_GUID = '33333333-3333-4333-8333-333333333333';
const MISSION = {
  name: 'Nørd/… "x"',
  guid: FIRST_GUID,
  createTime: '2026-01-02T03:04:05.000Z',
  lastEdited: 'yesterday',
  creatorUid: 'ANDROID-1',
  passwordProtected: true,
  groups: ['Blue'],
  contents: [{ data: { name: 'a.pdf', hash: 'ab', size: 12, mimeType: null }, timestamp: '2026-01-02T03:04:05Z' }],
  uids: [{ data: 'uid-1', details: { type: 'a-f-G', callsign: 'Base' } }, { data: 'uid-2' }],
  logs: [
    { content: 'first', created: '2026-01-02T03:00:00Z' },
    { content: 'second', created: '2026-01-02T04:00:00Z', creatorUid: 'ANDROID-1' },
  ],
  missionChanges: [{ type: 'ADD_CONTENT', contentResource: { name: 'a.pdf' }, timestamp: '2026-01-02T03:04:05Z' }],
};

let server: OddCore;
let missions: HttpCoreMissions;
let archives: MissionArchiveFiles;
let directory: string;
let nowMs = Date.parse('2026-01-02T05:00:00Z');
const archivesWith = (more: { maxBytes?: number } = {}): MissionArchiveFiles =>
  new MissionArchiveFiles({ directory, missions, port: missionsPort, now: () => new Date(nowMs), ...more });
let missionsPort: ConstructorParameters<typeof HttpCoreMissions>[0];

withOddCore((odd, core) => {
  server = odd;
  missionsPort = core.port;
  missions = new HttpCoreMissions(core.port);
});
beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), 'holdfast-missions-')), 'mission-archives');
  archives = archivesWith();
});
afterEach(() => rmSync(join(directory, '..'), { recursive: true, force: true }));

const withMission = (more: object = {}): void =>
  server.serve({
    [`GET ${BASE}`]: [],
    [`GET ${OF_FIRST}`]: [MISSION],
    [`GET ${OF_FIRST}/subscriptions/roles`]: [{ clientUid: 'u', username: 'ada', role: { type: 'MISSION_OWNER' } }],
    [`GET ${OF_FIRST}/archive`]: (_: unknown, response: { end: (text: string) => void }) => response.end('zip of it'),
    ...more,
  });

describe('missions', () => {
  it('are listed with sizes, whatever members are absent, null or no date', async () => {
    server.serve({ [`GET ${BASE}`]: [MISSION, { name: 'Bare', guid: NEW_GUID }] });
    expect((await missions.list()).missions).toMatchObject([
      { name: 'Bare', createdAt: null, hasPassword: false, size: { items: 0, files: 0, bytes: 0 } },
      { guid: FIRST_GUID, lastEditedAt: null, hasPassword: true, size: { items: 2, files: 1, bytes: 12 } },
    ]);
    expect(server.requests).toEqual([`GET ${BASE}?passwordProtected=true&defaultRole=true`]);
  });

  it('are read with members, contents, and the newest of the log first', async () => {
    withMission();
    expect(await missions.find(FIRST_GUID)).toMatchObject({
      groups: ['Blue'],
      members: [{ username: 'ada', role: 'MISSION_OWNER', since: null }],
      items: [
        { uid: 'uid-1', callsign: 'Base' },
        { uid: 'uid-2', callsign: '' },
      ],
      log: [{ content: 'second' }, { content: 'first' }],
      changes: [{ subject: 'a.pdf' }],
    });
  });

  it('are unknown when the core says so, not when a part of it is away; nothing but a guid is asked for', async () => {
    const say = (status: number, code: number) => ({
      [`GET ${OF_FIRST}`]: (_: unknown, response: Parameters<typeof sendJson>[0]) =>
        sendJson(response, { status: 'NOT_FOUND', code, message: 'm' }, status),
      [`DELETE ${BASE}`]: (_: unknown, response: Parameters<typeof sendJson>[0]) =>
        sendJson(response, { status: 'GONE', code, message: 'm' }, status),
    });
    server.serve(say(410, 8));
    expect([await missions.find(FIRST_GUID), await missions.remove(FIRST_GUID)]).toEqual([undefined, false]);
    server.serve(say(404, 0));
    expect(await failureOf(missions.find(FIRST_GUID))).toMatchObject({ code: 'unavailable' });
    expect(await failureOf(missions.remove(FIRST_GUID))).toMatchObject({ code: 'unavailable' });
    server.requests.length = 0;
    expect([await missions.find('../all'), await missions.remove('')]).toEqual([undefined, false]);
    expect(server.requests).toEqual([]);
  });
});

describe('archives', () => {
  it('are kept on the disk, read in parts, and deleted', async () => {
    withMission();
    const { id } = await archives.keep(FIRST_GUID);
    expect(readdirSync(directory).toSorted()).toEqual([`${id}.json`, `${id}.zip`]);
    expect(await archivesWith().list()).toMatchObject([{ id, bytes: 9, hasPassword: true, name: MISSION.name }]);
    expect(new TextDecoder().decode(bytesOfBase64(await archives.part(id, 4)))).toBe('of it');
    expect(await archives.part(id, 9)).toBe('');
    expect([await archives.remove(id), await archives.remove(id), await archives.remove('../x')]).toEqual([
      true,
      false,
      false,
    ]);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('leave nothing when the core breaks off, and nothing of a process that died', async () => {
    withMission({
      [`GET ${OF_FIRST}/archive`]: (_: unknown, response: { write: (text: string) => void; destroy: () => void }) => {
        response.write('half');
        setTimeout(() => response.destroy(), 20);
      },
    });
    expect(await failureOf(archives.keep(FIRST_GUID))).toMatchObject({ code: 'unavailable' });
    expect(readdirSync(directory)).toEqual([]);
    const [old, fresh] = [join(directory, `${NEW_GUID}.zip.new`), join(directory, `${FIRST_GUID}.zip`)];
    for (const file of [old, fresh]) writeFileSync(file, 'x');
    utimesSync(old, 0, 0);
    nowMs = Date.now();
    withMission();
    await archives.keep(FIRST_GUID);
    expect(readdirSync(directory).filter((name) => !name.includes('json'))).not.toContain(`${NEW_GUID}.zip.new`);
    expect(readdirSync(directory)).toContain(`${FIRST_GUID}.zip`);
  });

  it('appear in no list before they are whole, wherever their process was killed', async () => {
    mkdirSync(directory, { recursive: true });
    const half = [`${NEW_GUID}.zip.new`, `${NEW_GUID}.zip`, `${NEW_GUID}.json.new`];
    for (const name of half) writeFileSync(join(directory, name), '{"half');
    expect(await archives.list()).toEqual([]);
    expect(await failureOf(archives.part(NEW_GUID, 0))).toMatchObject({ code: 'not_found' });
    for (const name of half) utimesSync(join(directory, name), 0, 0);
    withMission();
    const { id } = await archives.keep(FIRST_GUID);
    expect(readdirSync(directory).toSorted()).toEqual([`${id}.json`, `${id}.zip`]);
  });

  it('leave alone what is not theirs on their volume', async () => {
    const others = ['.nfs0000000000000001', `${NEW_GUID}.txt`, 'lost+found', 'notes.json'];
    mkdirSync(join(directory, 'lost+found'), { recursive: true });
    for (const name of others) {
      if (name !== 'lost+found') writeFileSync(join(directory, name), 'x');
      utimesSync(join(directory, name), 0, 0);
    }
    withMission();
    const { id } = await archives.keep(FIRST_GUID);
    expect(readdirSync(directory).toSorted()).toEqual([...others, `${id}.json`, `${id}.zip`].toSorted());
    expect(await archives.list()).toHaveLength(1);
  });

  it('stay within their limit, and say what to do', async () => {
    withMission();
    const small = archivesWith({ maxBytes: 10 });
    await small.keep(FIRST_GUID);
    expect(await failureOf(small.keep(FIRST_GUID))).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('download and delete some'),
    });
    expect(await small.list()).toHaveLength(1);
  });

  it('appear in no list when their volume is full before the lock is given back', async () => {
    mkdirSync(directory);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'nr_inodes=4', 'holdfast-test', directory]);
    try {
      withMission();
      expect(await failureOf(archives.keep(FIRST_GUID))).toMatchObject({ code: 'unavailable' });
      expect([readdirSync(directory), await archives.list()]).toEqual([['.lock'], []]);
    } finally {
      execFileSync('umount', [directory]);
    }
  });

  it('of several processes stay within one limit', async () => {
    const both = Promise.withResolvers<void>();
    let begun = 0;
    withMission({
      [`GET ${OF_FIRST}/archive`]: async (_: unknown, response: { end: (text: string) => void }) => {
        if (++begun === 2) both.resolve();
        await both.promise;
        response.end('zip of it');
      },
    });
    const kept = await Promise.allSettled([1, 2].map(() => archivesWith({ maxBytes: 10 }).keep(FIRST_GUID)));
    expect(kept.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    const refused = kept.find((each) => each.status === 'rejected')?.reason as unknown;
    expect(refused).toMatchObject({ code: 'conflict', message: expect.stringContaining('download and delete some') });
    expect(await archives.list()).toHaveLength(1);
    expect(readdirSync(directory)).toHaveLength(2);
  });

  it('that another process deletes end a download with an error, not as if they were whole', async () => {
    withMission();
    const { id } = await archives.keep(FIRST_GUID);
    expect(await archives.part(id, 0)).not.toBe('');
    rmSync(join(directory, `${id}.zip`));
    expect(await failureOf(archives.part(id, 4))).toMatchObject({ code: 'not_found' });
    await archivesWith().remove(id);
    expect(await failureOf(archives.part(id, 4))).toMatchObject({ code: 'not_found' });
  });

  it('that another process deletes are restored whole once that has begun', async () => {
    withMission({
      [`PUT ${BASE}/${MISSION.name}`]: async (_: unknown, response: Parameters<typeof sendJson>[0]) => {
        const [kept] = await archives.list();
        await archivesWith().remove(kept?.id ?? '');
        sendJson(response, { version: '3', type: 'Mission', data: [{ guid: NEW_GUID }] }, 201);
      },
      [`PUT ${BASE}/guid/${NEW_GUID}/contents/missionpackage`]: [],
    });
    const { id } = await archives.keep(FIRST_GUID);
    expect(await archives.restore(id)).toMatchObject({ guid: NEW_GUID });
    expect(server.met.at(-1)?.body).toBe('zip of it');
    expect(readdirSync(directory)).toEqual([]);
  });

  it('are restored as a new mission; a refused one leaves none behind', async () => {
    const name = `PUT ${BASE}/${MISSION.name}`;
    const made = (_: unknown, response: Parameters<typeof sendJson>[0]): void =>
      sendJson(response, { version: '3', type: 'Mission', data: [{ guid: NEW_GUID }] }, 201);
    const unpack = `PUT ${BASE}/guid/${NEW_GUID}/contents/missionpackage`;
    withMission({ [name]: made, [unpack]: [] });
    const { id } = await archives.keep(FIRST_GUID);
    expect(await archives.restore(id)).toMatchObject({ guid: NEW_GUID, name: MISSION.name });
    const sent = server.met.at(-1);
    expect([sent?.body, sent?.headers['content-length']]).toEqual(['zip of it', '9']);
    expect(JSON.parse(server.met.at(-2)?.body ?? '')).toEqual({
      description: '',
      groups: ['Blue'],
      inviteOnly: true,
    });

    withMission({
      [name]: made,
      [unpack]: (_: unknown, response: Parameters<typeof sendJson>[0]) =>
        sendJson(response, { code: 2, message: 'Invalid Request: no zip' }, 400),
      [`DELETE ${BASE}`]: [],
    });
    expect(await failureOf(archives.restore(id))).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('Invalid Request: no zip'),
    });
    expect(server.requests.at(-1)).toContain(`DELETE ${BASE}?guid=${NEW_GUID}`);

    withMission({ [`GET ${OF_FIRST}`]: [{ ...MISSION, groups: undefined }] });
    const { id: bare } = await archives.keep(FIRST_GUID);
    server.requests.length = 0;
    expect(await failureOf(archives.restore(bare))).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('its groups'),
    });
    expect(server.requests).toEqual([]);

    server.serve({ [`GET ${BASE}`]: [MISSION] });
    expect(await failureOf(archives.restore(id))).toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('exists'),
    });
    expect(await failureOf(archives.restore(NEW_GUID))).toMatchObject({ code: 'not_found' });
  });
});
