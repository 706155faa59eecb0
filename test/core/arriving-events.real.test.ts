import { describe, expect, it } from 'vitest';
import { arrivingEvents } from '../../shared/core/devices/stream.ts';

const DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const event = (uid: string, inside = '<point/>'): string =>
  `<event version="2.0" uid="${uid}" type="a-f">${inside}</event>`;
const uids = (text: string, by: number): string[] => {
  const events = arrivingEvents();
  return (text.match(new RegExp(`[\\s\\S]{1,${by}}`, 'g')) ?? []).flatMap((piece) =>
    events.read(piece).map(({ uid }) => uid),
  );
};

describe('events that arrive', () => {
  it.each([1, 2, 5, 7, 8, 64, 10_000])('are found whatever comes between them, in pieces of %i characters', (by) => {
    const text = `${DECLARATION}${event('a')}${event('b')}\r\n< <e <events uid="no"></events>${DECLARATION}<<event\n uid='c'\ttype = "x>y"  >é</event>tail`;
    expect(uids(text, by)).toEqual(['a', 'b', 'c']);
  });

  it('are read by their start alone', () => {
    const events = arrivingEvents();
    expect(events.read(`<event type='t-x-c-t-r' uid="takPong"><detail uid="other" type="z"/></event>`)).toEqual([
      { type: 't-x-c-t-r', uid: 'takPong' },
    ]);
    expect(events.read('<event>uid="inside"</event><event uid=bare></event>')).toEqual([
      { type: '', uid: '' },
      { type: '', uid: '' },
    ]);
  });

  it('may be long, but not endless', () => {
    const events = arrivingEvents(1_000_000);
    const piece = 'x'.repeat(99_999);
    expect(events.read('<event uid="long" type="a">')).toEqual([]);
    for (let n = 0; n < 9; n++) expect(events.read(piece)).toEqual([]);
    expect(events.read('</event>')).toEqual([{ uid: 'long', type: 'a' }]);
    events.read('<event uid="endless">');
    for (let n = 0; n < 9; n++) events.read(piece);
    expect(() => [events.read(piece), events.read(piece)]).toThrow('an event of more than 1000000 characters');
  });

  it('cost time by their length alone, and what is none costs no memory', () => {
    const events = arrivingEvents(1e9);
    const before = process.cpuUsage();
    for (let n = 0; n < 5_000; n++) events.read('<event '.repeat(1_000));
    expect(events.read('</event>')).toHaveLength(1);
    for (let n = 0; n < 5_000; n++) events.read(' '.repeat(10_000));
    expect(process.cpuUsage(before).user).toBeLessThan(5_000_000);
  });
});
