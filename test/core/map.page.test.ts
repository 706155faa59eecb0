// The map: its API, its page, and who may see either.

import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { actionsOf } from '../audit/fake-audit.ts';
import { fakeDeps, VIEWER } from '../http/fake-deps.ts';
import { peopleWorld } from '../people/fake-people.ts';
import { visit, type Visitor } from '../pages/page-session.ts';

const HOSTILE = '"><script>alert(1)</script>';
const TILES = 'https://tiles.example.org/{z}/{x}/{y}.png';
const AT = '2026-01-02T03:00:00.000Z';

async function withDevices(options: Parameters<typeof visit>[0] = {}): Promise<Visitor> {
  const visitor = await visit(options);
  const { theCore, tracks } = visitor.deps;
  Object.assign(theCore.online('ada', 'uid-ada'), { groups: ['Blue'], role: 'HQ' });
  Object.assign(theCore.online('ben', 'uid-ben'), { groups: ['Red'], role: 'Medic' });
  theCore.online('svc_probe', 'uid-probe');
  for (const uid of ['uid-ada', 'uid-ben', 'uid-probe'])
    tracks.positions.set(uid, { lat: 47.5, lon: -8.25, height: 421.5, at: AT });
  return visitor;
}

const namesOf = (html: string): string[] =>
  [...html.matchAll(/data-device="([^"]*)"/g)].map(
    ([, json = '']) => (JSON.parse(json.replaceAll('&quot;', '"')) as { name: string }).name,
  );

describe('the map', () => {
  it('shows connected devices in a table that its script draws, filtered by group and role', async () => {
    const { page } = await withDevices({ username: 'vera' });
    const html = await page('/map');
    expect(namesOf(html)).toEqual(['ADA', 'BEN']);
    expect(html).toContain('47.50000° N, 8.25000° W, 422 m');
    expect(html).toMatch(/<section id="positions" data-live="self"/);
    expect(namesOf(await page('/map?group=Blue'))).toEqual(['ADA']);
    expect(namesOf(await page('/map?role=Medic'))).toEqual(['BEN']);
    expect(await page('/map?group=Gone')).toMatch(/No connected devices match.*Show all devices/s);
  });

  it('is for viewers: nobody else gets the page, its script, positions or tracks', async () => {
    for (const options of [{ username: 'nora' }, { username: 'webadmin', face: 'portal' as const }]) {
      const { get } = await withDevices(options);
      const status = options.username === 'nora' ? 403 : 404;
      for (const path of ['/map', '/map/export', '/map/outlines.json'])
        expect([path, (await get(path)).status]).toEqual([path, status]);
    }
    const { get } = await withDevices({ username: 'nora' });
    for (const path of ['/api/positions', '/api/tracks']) expect((await get(path)).status).toBe(403);
  });

  it('shows at most 500 devices, and says so', async () => {
    const { page, deps } = await visit();
    for (let at = 0; at < 501; at += 1) {
      deps.theCore.online(`user${at}`, `uid-${at}`);
      deps.tracks.positions.set(`uid-${at}`, { lat: 0, lon: 0, height: null, at: null });
    }
    const html = await page('/map');
    expect(namesOf(html)).toHaveLength(500);
    expect(html).toContain('Only the first 500 of 501 devices are shown.');
  });

  it('takes names as text, and stays while the core is away', async () => {
    const { page, deps } = await withDevices();
    deps.theCore.clients = deps.theCore.clients.slice(0, 1).map((client) => ({
      ...client,
      callsign: HOSTILE,
      team: HOSTILE,
      role: HOSTILE,
      groups: [HOSTILE],
    }));
    const html = await page('/map');
    expect(namesOf(html)).toEqual([HOSTILE.replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '"')]);
    expect(html).not.toMatch(/<script>/);
    deps.theCore.mood = 'down';
    expect(await page('/map')).toContain('Couldn&#39;t load the positions. The core does not answer');
  });

  it('allows images from the tile server of the settings, and only on this page', async () => {
    const deps = fakeDeps({ MAP_TILE_URL: TILES });
    const { get } = await visit({ deps });
    const policyOf = async (path: string) => (await get(path)).headers.get('content-security-policy');
    expect(await policyOf('/map')).toContain("img-src https://tiles.example.org 'self' data:;");
    expect(await policyOf('/devices')).toContain("img-src 'self' data:;");
    expect(() => fakeDeps({ MAP_TILE_URL: "https://x.example/{z}/{x}/{y};script-src 'unsafe-inline'" })).toThrow(
      /MAP_TILE_URL/,
    );
    expect(() => fakeDeps({ MAP_TILE_URL: 'https://x.example/{z}.png' })).toThrow(/MAP_TILE_URL/);
  });
});

describe('replay and export', () => {
  const point = { uid: 'u1', callsign: '=1+1', group: 'Blue', atMs: Date.parse(AT), lat: 47, lon: 8, height: null };

  it('take times of the time zone of the stack', async () => {
    const { get, deps } = await withDevices({ username: 'vera' });
    deps.timeZone = 'Europe/Vienna';
    const query = 'from=2026-01-02T03:05&to=2026-01-02T04:05&group=core_Blue';
    const answer = await get(`/map/export?${query}&format=gpx`);
    expect([answer.status, answer.headers.get('location')]).toEqual([
      303,
      '/api/tracks?since=2026-01-02T02%3A05%3A00.000Z&until=2026-01-02T03%3A05%3A00.000Z&group=core_Blue&format=gpx',
    ]);
    const beginning = await get(`/map/export?${query}&format=json&part=begin`);
    expect(beginning.headers.get('location')).toContain('until=2026-01-02T02%3A10%3A00.000Z');
    for (const [wrong, words] of [
      ['from=&to=2026-01-02T04:05&format=csv', 'from: must be a date with a time'],
      ['from=2026-01-03T03:05&to=2026-01-02T04:05&format=csv', 'must begin before it ends'],
      [`${query}&format=exe`, 'format: must be one of: kml, gpx, csv'],
    ])
      expect(await (await get(`/map/export?${wrong}`)).text()).toContain(words);
  });

  it('hand out what is stored: JSON for the replay, files to keep, audited', async () => {
    const world = await peopleWorld();
    world.deps.tracks.points = [point];
    const ask = (path: string) => world.ask('GET', path, undefined, VIEWER);
    const time = 'since=2026-01-02T02:00:00Z&until=2026-01-02T04:00:00Z';
    expect(await (await ask(`/api/tracks?${time}`)).json()).toEqual({
      since: '2026-01-02T02:00:00.000Z',
      until: '2026-01-02T04:00:00.000Z',
      tracks: [{ uid: 'u1', callsign: '=1+1', points: [[point.atMs, 47, 8, null]] }],
      is_cut: false,
    });
    const csv = await ask(`/api/tracks?${time}&format=csv&group=core_Blue`);
    expect(csv.headers.get('content-disposition')).toBe('attachment; filename="tracks-2026-01-02T02-00.csv"');
    expect(await csv.text()).toContain("2026-01-02T03:00:00.000Z,'=1+1,u1,47,8,\r\n");
    expect(actionsOf(world.deps)).toMatchObject([
      { action: 'tracks.export', target: 'Blue', phase: 'intent', detail: expect.stringContaining('"format":"csv"') },
      { action: 'tracks.export', phase: 'outcome', result: 'ok' },
    ]);
    expect((await ask(`/api/tracks?${time}&format=kml&group=Gone`)).status).toBe(404);
    expect((await ask('/api/tracks?since=2020-01-01T00:00:00Z')).status).toBe(422);
    world.deps.coreTracks.find = async () => {
      throw new AppError('unavailable', 'The core does not answer');
    };
    expect((await ask(`/api/tracks?${time}&format=gpx`)).status).toBe(503);
  });

  it('lists positions by callsign, without devices that have none', async () => {
    const world = await peopleWorld();
    world.deps.theCore.online('ada', 'uid-ada');
    world.deps.theCore.online('ben', 'uid-ben');
    world.deps.tracks.positions.set('uid-ben', { lat: 1, lon: 2, height: null, at: AT });
    expect(await (await world.ask('GET', '/api/positions', undefined, VIEWER)).json()).toEqual([
      {
        uid: 'uid-ben',
        callsign: 'BEN',
        username: 'ben',
        groups: [],
        team: 'Cyan',
        role: 'Team Member',
        lat: 1,
        lon: 2,
        height: null,
        at: AT,
      },
    ]);
  });
});
