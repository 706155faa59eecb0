// What the script of the map computes: places, views, and the tracks of a replay.

import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  fitted,
  gridStep,
  project,
  scaleBar,
  unproject,
  zoomed,
} from '../../functions/pages/browser/map/projection.ts';
import { loadBeginning, loadTracks, trackAt } from '../../functions/pages/browser/map/tracks.ts';

const [SINCE, UNTIL] = ['2026-01-02T03:00:00.000Z', '2026-01-02T04:00:00.000Z'];
const START = Date.parse(SINCE);
const MINUTE = 60_000;

describe('the projection', () => {
  it('leads there and back, as far as Mercator reaches', () => {
    for (const [lat, lon] of [
      [47.5, 8.25],
      [-33.9, 151.2],
      [0, 0],
      [84.9, -179.9],
    ] as const) {
      const back = unproject(project(lat, lon));
      expect([back.lat, back.lon]).toEqual([expect.closeTo(lat, 6), expect.closeTo(lon, 6)]);
    }
    expect(project(90, 180)).toEqual({ x: 1, y: expect.closeTo(0, 4) });
  });

  it('fits all marks, one mark, and none', () => {
    const [west, east] = [project(47, 8), project(48, 9)];
    const view = fitted([west, east], 800, 400);
    expect([view.x, view.y]).toEqual([expect.closeTo((west.x + east.x) / 2), expect.closeTo((west.y + east.y) / 2)]);
    expect(view.zoom).toBeGreaterThan(7);
    expect(fitted([west], 800, 400)).toMatchObject({ ...west, zoom: 13 });
    expect(fitted([], 800, 400).zoom).toBeLessThan(3);
  });

  it('keeps what lies under the pointer when it zooms, within its limits', () => {
    const view = { x: 0.5, y: 0.4, zoom: 5 };
    const under = (at: typeof view): number => at.x + 100 / (256 * 2 ** at.zoom);
    expect(under(zoomed(view, 2, 100, 0))).toBeCloseTo(under(view), 9);
    expect([zoomed(view, 99).zoom, zoomed(view, -99).zoom]).toEqual([19, 0]);
  });

  it('has round steps for grid and scale', () => {
    expect([gridStep(2), gridStep(10)]).toEqual([60, 0.2]);
    expect(scaleBar(10, 0, 120)).toEqual({ meters: 10_000, pixels: expect.closeTo(65.4, 1) });
  });
});

describe('a replay', () => {
  afterEach(() => vi.unstubAllGlobals());

  /** One point a minute, at most `most` in an answer, the newest ones. */
  function serve(most: number): string[] {
    const requested: string[] = [];
    vi.stubGlobal('fetch', async (address: string) => {
      requested.push(address);
      const until = Date.parse(new URL(address, 'http://x').searchParams.get('until') ?? UNTIL);
      const times = Array.from({ length: 60 }, (_, at) => START + at * MINUTE).filter((at) => at <= until);
      const points = times.slice(-most).map((at) => [at, 47, 8 + (at - START) / (100 * MINUTE), null]);
      const isCut = times.length >= most;
      return Response.json({
        since: SINCE,
        until: UNTIL,
        tracks: [{ uid: 'a', callsign: 'A', points }],
        is_cut: isCut,
      });
    });
    return requested;
  }

  it('loads part after part until the beginning, each point once', async () => {
    const requested = serve(25);
    const { tracks, points, isCut } = await loadTracks('/map/export?group=Blue', () => undefined);
    expect([points, isCut, tracks.length]).toEqual([60, false, 1]);
    expect(tracks[0]?.times).toEqual(Array.from({ length: 60 }, (_, at) => START + at * MINUTE));
    expect(requested.slice(1).every((address) => address.includes('group=Blue'))).toBe(true);
  });

  it('begins with the first minutes', async () => {
    const requested = serve(1_000);
    expect(await loadBeginning('/map/export?group=Blue')).toMatchObject({ sinceMs: START, points: 60 });
    expect(requested).toEqual(['/map/export?group=Blue&part=begin']);
  });

  it('knows where a device was, its way there, and when it was silent', async () => {
    serve(1_000);
    const [track] = (await loadTracks('/map/export', () => undefined)).tracks;
    if (track === undefined) throw new Error('no track');
    const found = trackAt(track, START + 20.5 * MINUTE);
    expect(found?.spot).toEqual(project(47, 8.2));
    expect(found?.trail).toHaveLength(10);
    expect(trackAt(track, START - 1)).toBeUndefined();
    expect(trackAt(track, START + 80 * MINUTE)).toBeUndefined();
  });

  it('says what the server says', async () => {
    vi.stubGlobal('fetch', async () => Response.json({ detail: 'The core is away.' }, { status: 503 }));
    await expect(loadTracks('/map/export', () => undefined)).rejects.toThrow('The core is away.');
  });
});
