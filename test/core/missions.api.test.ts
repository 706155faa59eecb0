import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { VIEWER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';
import { ARCHIVE_ID, FIRST_GUID, someMission } from './fake-missions.ts';

const UNKNOWN = '22222222-2222-4222-8222-222222222222';
const HOSTILE = '"><img src=x>=1+1\r\nSet-Cookie: a=b.zip';

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
});

const ask = (method: string, path: string, headers?: Record<string, string>): Promise<Response> =>
  world.ask(method, path, undefined, headers);

describe('/api/missions', () => {
  it('lists them as pages with their size, for viewers', async () => {
    world.deps.missions.missions.push(someMission({ guid: UNKNOWN, name: 'Storm' }));
    const answer = await ask('GET', '/api/missions?page=2&page_size=1', VIEWER);
    expect(await answer.json()).toMatchObject({
      results: [{ name: 'Storm', size: { items: 1, files: 1, bytes: 2_000_000 }, has_password: false }],
      count: 2,
      page: 2,
      page_size: 1,
      messages: [],
    });
  });

  it('shows one with members, contents, log and changes', async () => {
    const answer = await ask('GET', `/api/missions/${FIRST_GUID}`, VIEWER);
    expect(await answer.json()).toMatchObject({
      groups: ['Blue'],
      members: [{ client_uid: 'ANDROID-ada', username: 'ada', role: 'MISSION_OWNER' }],
      files: [{ name: 'map.pdf', mime_type: 'application/pdf', bytes: 2_000_000 }],
      items: [{ callsign: 'Base' }],
      log: [{ content: 'Team 2 is at the hut' }],
      changes: [{ type: 'ADD_CONTENT', subject: 'Base' }],
    });
    expect((await ask('GET', `/api/missions/${UNKNOWN}`)).status).toBe(404);
    expect((await ask('GET', '/api/missions/..%2Fgroups')).status).toBe(422);
  });

  it('deletes one once, audited by its name', async () => {
    expect((await ask('DELETE', `/api/missions/${FIRST_GUID}`)).status).toBe(204);
    expect(world.deps.missions.missions).toEqual([]);
    expect((await ask('DELETE', `/api/missions/${FIRST_GUID}`)).status).toBe(404);
    expect(world.deps.audit.records).toMatchObject([
      { action: 'mission.delete', target: 'Search North', phase: 'intent' },
      { action: 'mission.delete', phase: 'outcome', result: 'ok' },
    ]);
  });

  it('is 503 while the core is away, and records that a change is uncertain', async () => {
    const remove = async (): Promise<never> => {
      throw new AppError('unavailable', 'The core does not answer');
    };
    world.deps.coreMissions.remove = remove;
    expect((await ask('DELETE', `/api/missions/${FIRST_GUID}`)).status).toBe(503);
    expect(world.deps.audit.records.at(-1)).toMatchObject({ phase: 'outcome', result: 'unknown' });
  });
});

describe('/api/mission-archives', () => {
  it('keeps an archive, lists it and hands it out piece by piece under a harmless name', async () => {
    world.deps.missions.missions = [someMission({ name: HOSTILE })];
    const kept = await ask('POST', `/api/missions/${FIRST_GUID}/archive`);
    const { id } = (await kept.json()) as { id: string };
    expect(kept.status).toBe(201);
    const list = (await (await ask('GET', '/api/mission-archives', VIEWER)).json()) as { id: string }[];
    expect(list.map((each) => each.id)).toEqual([id, ARCHIVE_ID]);
    const file = await ask('GET', `/api/mission-archives/${id}/content`);
    expect(await file.text()).toBe('the archive');
    expect(file.headers.get('content-length')).toBe('11');
    expect(file.headers.get('x-content-type-options')).toBe('nosniff');
    expect(file.headers.get('content-disposition')).toMatch(
      /^attachment; filename="[\w. -]+"; filename\*=UTF-8''[\w.%~-]+$/,
    );
    expect(world.deps.audit.records.at(-1)).toMatchObject({ action: 'mission-archive.download', result: 'ok' });
  });

  it('restores one under a new guid, and not over a mission of its name', async () => {
    const path = `/api/mission-archives/${ARCHIVE_ID}/restore`;
    const restored = await ask('POST', path);
    expect([restored.status, await restored.json()]).toEqual([201, expect.objectContaining({ name: 'Flood 2025' })]);
    expect((await ask('POST', path)).status).toBe(409);
    expect((await ask('POST', `/api/mission-archives/${UNKNOWN}/restore`)).status).toBe(404);
    expect(world.deps.audit.records.slice(0, 2)).toMatchObject([
      { action: 'mission.restore', target: 'Flood 2025', phase: 'intent' },
      { action: 'mission.restore', phase: 'outcome', result: 'ok' },
    ]);
  });

  it('deletes one for good', async () => {
    expect((await ask('DELETE', `/api/mission-archives/${ARCHIVE_ID}`)).status).toBe(204);
    expect((await ask('DELETE', `/api/mission-archives/${ARCHIVE_ID}`)).status).toBe(404);
    expect((await ask('GET', `/api/mission-archives/${ARCHIVE_ID}/content`)).status).toBe(404);
  });
});
