// Tracks as files, and as they are read from the KML of a core.

import { SaxesParser } from 'saxes';
import { describe, expect, it } from 'vitest';
import { type TrackFormat, writeTracks } from '../../shared/core/tracks/formats.ts';
import { trackQuery } from '../../shared/core/tracks/rules.ts';
import { readTracks } from '../../shared/core/tracks/tracks.ts';
import { fakeCore } from './fake-core.ts';
import { type FakeTracks, fakeTracks, type StoredPoint } from './fake-tracks.ts';

const START = Date.parse('2026-01-02T03:00:00Z');
const NOW = new Date('2026-01-02T04:00:00Z');
const HOSTILE = '=cmd|"/c calc"!A1</name><script>&\u0001\uD800';

const point = (uid: string, second: number, more: Partial<StoredPoint> = {}): StoredPoint => ({
  uid,
  callsign: uid.toUpperCase(),
  group: 'Blue',
  atMs: START + second * 1000,
  lat: 47 + second / 1000,
  lon: 8.5,
  height: second === 0 ? null : 421.5,
  ...more,
});

function tracksOf(points: StoredPoint[], most = 50_000): FakeTracks {
  const fake = fakeTracks(fakeCore({ now: () => NOW, accepts: () => false }));
  return Object.assign(fake, { points, most });
}

async function written(fake: FakeTracks, format: TrackFormat, most?: number): Promise<string> {
  const pieces: string[] = [];
  for await (const piece of writeTracks(fake.coreTracks, trackQuery({}, NOW), format, most)) pieces.push(piece);
  return pieces.join('');
}

/** Texts by the path of their elements; throws unless it is well-formed. */
function textsOf(xml: string): string[] {
  const [texts, path]: [string[], string[]] = [[], []];
  const parser = new SaxesParser({ xmlns: true });
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ name, attributes }) => {
    path.push(name);
    const given = Object.values(attributes).map(({ name: attribute, value }) => `${attribute}=${value}`);
    if (name === 'trkpt') texts.push(given.join(' '));
  });
  parser.on('text', (text) => void (text.trim() === '' || texts.push(`${path.slice(-1).join()}: ${text}`)));
  parser.on('closetag', () => void path.pop());
  parser.write(xml).close();
  return texts;
}

describe('tracks as files', () => {
  const fake = tracksOf([point('a', 0), point('a', 1), point('b', 0, { callsign: HOSTILE, uid: HOSTILE })]);

  it('are CSV without formulas', async () => {
    const lines = (await written(fake, 'csv')).split('\r\n');
    expect(lines[0]).toBe('time,callsign,uid,latitude,longitude,height_m');
    expect(lines).toContain('2026-01-02T03:00:01.000Z,A,a,47.001,8.5,421.5');
    const hostile = lines.find((line) => line.includes('calc')) ?? '';
    expect(hostile).toMatch(/^2026-01-02T03:00:00\.000Z,"'=cmd\|""/);
  });

  it('are GPX and KML that any parser reads, whatever the names', async () => {
    const gpx = textsOf(await written(fake, 'gpx'));
    expect(gpx).toContain('trkpt: lat=47.001 lon=8.5'.replace('trkpt: ', ''));
    expect(gpx).toContain('name: =cmd|"/c calc"!A1</name><script>&\uFFFD');
    const kml = await written(fake, 'kml');
    expect(textsOf(kml)).toContain('gx:coord: 8.5 47.001 421.5');
    expect(readTracks(kml)?.toReversed()).toMatchObject([
      {
        uid: 'a',
        callsign: 'A',
        points: [
          [START, 47, 8.5, null],
          [START + 1000, 47.001, 8.5, 421.5],
        ],
      },
      { points: [[START, 47, 8.5, null]] },
    ]);
  });

  it('have each point once, however the core cuts them', async () => {
    const points = Array.from({ length: 60 }, (_, at) => point(`d${at % 3}`, Math.floor(at / 7)));
    for (const most of [8, 9, 25, 100]) {
      const lines = (await written(tracksOf(points, most), 'csv')).trimEnd().split('\r\n').slice(1);
      const unique = new Set(points.map(({ uid, atMs }) => `${new Date(atMs).toISOString()} ${uid}`));
      expect(
        new Set(
          lines.map((line) =>
            line
              .split(',')
              .filter((_, at) => at === 0 || at === 2)
              .join(' '),
          ),
        ),
      ).toEqual(unique);
    }
  });

  it('end at their limit and say so', async () => {
    const fine = tracksOf(
      Array.from({ length: 40 }, (_, at) => point('a', at)),
      10,
    );
    const csv = await written(fine, 'csv', 20);
    expect(csv.trimEnd().split('\r\n')).toHaveLength(22);
    expect(csv).toContain('Choose a shorter time.');
    expect(fine.calls).toBeLessThanOrEqual(3);
    for (const format of ['kml', 'gpx'] as const) textsOf(await written(fine, format, 20));
  });

  it('are empty files of their kind when nothing is stored', async () => {
    expect(await written(tracksOf([]), 'csv')).toBe('time,callsign,uid,latitude,longitude,height_m\r\n');
    for (const format of ['kml', 'gpx'] as const) textsOf(await written(tracksOf([]), format));
  });
});

describe('the KML of a core', () => {
  const head = '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>';

  it('is read with entities, several tracks of one uid, and without places that are none', () => {
    const track = (when: string, coord: string) =>
      `<gx:Track><when>${when}</when><gx:coord>${coord}</gx:coord></gx:Track>`;
    const mark = (inside: string) =>
      `<Placemark><name>A &amp; B &#x1F692;</name><ExtendedData><Data name="uid"><value>u&lt;1</value></Data></ExtendedData>${inside}</Placemark>`;
    const kml = `${head}${mark(track('2026-01-02T03:00:05Z', '8 47 0'))}${mark(track('2026-01-02T03:00:00Z', '8 46 12.5'))}${mark(track('2026-01-02T03:00:00Z', '8 96 0'))}${mark(track('2026-01-02T03:00:00Z', '0 0 0'))}${mark(track('never', '8 46 0'))}`;
    expect(readTracks(kml)).toEqual([
      {
        uid: 'u<1',
        callsign: 'A & B 🚒',
        points: [
          [START, 46, 8, 12.5],
          [START + 5000, 47, 8, null],
        ],
      },
    ]);
  });

  it('is not what another text is', () => {
    expect(readTracks('<html><body>Sign in</body></html>')).toBeUndefined();
    expect(readTracks(`${head}</Document></kml>`)).toEqual([]);
  });
});

describe('the time that is asked for', () => {
  it('is the last hour, or what is given, and no group but a channel', () => {
    expect(trackQuery({}, NOW)).toEqual({ sinceMs: START, untilMs: NOW.getTime() });
    expect(trackQuery({ since: '2026-01-01T00:00:00Z', group: 'core_Blue' }, NOW)).toMatchObject({ group: 'Blue' });
  });

  it.each([
    [{ since: '2026-01-02T05:00:00Z' }, /begin before it ends/],
    [{ since: '2025-11-01T00:00:00Z' }, /longer than 31 days/],
  ])('%j is refused', (given, words) => {
    expect(() => trackQuery(given, NOW)).toThrow(words);
  });
});
