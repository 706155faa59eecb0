// Positions and tracks of a core that answers as a test says, over TLS.

import { describe, expect, it } from 'vitest';
import { HttpCoreTracks } from '../../shared/core/tracks/tracks.ts';
import { failureOf, type OddCore, sendPage } from './fake-odd-core.ts';
import { withOddCore } from './with-odd-core.ts';

const ALL = '/Marti/api/subscriptions/all';
const EXPORT = '/Marti/ExportMissionKML';
const NOW = new Date('2026-01-02T04:00:00Z');
const KML =
  '<kml xmlns:gx="x"><Document><Placemark><name>A</name><ExtendedData><Data name="uid"><value>u1</value></Data></ExtendedData>' +
  '<gx:Track><when>2026-01-02T03:59:00Z</when><gx:coord>8 47 9.5</gx:coord></gx:Track></Placemark></Document></kml>';

let server: OddCore;
let tracks: HttpCoreTracks;
withOddCore((odd, core) => {
  server = odd;
  tracks = new HttpCoreTracks(core.port, core, () => NOW);
});

const sendKml = (_: unknown, response: { end: (text: string) => void }): void => response.end(KML);

describe('positions', () => {
  it('are what the light core reports', async () => {
    const position = { lat: 47.5, lon: 8.25, hae: null, time: '2026-01-02T03:59:58.000Z' };
    server.serve({
      [`GET ${ALL}`]: [
        { clientUid: 'u1', position },
        { clientUid: 'u2', position: null },
        { clientUid: 'u3', position: { lat: 0, lon: 0 } },
      ],
    });
    expect(await tracks.positions()).toMatchObject([
      { uid: 'u1', position: { lat: 47.5, lon: 8.25, height: null, at: position.time } },
      { uid: 'u2', position: null },
      { uid: 'u3', position: null },
    ]);
    expect(server.requests).toEqual([`GET ${ALL}?positions=true`]);
  });

  it('are the last stored ones of a core that reports none', async () => {
    server.serve({ [`GET ${ALL}`]: [{ clientUid: 'u1' }, { clientUid: 'u2' }], [`GET ${EXPORT}`]: sendKml });
    expect(await tracks.positions()).toMatchObject([
      { uid: 'u1', position: { lat: 47, lon: 8, height: 9.5, at: '2026-01-02T03:59:00.000Z' } },
      { uid: 'u2', position: null },
    ]);
    expect(server.requests.at(-1)).toContain('startTime=2026-01-02T03:45:00.000Z&endTime=2026-01-02T04:00:00.000Z');
  });

  it('that are no places are an unexpected answer', async () => {
    server.serve({ [`GET ${ALL}`]: [{ clientUid: 'u1', position: { lat: 1e9, lon: 0 } }] });
    expect(await failureOf(tracks.positions())).toMatchObject({ code: 'upstream' });
  });
});

describe('tracks', () => {
  const time = { sinceMs: NOW.getTime() - 1000, untilMs: NOW.getTime() };

  it('are asked for one at a time, of a group or of all', async () => {
    let [now, most] = [0, 0];
    server.serve({
      [`GET ${EXPORT}`]: (request: unknown, response: { end: (text: string) => void }) => {
        now += 1;
        most = Math.max(most, now);
        setTimeout(() => {
          now -= 1;
          sendKml(request, response);
        }, 20);
      },
    });
    const found = await Promise.all([1, 2, 3].map(() => tracks.find({ ...time, group: 'a&b' })));
    expect([most, found[2]?.isCut, found[2]?.tracks[0]?.uid]).toEqual([1, false, 'u1']);
    expect(server.requests[0]).toContain('groups=a&b');
  });

  it('of an unknown group are not there; a page in place of KML is an unexpected answer', async () => {
    server.serve({});
    expect(await failureOf(tracks.find({ ...time, group: 'Gone' }))).toMatchObject({ code: 'not_found' });
    server.serve({
      [`GET ${EXPORT}`]: (_: unknown, response: Parameters<typeof sendPage>[0]) => sendPage(response, 200, 'Sign in'),
    });
    expect(await failureOf(tracks.find(time))).toMatchObject({ code: 'upstream' });
  });
});
