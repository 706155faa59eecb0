// Events as receivers get them: the sender's bytes with time, flow tag and without <marti>;
// well-formed whatever was accepted.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { type CotEvent, StreamFault } from '../model/stream.ts';
import { readCotTime } from '../model/wire-text.ts';
import * as control from '../stream/server-events.ts';
import { readEvent } from '../stream/wire/xml-event.ts';
import { deliveryOf, serverEventXml } from '../stream/wire/xml-write-event.ts';
import { isAccepted, mutated, PIECES, randomOf, SA } from './cot-grammar.ts';

const DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const STAMP = { time: '2026-11-22T06:00:00Z', tag: 'TAK-Server-1a2b' };
const FLOW = '<_flow-tags_ TAK-Server-1a2b="2026-11-22T06:00:00Z"/>';
const HEAD = '<event uid="u" type="t" time="T">';
const SENT = '<event uid="u" type="t" time="2026-11-22T06:00:00Z">';
const POINT = '<point lat="1" lon="2" hae="3" ce="4" le="5"/>';

function delivered(event: CotEvent): string {
  const delivery = deliveryOf(event, STAMP);
  const target = Buffer.alloc(delivery.maxXmlBytes + 20, '#');
  const end = delivery.writeXml(target, 10);
  expect(target.toString('latin1', 0, 10)).toBe('#'.repeat(10));
  expect(end).toBeLessThanOrEqual(10 + delivery.maxXmlBytes);
  expect(target.toString('latin1', 10 + delivery.maxXmlBytes)).toBe('#'.repeat(10));
  const text = target.toString('utf8', 10, end);
  expect(text.startsWith(DECLARATION)).toBe(true);
  expect(text).toContain(delivery.detail());
  return text.slice(DECLARATION.length);
}

/** What becomes of an event with that detail. */
function withDetail(detail: string): string {
  const event = readEvent(Buffer.from(`${HEAD}${POINT}${detail}</event>`));
  const text = delivered(event as CotEvent);
  expect(isAccepted(Buffer.from(text))).toBe(true);
  expect([text.startsWith(SENT + POINT), text.endsWith('</event>')]).toEqual([true, true]);
  const inside = text.slice(SENT.length + POINT.length, -'</event>'.length);
  expect(inside).toContain(deliveryOf(event as CotEvent, STAMP).detail());
  return inside;
}

describe('a delivery', () => {
  it('has the time of the server and its flow tag, and is otherwise what the sender wrote', () => {
    const event = readEvent(Buffer.from(SA)) as CotEvent;
    expect(delivered(event)).toBe(
      SA.replace(' time="2026-11-22T05:30:00.000Z"', ` time="${STAMP.time}"`).replace('</detail>', `${FLOW}</detail>`),
    );
  });

  it('has a time where the sender wrote none, and keeps its quotes', () => {
    const bare = readEvent(Buffer.from(`<event uid="u" type="t">${POINT}</event>`)) as CotEvent;
    expect(delivered(bare)).toBe(
      `<event time="${STAMP.time}" uid="u" type="t">${POINT}<detail>${FLOW}</detail></event>`,
    );
    const quoted = readEvent(Buffer.from(`<event uid="u" type="t" time = 'x"y'>${POINT}</event>`)) as CotEvent;
    expect(delivered(quoted)).toContain(`type="t" time = '${STAMP.time}'>`);
    const similar = readEvent(Buffer.from(`<event uid="time=" type="t" timer="1">${POINT}</event>`)) as CotEvent;
    expect(delivered(similar)).toContain(`<event time="${STAMP.time}" uid="time=" type="t" timer="1">`);
  });

  it('has a detail where the sender wrote none, or an empty one', () => {
    expect(withDetail('')).toBe(`<detail>${FLOW}</detail>`);
    expect(withDetail('<detail/>')).toBe(`<detail>${FLOW}</detail>`);
    expect(withDetail('<detail a="/>" />')).toBe(`<detail a="/>" >${FLOW}</detail>`);
    expect(withDetail('<detail></detail >')).toBe(`<detail>${FLOW}</detail >`);
    expect(withDetail('<!-- <detail/> -->')).toBe(`<!-- <detail/> --><detail>${FLOW}</detail>`);
  });

  it('has no <marti>: every one of the first level, and no other', () => {
    expect(withDetail('<detail><marti><dest uid="x"/></marti><a/><marti/>b<marti></marti></detail>')).toBe(
      `<detail><a/>b${FLOW}</detail>`,
    );
    expect(withDetail('<detail><a><marti/></a><martin/><!--<marti/>--></detail>')).toBe(
      `<detail><a><marti/></a><martin/><!--<marti/>-->${FLOW}</detail>`,
    );
    expect(withDetail('<detail/><marti/>')).toBe(`<detail>${FLOW}</detail><marti/>`);
  });

  it('does not join what stood on both sides of a <marti> to the end of CDATA', () => {
    for (const [detail, left] of [
      [']]<marti/>>', ']]<!---->>'],
      [']<marti/>]<marti/>>', ']<!---->]<!---->>'],
      [']]<marti/><marti/>>', ']]<!---->>'],
      ['<marti/>]]', ']]'],
      ['<![CDATA[]]><marti/>>', '<![CDATA[]]>>'],
    ] as const) {
      expect(withDetail(`<detail>${detail}</detail>`)).toBe(`<detail>${left}${FLOW}</detail>`);
    }
  });

  it('adds its flow tag to those of others, and takes the place of its own', () => {
    const other = '<_flow-tags_ Other="1"/>';
    expect(withDetail(`<detail>${other}<a/></detail>`)).toBe(
      `<detail><_flow-tags_ TAK-Server-1a2b="${STAMP.time}" Other="1"/><a/></detail>`,
    );
    expect(withDetail('<detail><_flow-tags_>x</_flow-tags_></detail>')).toBe(
      `<detail><_flow-tags_ TAK-Server-1a2b="${STAMP.time}">x</_flow-tags_></detail>`,
    );
    expect(withDetail(`<detail><marti/><_flow-tags_ TAK-Server-1a2b = 'old' b="c"/></detail>`)).toBe(
      `<detail><_flow-tags_ TAK-Server-1a2b = '${STAMP.time}' b="c"/></detail>`,
    );
    expect(withDetail('<detail><_flow-tags_ TAK-Server-1a2b2="1"/></detail>')).toContain('-1a2b="2026');
  });

  it('is well-formed and an event again, whatever was accepted', () => {
    let accepted = 0;
    const MORE = [
      ...PIECES,
      '<marti/>',
      '<marti><dest/></marti>',
      FLOW,
      '<_flow-tags_ a="b"/>',
      ']]',
      '>',
      ']',
      '</detail>',
      '<detail>',
    ];
    const check = (bytes: Buffer): void => {
      const event = read(bytes);
      if (event === undefined) return;
      accepted++;
      const text = delivered(event);
      const again = readEvent(Buffer.from(text));
      expect([isAccepted(Buffer.from(text)), again?.uid, again?.type, again?.time]).toEqual([
        true,
        event.uid,
        event.type,
        STAMP.time,
      ]);
      expect(again?.detail('marti')).toBeUndefined();
      expect(again?.detail('_flow-tags_')?.attribute(STAMP.tag)).toBe(STAMP.time);
    };
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...MORE), { maxLength: 5 }), fc.integer(), (pieces, seed) => {
        const bytes = Buffer.from(`${HEAD}${POINT}<detail>${pieces.join('')}</detail></event>`);
        check(bytes);
        check(mutated(bytes, randomOf(seed)));
      }),
      { numRuns: runs(3000) },
    );
    expect(accepted).toBeGreaterThan(runs(500));
  });
});

function read(bytes: Buffer): CotEvent | undefined {
  try {
    return readEvent(bytes);
  } catch (thrown) {
    if (!(thrown instanceof StreamFault)) throw thrown;
    return undefined;
  }
}

describe('events of the server', () => {
  const now = new Date('2026-11-22T06:00:00.250Z');

  it('are those of the protocol', () => {
    const text = (event: Parameters<typeof serverEventXml>[0]): string => serverEventXml(event, now).toString();
    expect(text(control.pong())).toBe(
      `${DECLARATION}<event version="2.0" uid="takPong" type="t-x-c-t-r" time="2026-11-22T06:00:00.250Z" ` +
        'start="2026-11-22T06:00:00.250Z" stale="2026-11-22T06:00:20.250Z" how="h-g-i-g-o">' +
        '<point lat="0.0" lon="0.0" hae="0.0" ce="9999999.0" le="9999999.0"/><detail></detail></event>',
    );
    expect(text(control.protocolSupport('5.7-RELEASE-0'))).toMatch(
      /uid="[-0-9a-f]{36}" type="t-x-takp-v" .*how="m-g">.*<detail><TakControl><TakProtocolSupport version="1"\/><TakServerVersionInfo serverVersion="5\.7-RELEASE-0" apiVersion="3"\/><\/TakControl><\/detail>/,
    );
    expect(text(control.protocolResponse('asked', true))).toMatch(
      /uid="asked" type="t-x-takp-r".*<TakResponse status="true"\/>/,
    );
    expect(text(control.disconnected('<&">', 'a-f'))).toMatch(
      /type="t-x-d-d".*how="h-g-i-g-o".*<link relation="p-p" uid="&lt;&amp;&quot;&gt;" type="a-f"\/>/,
    );
    expect(text(control.groupsChanged())).toContain('type="t-x-g-c"');
  });

  it('are well-formed whatever the names in them', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii' }), (name) => {
        const event = { ...control.disconnected(name, name), uid: `u${name}` };
        return isAccepted(serverEventXml(event, now).subarray(DECLARATION.length));
      }),
    );
    expect(
      isAccepted(
        serverEventXml(control.disconnected('\ud800\0\ufffe\u{10ffff}', ''), now).subarray(DECLARATION.length),
      ),
    ).toBe(true);
  });
});

it('times are ISO 8601, in UTC unless they say otherwise', () => {
  const at = Date.UTC(2026, 10, 22, 5, 30);
  for (const text of [
    '2026-11-22T05:30:00Z',
    '2026-11-22T05:30:00.000Z',
    '2026-11-22T05:30:00',
    '2026-11-22T06:30:00+01:00',
  ]) {
    expect(readCotTime(text)).toBe(at);
  }
  for (const text of [
    undefined,
    '',
    'now',
    '1',
    '2026-11-22',
    '2026-13-22T05:30:00Z',
    '2026-11-22T05:30:00Z'.padEnd(99),
  ]) {
    expect(readCotTime(text)).toBeUndefined();
  }
});
