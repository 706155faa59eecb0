// Both framings give the same events however the bytes are cut, keep no more than one event, and
// end in a StreamFault or not at all.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FrameReader, StreamFault } from '../model/stream.ts';
import { frameOf, MAX_NOISE_BYTES, ProtobufFrames, XmlFrames } from '../stream/wire/frames.ts';
import { runs } from '../../../test/support/runs.ts';

const MOST = 1000;

/**
 * The frames of those chunks as text, and `fault` where it ended so. Frames are looked at when all
 * of a chunk are there.
 */
function framesOf(reader: FrameReader, chunks: readonly Buffer[]): string[] {
  const found: string[] = [];
  for (const chunk of chunks) {
    reader.push(chunk);
    const views: Buffer[] = [];
    const isSound = takeAll(reader, views);
    found.push(...views.map((view) => view.toString('latin1')));
    if (!isSound) return [...found, 'fault'];
  }
  return found;
}

function takeAll(reader: FrameReader, views: Buffer[]): boolean {
  try {
    for (let frame = reader.next(); frame !== undefined; frame = reader.next()) views.push(frame);
    return true;
  } catch (thrown) {
    if (!(thrown instanceof StreamFault)) throw thrown;
    return false;
  }
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  return sorted.slice(1).map((place, k) => Buffer.from(bytes.subarray(sorted[k], place)));
}

const single = (bytes: Buffer): Buffer[] => [...bytes].map((byte) => Buffer.from([byte]));
const cuts = fc.array(fc.nat(), { maxLength: 20 });

describe('XML', () => {
  const XML_PIECES = [
    '<event>',
    '</event>',
    '<event uid="a">x</event>',
    '<event',
    '</event',
    '<?xml version="1.0"?>\n',
    '<auth><cot/></auth>',
    '\n',
    ' ',
    'noise',
    '<',
    '</',
    '<e',
    '<ev',
    '<event/>',
    '<![CDATA[</event>]]>',
    '<!DOCTYPE',
    '<!DOC',
    '<!ENTITY a "b">',
    '<!',
    '<event>é</event>',
    `<event>${'x'.repeat(600)}</event>`,
    'x'.repeat(400),
    '<<event><</event>>',
    '<eve<event></event>',
  ];

  it('is framed alike in whatever pieces it comes', () => {
    let faults = 0;
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...XML_PIECES), { maxLength: 12 }), cuts, (pieces, places) => {
        const bytes = Buffer.from(pieces.join(''));
        const whole = framesOf(new XmlFrames(MOST), [bytes]);
        faults += whole.at(-1) === 'fault' ? 1 : 0;
        expect(framesOf(new XmlFrames(MOST), cut(bytes, places))).toEqual(whole);
        expect(framesOf(new XmlFrames(MOST), single(bytes))).toEqual(whole);
      }),
      { numRuns: runs(1000) },
    );
    expect(faults).toBeGreaterThan(runs(100));
  });

  it('is an event from <event to the next </event>, whatever stands before it', () => {
    const text =
      '<?xml version="1.0"?>\n<auth><cot username="a" password="b"/></auth><event>1</event>\n<event>2</event>';
    expect(framesOf(new XmlFrames(MOST), [Buffer.from(text)])).toEqual(['<event>1</event>', '<event>2</event>']);
    const cdata = '<event><![CDATA[</event>]]></event>';
    expect(framesOf(new XmlFrames(MOST), [Buffer.from(cdata)])).toEqual(['<event><![CDATA[</event>']);
  });

  it('is refused with a DOCTYPE or an entity between events, cut anywhere', () => {
    for (const text of ['<!DOCTYPE event>', '<!ENTITY a "b">']) {
      const bytes = Buffer.from(`<event>1</event>${text}<event>2</event>`);
      for (let place = 0; place < bytes.length; place++) {
        expect(framesOf(new XmlFrames(MOST), cut(bytes, [place]))).toEqual(['<event>1</event>', 'fault']);
      }
    }
  });

  it('is bounded: an event, and what stands between two', () => {
    const sized = (bytes: number): Buffer => Buffer.from(`<event>${'x'.repeat(bytes - 15)}</event>`);
    for (const parts of [(bytes: Buffer) => [bytes], single, (bytes: Buffer) => cut(bytes, [500])]) {
      expect(framesOf(new XmlFrames(MOST), parts(sized(MOST)))).toHaveLength(1);
      expect(framesOf(new XmlFrames(MOST), parts(sized(MOST + 1)))).toEqual(['fault']);
      expect(framesOf(new XmlFrames(MOST), parts(sized(MOST + 1).subarray(0, MOST + 1)))).toEqual(['fault']);
    }
    const noisy = (bytes: number): Buffer => Buffer.from(`${' '.repeat(bytes)}<event></event>`);
    const twice = Buffer.concat([noisy(MAX_NOISE_BYTES), noisy(MAX_NOISE_BYTES)]);
    for (const places of [[], [MAX_NOISE_BYTES + 3], [7, 1000]]) {
      expect(framesOf(new XmlFrames(MOST), cut(twice, places))).toHaveLength(2);
      expect(framesOf(new XmlFrames(MOST), cut(noisy(MAX_NOISE_BYTES + 1), places))).toEqual(['fault']);
    }
  });

  it('keeps nothing of what is between two events, and only the event that is not whole', () => {
    const reader = new XmlFrames(MOST);
    for (const [text, held] of [
      ['x'.repeat(500), 0],
      ['<event>', 7],
      ['123', 10],
      ['</event>x', 0],
    ] as const) {
      framesOf(reader, [Buffer.from(text)]);
      expect(reader.heldBytes).toBe(held);
    }
  });

  it('of 8 MB comes byte by byte in a time that grows with its length', () => {
    const reader = new XmlFrames(8_388_608);
    const took = (bytes: number): number => {
      const began = performance.now();
      for (const byte of ['<event>', ...Array(bytes).fill('<'), '</event>']) {
        reader.push(Buffer.from(byte));
        reader.next();
      }
      return performance.now() - began;
    };
    took(20_000);
    expect(took(400_000)).toBeLessThan(40 * (took(40_000) + 10));
  });

  it('leaves to the next framing what was not handed out', () => {
    const reader = new XmlFrames(MOST);
    reader.push(Buffer.from('<event>1</event>\r\n\xbf\x00', 'latin1'));
    expect(reader.next()?.toString()).toBe('<event>1</event>');
    expect(reader.rest().toString('latin1')).toBe('\r\n\xbf\x00');
    reader.push(Buffer.from('<event>'));
    expect(reader.next()).toBeUndefined();
    expect(reader.rest().toString()).toBe('<event>');
  });
});

describe('protobuf', () => {
  const message = (bytes: number): Buffer => frameOf(Buffer.alloc(bytes, 'm'));
  const PROTOBUF_PIECES = [
    message(0),
    message(1),
    message(127),
    message(128),
    message(MOST),
    message(MOST + 1),
    message(300).subarray(0, 299),
    Buffer.from([0xbf, 0x80, 0x00]),
    Buffer.from([0xbf, 0x81, 0x80, 0x80, 0x80, 0x00]),
    Buffer.from([0xbf]),
    Buffer.from([0]),
    Buffer.from([0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
    Buffer.from([0xbf, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]),
  ];

  it('is framed alike in whatever pieces it comes', () => {
    let faults = 0;
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...PROTOBUF_PIECES), { maxLength: 8 }), cuts, (pieces, places) => {
        const bytes = Buffer.concat(pieces);
        const whole = framesOf(new ProtobufFrames(MOST), [bytes]);
        faults += whole.at(-1) === 'fault' ? 1 : 0;
        expect(framesOf(new ProtobufFrames(MOST), cut(bytes, places))).toEqual(whole);
        expect(framesOf(new ProtobufFrames(MOST), single(bytes))).toEqual(whole);
      }),
      { numRuns: runs(700) },
    );
    expect(faults).toBeGreaterThan(runs(100));
  });

  it('is messages without their headers; an empty one is skipped', () => {
    const bytes = Buffer.concat([message(0), message(2), message(0), message(200)]);
    expect(framesOf(new ProtobufFrames(MOST), [bytes])).toEqual(['mm', 'm'.repeat(200)]);
    expect(framesOf(new ProtobufFrames(MOST), single(bytes))).toEqual(['mm', 'm'.repeat(200)]);
  });

  it('may have white space before the first message, which ends the request in XML, and nowhere else', () => {
    const begun = Buffer.concat([Buffer.from('\r\n \t'), message(2)]);
    const after = Buffer.concat([begun, Buffer.from('\n'), message(2)]);
    for (const cutting of [(bytes: Buffer) => [bytes], single]) {
      expect(framesOf(new ProtobufFrames(MOST), cutting(begun))).toEqual(['mm']);
      expect(framesOf(new ProtobufFrames(MOST), cutting(after))).toEqual(['mm', 'fault']);
    }
  });

  it('is refused with another first byte, a length of six bytes, or one that is too large', () => {
    for (const bytes of [
      [0],
      [0x3c],
      [0xbf, 0x80, 0x80, 0x80, 0x80, 0x80],
      [0xbf, 0xff, 0xff, 0xff, 0xff, 0x7f],
      [0xbf, 0xe9, 0x07],
    ]) {
      expect(framesOf(new ProtobufFrames(MOST), [Buffer.from(bytes)])).toEqual(['fault']);
      expect(framesOf(new ProtobufFrames(MOST), single(Buffer.from(bytes)))).toEqual(['fault']);
    }
    expect(framesOf(new ProtobufFrames(MOST), [message(MOST)])).toHaveLength(1);
  });

  it('keeps what has come, not what was announced', () => {
    const reader = new ProtobufFrames(8_388_608);
    framesOf(reader, [message(8_000_000).subarray(0, 100)]);
    expect(reader.heldBytes).toBe(100);
    expect(reader.rest()).toHaveLength(100);
  });

  it('goes on through many empty messages without going deeper', () => {
    const empty = Buffer.concat(Array.from({ length: 100_000 }, () => message(0)));
    expect(framesOf(new ProtobufFrames(MOST), [Buffer.from([0xbf]), empty.subarray(1), message(1)])).toEqual(['m']);
    expect(framesOf(new ProtobufFrames(MOST), single(empty.subarray(0, 20_000)))).toEqual([]);
  });
});
