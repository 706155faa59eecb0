import CoT, { CoTParser } from '@tak-ps/node-cot';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { instantOf } from '../../packages/core/archive/archivable.ts';
import { attributesOf, elementsAt, parseXml } from '../support/parsed-xml.ts';
import type { Feed, FeedMapping } from '../../shared/feeds/port.ts';
import { eventsOf, FEED, type FeedEvent } from './flow-files.ts';

const NOW = Date.parse('2026-05-04T12:00:00Z');
const MAPPING: FeedMapping = {
  items: 'data.list',
  uid: 'id',
  lat: 'at.0',
  lon: 'at.1',
  callsign: 'label',
  remarks: 'note',
  type: 'a-f-G-E-V',
};

const made = (answer: unknown, change: Partial<Feed> = {}): FeedEvent[] =>
  eventsOf({ ...FEED, ...change }, typeof answer === 'string' ? answer : JSON.stringify(answer), NOW);
const read = ({ xml }: FeedEvent): CoT => CoTParser.from_xml(xml);
const one = (answer: unknown, change: Partial<Feed> = {}): CoT => {
  const [event, ...others] = made(answer, change);
  expect(others).toEqual([]);
  return read(event as FeedEvent);
};

describe('aircraft', () => {
  const PLANE = { hex: 'a1b2c3', flight: 'SWR12  ', lat: 47.1, lon: 8.2, alt_geom: 1000, gs: 100, track: 91.5 };
  const fly = (change: object) => ({ aircraft: [{ ...PLANE, ...change }] });

  it('become events with callsign, height in meters, speed in meters per second, and the time of the fix', () => {
    const { event } = one(fly({ seen_pos: 10, r: 'HB-ABC', t: 'A320', squawk: '7700' })).raw;
    expect(event._attributes).toMatchObject({
      uid: 'ICAO-A1B2C3',
      type: 'a-n-A-C-F',
      time: '2026-05-04T11:59:50.000Z',
      stale: '2026-05-04T12:01:20.000Z',
    });
    expect(event.point._attributes).toMatchObject({ lat: 47.1, lon: 8.2, hae: 304.8 });
    expect(event.detail).toMatchObject({
      contact: { _attributes: { callsign: 'SWR12' } },
      track: { _attributes: { course: '91.5', speed: '51.4' } },
    });
    expect(JSON.stringify(event.detail)).toContain('HB-ABC, A320, squawk 7700, emergency');
  });

  it.each([
    [{ category: 'A7' }, 'a-n-A-C-H'],
    [{ category: 'B2' }, 'a-n-A-C-L'],
    [{ dbFlags: 1 }, 'a-u-A-M-F'],
    [{ dbFlags: 1, category: 'A7' }, 'a-u-A-M-H'],
    [{ dbFlags: 2 }, 'a-n-A-C-F'],
  ])('%j are of the type %s', (change, type) => {
    expect(one(fly(change)).type()).toBe(type);
  });

  it.each([
    { hex: undefined },
    { hex: 'zzzzzz' },
    { lat: undefined },
    { lat: 91 },
    { lat: 'x' },
    { lat: 0, lon: 0 },
    { lon: null },
    { lon: -181 },
    { seen_pos: 90 },
  ])('with %j are left out', (change) => {
    expect(made(fly(change))).toEqual([]);
  });

  it('of ADS-B Exchange are in "ac"; each uid once, the last of them', () => {
    const list = [PLANE, { ...PLANE, flight: 'NEW' }];
    expect(one({ ac: list }).callsign()).toBe('NEW');
  });

  it('are only those of the area, also across the date line', () => {
    const answer = {
      aircraft: [PLANE, { ...PLANE, hex: 'bbbbbb', lon: 179.5 }, { ...PLANE, hex: 'cccccc', lon: -179.5 }],
    };
    const uids = (area: Feed['area']): string[] => made(answer, { area }).map(({ uid }) => uid);
    expect(uids({ south: 47, north: 48, west: 8, east: 9 })).toEqual(['ICAO-A1B2C3']);
    expect(uids({ south: 47, north: 48, west: 179, east: -179 })).toEqual(['ICAO-BBBBBB', 'ICAO-CCCCCC']);
    expect(uids({ south: 48, north: 49, west: 8, east: 9 })).toEqual([]);
  });
});

describe('ships', () => {
  const SHIP = {
    mmsi: 211234560,
    lat: 54,
    lon: 9.9,
    shipname: 'ANNE',
    shiptype: 70,
    speed: 10,
    cog: 5,
    last_signal: 3,
  };

  it('become events by their MMSI', () => {
    const event = one({ ships: [{ ...SHIP, destination: 'KIEL', callsign: 'DABC' }] }, { kind: 'ais' });
    expect([event.uid(), event.type(), event.callsign()]).toEqual(['MMSI-211234560', 'a-n-S-X-M-C', 'ANNE']);
    expect(JSON.stringify(event.raw.event.detail)).toContain('DABC, to KIEL');
  });

  it.each([
    [30, 'a-n-S-X-F'],
    [36, 'a-n-S-X-R'],
    [51, 'a-n-S-X-L'],
    [69, 'a-n-S-X-M-P'],
    [80, 'a-n-S-X-M-O'],
    [0, 'a-n-S-X'],
    ['nonsense', 'a-n-S-X'],
  ])('of the ship type %s are %s', (shiptype, type) => {
    expect(one({ ships: [{ ...SHIP, shiptype }] }, { kind: 'ais' }).type()).toBe(type);
  });

  it('without a position, or heard too long ago, are left out', () => {
    const ships = [
      { ...SHIP, lat: null },
      { ...SHIP, last_signal: 5000 },
      { ...SHIP, mmsi: 'x' },
    ];
    expect(made({ ships }, { kind: 'ais' })).toEqual([]);
  });
});

describe('weather alerts', () => {
  const RING = [
    [-105, 40],
    [-104, 40],
    [-104, 41],
    [-105, 40],
  ];
  const alert = (change: object = {}, geometry: unknown = { type: 'Polygon', coordinates: [RING] }) => ({
    features: [
      {
        geometry,
        properties: {
          id: 'urn:oid:1',
          event: 'Flood Warning',
          headline: 'Flood until noon',
          severity: 'Severe',
          expires: '2026-05-04T12:30:00-00:00',
          ...change,
        },
      },
    ],
  });

  it('become shapes that end with the alert', () => {
    const event = one(alert(), { kind: 'weather', name: 'nws' });
    expect([event.uid(), event.type(), event.callsign()]).toEqual(['nws.urn:oid:1', 'u-d-f', 'Flood Warning']);
    expect(event.raw.event._attributes.stale).toBe('2026-05-04T12:10:00.000Z');
    expect(JSON.stringify(event.raw.event.detail)).toContain('"point":"41.00000,-104.00000"');
  });

  it.each([
    [{ expires: '2026-05-04T11:00:00Z' }, undefined],
    [{ expires: 'soon' }, undefined],
    [{ messageType: 'Cancel' }, undefined],
    [{}, null],
    [{}, { type: 'Point', coordinates: [1, 2] }],
    [{}, { type: 'Polygon', coordinates: [[[1, 2], 'x', [3, 4]]] }],
  ])('that are over, canceled or without an area are left out: %j %j', (change, geometry) => {
    expect(made(geometry === undefined ? alert(change) : alert(change, geometry), { kind: 'weather' })).toEqual([]);
  });

  it('have at most about 100 corners', () => {
    const ring = Array.from({ length: 5_000 }, (_, at) => [at / 100, at / 100 + 1]);
    const [event] = made(alert({}, { type: 'MultiPolygon', coordinates: [[ring]] }), { kind: 'weather' });
    expect(event?.xml.match(/<link/g)?.length).toBeLessThanOrEqual(101);
  });
});

describe('any JSON', () => {
  const answer = {
    data: { list: [{ id: 7, at: ['47', 8], label: 'Truck', note: 'full' }, { at: [1, 2] }, { id: 8 }] },
  };

  it('becomes events by the mapping; its uid begins with the name of the feed', () => {
    const event = one(answer, { kind: 'json', name: 'trucks', mapping: MAPPING });
    expect([event.uid(), event.type(), event.callsign()]).toEqual(['trucks.7', 'a-f-G-E-V', 'Truck']);
    expect(event.raw.event._attributes.stale).toBe('2026-05-04T12:01:30.000Z');
  });

  it('reads own properties alone, and an answer that is the list', () => {
    const mapping = { ...MAPPING, items: '', callsign: 'constructor.name', remarks: '' };
    expect(one([{ id: 'x', at: [1, 2] }], { kind: 'json', mapping }).callsign()).toBe('x');
  });
});

describe('CoT', () => {
  const event = (
    change: Record<string, string> = {},
    detail = '<contact callsign="Bob &amp; Al" endpoint="*:-1:stcp"/>',
  ) => {
    const attributes = { uid: 'B-1', type: 'a-f-G-U-C', how: 'm-g', stale: '2026-05-04T12:05:00Z', ...change };
    const text = Object.entries(attributes).map(([name, value]) => ` ${name}="${value}"`);
    return `<?xml version="1.0"?><event version="2.0"${text.join('')}><point lat='47.5' lon="8.5" hae="400" ce="1" le="1"/><detail>${detail}<track course="12" speed="3"/><remarks source="x">all &lt;well&gt;</remarks><marti><dest callsign="ALL"/></marti></detail></event>`;
  };

  it('is written new, under a uid of the feed, without what would address devices', () => {
    const [found] = made(event(), { kind: 'cot', name: 'radio' });
    expect(found?.xml).not.toMatch(/marti|endpoint/);
    const { raw } = read(found as FeedEvent);
    expect(raw.event._attributes).toMatchObject({ uid: 'radio.B-1', type: 'a-f-G-U-C', how: 'm-g' });
    expect(raw.event.detail).toMatchObject({
      contact: { _attributes: { callsign: 'Bob & Al' } },
      track: { _attributes: { course: '12.0', speed: '3.0' } },
    });
    expect(JSON.stringify(raw.event.detail)).toContain('all <well>');
  });

  it.each(['t-x-d-d', 'b-t-f', 'b-f-t-r', 't-x-m-c', 'u-d-f', 'a-f-G"><x'])('of the type %s is left out', (type) => {
    expect(made(event({ type: type.replace('"', '&quot;').replaceAll('<', '&lt;') }), { kind: 'cot' })).toEqual([]);
  });

  it('has its attributes also behind 64,000 characters that are none', () => {
    const [plain] = made(event(), { kind: 'cot' });
    expect(plain?.uid).toBe('planes.B-1');
    const long = event().replace('<event ', `<event ${'a'.repeat(64_000)} `);
    expect(made(long, { kind: 'cot' })).toEqual([plain]);
  });

  it('of more than 64 KB is left out', () => {
    expect(made(event({}, `<x>${'x'.repeat(65_536)}</x>`), { kind: 'cot' })).toEqual([]);
  });

  it('that is stale, or cut off in front of another, is left out; one far in the future ends within a day', () => {
    expect(made(event({ stale: '2026-05-04T11:59:00Z' }), { kind: 'cot' })).toEqual([]);
    expect(made(event({ stale: 'never' }), { kind: 'cot' })).toEqual([]);
    expect(one(`${event({ uid: 'A' }).slice(0, 150)}${event({ uid: 'C' })}`, { kind: 'cot' }).uid()).toBe('planes.C');
    expect(one(event({ stale: '2050-01-01T00:00:00Z' }), { kind: 'cot' }).raw.event._attributes.stale).toBe(
      '2026-05-05T12:00:00.000Z',
    );
  });
});

describe('hostile answers', () => {
  it.each([
    ['adsb', '<html>busy</html>', /no JSON: "<html>busy/],
    ['adsb', '{"aircraft":{}}', /no list "aircraft" or "ac"/],
    ['adsb', 'null', /no list/],
    ['ais', '[]', /no list "ships"/],
    ['weather', '{}', /no list "features"/],
    ['json', '{"data":{}}', /no list "data.list"/],
  ] as const)('of the kind %s, %s, are refused with the reason', (kind, answer, reason) => {
    expect(() => made(answer, { kind, mapping: MAPPING })).toThrow(reason);
  });

  it.each(['[', '{"a":'])('of more than 500,000 %s are refused before they are parsed', (opening) => {
    expect(() => made(opening.repeat(500_001))).toThrow('the answer has too many lists and objects');
    expect(() => made(opening.repeat(500_000))).toThrow(/no JSON/);
  });

  it('look nothing up in what every object has', () => {
    const [plane] = made({ aircraft: [{ hex: 'a1b2c3', lat: 1, lon: 2, squawk: 'constructor' }] });
    expect(plane?.xml).toContain('<remarks>squawk constructor</remarks>');
    const coordinates = [
      [
        [1, 2],
        [2, 2],
        [2, 3],
      ],
    ];
    const alert = (severity: unknown) => ({
      features: [
        {
          geometry: { type: 'Polygon', coordinates },
          properties: { id: '1', expires: '2026-05-04T12:30:00Z', severity },
        },
      ],
    });
    for (const severity of ['constructor', { toString: 1 }])
      expect(made(alert(severity), { kind: 'weather' })[0]?.xml).toContain('<strokeColor value="-16711681"/>');
  });

  it('are read up to 5,000 items', () => {
    const aircraft = Array.from({ length: 6_000 }, (_, at) => ({ hex: (0x100000 + at).toString(16), lat: 1, lon: 1 }));
    expect(made({ aircraft })).toHaveLength(5_000);
  });

  it('never make an event that is broken, or that the core cannot store', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom('</event>', '"><x a="', ']]>', '\u0000', '\ud800'),
    );
    const value = fc.oneof(text, fc.double(), fc.constantFrom(null, true, {}, []));
    const item = fc.record({
      hex: fc.constantFrom('a1b2c3', '~FFFFFF', 5),
      lat: fc.oneof(fc.double({ min: -90, max: 90, noNaN: true }), value),
      lon: fc.oneof(fc.double({ min: -180, max: 180, noNaN: true }), value),
      flight: value,
      r: value,
      t: value,
      squawk: value,
      alt_geom: value,
      gs: value,
      track: value,
      seen_pos: value,
      dbFlags: value,
      category: value,
    });
    fc.assert(
      fc.property(fc.array(item, { maxLength: 4 }), (aircraft) => {
        for (const event of made({ aircraft })) {
          const { root } = parseXml(event.xml);
          const { uid, time, stale } = attributesOf(root);
          expect(uid).toBe(event.uid);
          expect([instantOf(time), instantOf(stale)]).not.toContain(undefined);
          expect(Number(attributesOf(elementsAt(root, 'point')[0])['lat'])).toBeCloseTo(event.lat, 5);
          expect(root.elements.map(({ name }) => name)).toEqual(['point', 'detail']);
          expect(event.xml.isWellFormed()).toBe(true);
        }
      }),
    );
  });
});
