// The events of an exercise, and how they are found again in what the server sends.

import { DOMParser } from '@xmldom/xmldom';
import { expect, it } from 'vitest';
import { eventOf, eventReader, type Kind, placeOf, removalOf } from '../exercise/events.ts';

const CENTER = { lat: 46.8, lon: 8.2 };
const AT = Date.parse('2026-11-22T05:30:00Z');

it.each<Kind>(['position', 'chat', 'mark'])(
  'a %s is XML, and its number and time are found however it is cut',
  (kind) => {
    const text = eventOf(kind, 3, 71, AT, CENTER) + eventOf(kind, 4, 72, AT + 1, CENTER);
    expect(
      new DOMParser().parseFromString(`<all>${text}</all>`, 'text/xml').getElementsByTagName('exercise').length,
    ).toBe(2);
    for (let size = 1; size < text.length; size++) {
      const found: [number, number][] = [];
      const read = eventReader((number, atMs) => found.push([number, atMs]));
      for (let at = 0; at < text.length; at += size) read(Buffer.from(text.slice(at, at + size)));
      expect(found).toEqual([
        [71, AT],
        [72, AT + 1],
      ]);
    }
  },
);

it('clients walk near the center, each on its own way', () => {
  const places = Array.from({ length: 100 }, (_, client) => placeOf(client, AT, CENTER));
  expect(new Set(places.map(({ lat, lon }) => `${lat} ${lon}`)).size).toBe(100);
  for (const { lat, lon } of places)
    expect([Math.abs(lat - 46.8) < 0.02, Math.abs(lon - 8.2) < 0.03]).toEqual([true, true]);
  const [here, later] = [placeOf(0, AT, CENTER), placeOf(0, AT + 60_000, CENTER)];
  expect(here).not.toEqual(later);
});

it('the removal of a mark names it', () => {
  expect(removalOf(3, AT)).toContain('type="t-x-d-d"');
  expect(removalOf(3, AT)).toContain('<link uid="EXERCISE-00004-MARK"');
});
