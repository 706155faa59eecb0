// What is read from an event, what makes XML no event, and what of it receivers get.

import fc from 'fast-check';
import { SaxesParser } from 'saxes';
import { describe, expect, it } from 'vitest';
import { type CotElement, StreamFault } from '../model/stream.ts';
import { XmlElement } from '../stream/wire/xml-element.ts';
import { numberOf, plainNumber, readEvent } from '../stream/wire/xml-event.ts';
import { isAccepted, nearlyEvent, PIECES, randomOf, SA } from './cot-grammar.ts';
import { runs } from '../../../test/support/runs.ts';

const POINT = '<point lat="1" lon="2" hae="3" ce="4" le="5"/>';
const event = (attributes: string, inside = POINT): string => `<event ${attributes}>${inside}</event>`;
const read = (text: string): ReturnType<typeof readEvent> => readEvent(Buffer.from(text));

describe('an event', () => {
  it('has the attributes of its root, its point and the children of its detail', () => {
    const sa = read(SA);
    expect(sa).toMatchObject({
      uid: 'ANDROID-1',
      type: 'a-f-G-U-C',
      how: 'm-g',
      time: '2026-11-22T05:30:00.000Z',
      start: '2026-11-22T05:30:00.000Z',
      stale: '2026-11-22T05:36:15.000Z',
      point: { lat: 51.1, lon: 7.6, hae: 120.5, ce: 4.9, le: 9_999_999 },
    });
    for (const name of ['access', 'qos', 'opex', 'caveat', 'releaseableTo'] as const)
      expect(sa?.[name]).toBeUndefined();
    expect(sa?.detail('contact')?.attribute('callsign')).toBe('HOPE');
    expect(sa?.detail('contact')?.attribute('call')).toBeUndefined();
    expect(sa?.detail('contac')).toBeUndefined();
    expect(sa?.detail('__group')?.attributes()).toEqual([
      ['name', 'Cyan'],
      ['role', 'Team Member'],
    ]);
  });

  it('has all that a root may carry', () => {
    const all = 'uid="u" type="t" access="a" qos="q" opex="o" caveat="c" releaseableTo="r"';
    expect(read(event(all))).toMatchObject({
      access: 'a',
      qos: 'q',
      opex: 'o',
      caveat: 'c',
      releaseableTo: 'r',
      how: '',
    });
  });

  it('has texts in any language, with their entities resolved', () => {
    const text = event(
      'uid="Zoë&amp;&#x1F600;\n" type=\'"t"\'',
      `${POINT}<detail><contact callsign="Ünal &lt;Ö&gt;"/><remarks>a &amp; b<b> c </b>\r\n<![CDATA[<&>]]><!-- no --><?no no?>é</remarks></detail>`,
    );
    const found = read(text);
    expect(found).toMatchObject({ uid: 'Zoë&😀 ', type: '"t"' });
    expect(found?.detail('contact')?.attribute('callsign')).toBe('Ünal <Ö>');
    expect(found?.detail('remarks')?.text()).toBe('a & b c \n<&>é');
  });

  it('has its own texts, however many alike came before', () => {
    for (let n = 0; n < 5_000; n++) {
      const [uid, how] = [`U-${n}`, `${n % 7}${'-'.repeat(n % 60)}${n % 5}`];
      expect(read(event(`uid="${uid}" type="t${n % 90}" how="${how}"`))).toMatchObject({
        uid,
        type: `t${n % 90}`,
        how,
      });
    }
  });

  it('has the first detail and the first point, as children of its root only', () => {
    const text = event(
      'uid="u" type="t"',
      '<x><point lat="9" lon="9"/><detail><a/></detail></x><point lat="1" lon="2"/><point lat="8" lon="8"/><detail><b><c/></b></detail><detail><d/></detail>',
    );
    const found = read(text);
    expect(found?.point).toEqual({ lat: 1, lon: 2, hae: 9_999_999, ce: 9_999_999, le: 9_999_999 });
    expect(['a', 'b', 'c', 'd'].map((name) => found?.detail(name)?.name)).toEqual([
      undefined,
      'b',
      undefined,
      undefined,
    ]);
    expect(found?.detail('b')?.child('c')?.name).toBe('c');
  });

  it('is none without an event as root, uid, type, or a point on earth', () => {
    const bad = {
      'another root': `<eventual uid="u" type="t">${POINT}</eventual>`,
      'no uid': event('type="t"'),
      'empty uid': event('uid="" type="t"'),
      'no type': event('uid="u"'),
      'long uid': event(`uid="${'u'.repeat(1025)}" type="t"`),
      'long type': event(`uid="u" type="${'t'.repeat(1025)}"`),
      'no point': event('uid="u" type="t"', '<detail/>'),
      'an empty root': '<event uid="u" type="t"/>',
      ...Object.fromEntries(
        ['', 'x', 'NaN', 'Infinity', '1e999', '0x1', '91', '-90.1', '1,5', '1 2', '--1', '.', '1.2.3'].map((lat) => [
          `latitude ${lat}`,
          event('uid="u" type="t"', `<point lat="${lat}" lon="2" hae="3" ce="4" le="5"/>`),
        ]),
      ),
      'no latitude': event('uid="u" type="t"', '<point lon="2" hae="3" ce="4" le="5"/>'),
      'a longitude too large': event('uid="u" type="t"', '<point lat="1" lon="180.5" hae="3" ce="4" le="5"/>'),
      'no number as height': event('uid="u" type="t"', '<point lat="1" lon="1" hae="NaN" ce="4" le="5"/>'),
      'no number as error': event('uid="u" type="t"', '<point lat="1" lon="1" hae="1" ce="4" le="x"/>'),
    };
    for (const [what, text] of Object.entries(bad)) expect([what, read(text)]).toEqual([what, undefined]);
    for (const lat of ['-90', '+90', ' 5 ', '.5', '5.', '1E-3', '51.123456789012345678']) {
      const point = `<point lat="${lat}" lon="-180" hae="-3" ce="4" le="5"/>`;
      expect(read(event('uid="u" type="t"', point))?.point.lat).toBe(Number(lat));
    }
    expect(read(event(`uid="${'é'.repeat(1024)}" type="${'&amp;'.repeat(1024)}"`))?.type).toHaveLength(1024);
  });

  it('that is not well-formed is a fault', () => {
    expect(() => read(SA.replace('</detail>', ''))).toThrow(StreamFault);
    expect(() => read(event('uid="u" type="t"', `${POINT}<![CDATA[`))).toThrow(StreamFault);
  });
});

it('numbers read from bytes are those read from text', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.double().map(String),
        fc.float().map((value) => value.toFixed(5)),
        fc.stringMatching(/^[-+.0-9e]{0,12}$/),
      ),
      (text) => {
        const bytes = Buffer.from(text);
        const quick = plainNumber(bytes, 0, bytes.length);
        expect(quick ?? numberOf(text)).toBe(numberOf(text));
      },
    ),
    { numRuns: runs(3000) },
  );
});

interface Node {
  name: string;
  attributes: [string, string][];
  text: string;
  children: Node[];
}

/** The tree of a maintained parser; texts of whatever is inside, in their order. */
function treeOf(text: string): Node {
  const parser = new SaxesParser({ xmlns: false, position: false });
  const open: Node[] = [{ name: '', attributes: [], text: '', children: [] }];
  parser.on('opentag', ({ name, attributes }) => {
    const node = { name, attributes: Object.entries(attributes), text: '', children: [] };
    open.at(-1)?.children.push(node);
    open.push(node);
  });
  parser.on('closetag', () => open.pop());
  const add = (more: string): void => open.forEach((node) => (node.text += more));
  parser.on('text', add);
  parser.on('cdata', add);
  parser.write(text).close();
  return open[0]?.children[0] as Node;
}

function nodeOf(element: CotElement): Node {
  const { name } = element;
  const attributes = element.attributes().map(([key, value]): [string, string] => [key, value]);
  for (const [key, value] of attributes) expect(element.attribute(key)).toBe(value);
  expect(element.children(1).length).toBe(Math.min(1, element.children(9).length));
  for (const child of element.children(9)) expect(element.child(child.name)?.name).toBe(child.name);
  return { name, attributes, text: element.text(), children: element.children(9).map(nodeOf) };
}

it('elements have the names, attributes, texts and children that a maintained parser finds', () => {
  let compared = 0;
  fc.assert(
    fc.property(fc.integer(), fc.constantFrom(...PIECES), (seed, piece) => {
      for (const bytes of [nearlyEvent(randomOf(seed)), Buffer.from(`<event>${piece}</event>`)]) {
        if (!isAccepted(bytes) || !bytes.toString().endsWith('</event>')) continue;
        compared++;
        // Attributes named like array indexes would come in another order: the grammar has none.
        expect(nodeOf(new XmlElement(bytes, 0, bytes.length, false))).toEqual(treeOf(bytes.toString()));
      }
    }),
    { numRuns: runs(1500) },
  );
  expect(compared).toBeGreaterThan(runs(400));
});
