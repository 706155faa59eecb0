// TakMessages, with the codec of a client library on the other side, both ways; and bytes that are
// no TakMessage.

import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import CoT, { CoTParser } from '@tak-ps/node-cot';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CotEvent, StreamFault } from '../model/stream.ts';
import * as control from '../stream/server-events.ts';
import { ProtobufFrames } from '../stream/wire/frames.ts';
import { decodeEvent } from '../stream/wire/protobuf-decode.ts';
import { readEvent } from '../stream/wire/xml-event.ts';
import { deliveryOf, serverEventProtobuf } from '../stream/wire/xml-write-event.ts';
import { SA } from './cot-grammar.ts';
import { runs } from '../../../test/support/runs.ts';

const STAMP = { time: '2026-11-22T06:00:00Z', tag: 'TAK-Server-1a2b' };
const FLOW = '<_flow-tags_ TAK-Server-1a2b="2026-11-22T06:00:00Z"/>';

/** The message in a frame. */
function messageOf(frame: Buffer): Buffer {
  const reader = new ProtobufFrames(1_000_000);
  reader.push(frame);
  return reader.next() as Buffer;
}

const encoded = (xml: string): Buffer =>
  messageOf(deliveryOf(readEvent(Buffer.from(xml)) as CotEvent, STAMP).protobuf());
const event = (detail: string): string =>
  SA.replace(/<detail>.*<\/detail>/, `<detail>${detail}</detail>`).replace(
    'version="2.0"',
    'version="2.0" access="Undefined"',
  );
/** The detail after there and back, without our flow tag. */
const roundTrip = (detail: string): string =>
  deliveryOf(decodeEvent(encoded(event(detail))) as CotEvent, STAMP)
    .detail()
    .replace(FLOW, '');

type Attributes = Record<string, unknown>;
interface Raw {
  event: {
    _attributes: Attributes;
    point: { _attributes: Attributes };
    detail: Record<string, { _attributes: Attributes }>;
  };
}
const rawOf = (cot: CoT): Raw => cot.raw as unknown as Raw;

describe('a TakMessage', () => {
  it('of ours says to the client library what the XML says', async () => {
    const detail =
      '<contact endpoint="*:-1:stcp" callsign="Zoë &amp; Co"/><__group name="Cyan" role="Team Member"/>' +
      '<takv device="X" platform="ATAK-CIV" os="33" version="5.3.0"/><status battery="85"/>' +
      '<track course="179.5" speed="1.25"/><remarks>on &lt;the&gt; way</remarks>';
    const raw = rawOf(await CoTParser.from_proto(encoded(event(detail))));
    expect(raw.event._attributes).toMatchObject({
      uid: 'ANDROID-1',
      type: 'a-f-G-U-C',
      how: 'm-g',
      access: 'Undefined',
      time: '2026-11-22T06:00:00.000Z',
      start: '2026-11-22T05:30:00.000Z',
      stale: '2026-11-22T05:36:15.000Z',
    });
    expect(raw.event.point._attributes).toEqual({ lat: 51.1, lon: 7.6, hae: 120.5, ce: 4.9, le: 9_999_999 });
    expect(raw.event.detail['contact']?._attributes).toMatchObject({ endpoint: '*:-1:stcp', callsign: 'Zoë & Co' });
    expect(raw.event.detail['__group']?._attributes).toMatchObject({ name: 'Cyan', role: 'Team Member' });
    expect(raw.event.detail['takv']?._attributes).toMatchObject({
      device: 'X',
      platform: 'ATAK-CIV',
      os: '33',
      version: '5.3.0',
    });
    expect(raw.event.detail['status']?._attributes).toMatchObject({ battery: '85' });
    expect(raw.event.detail['track']?._attributes).toMatchObject({ speed: '1.25', course: '179.5' });
    expect(raw.event.detail['remarks']).toEqual({ _text: 'on <the> way' });
    expect(raw.event.detail['_flow-tags_']?._attributes).toMatchObject({ 'TAK-Server-1a2b': STAMP.time });
  });

  it('of the client library says to us what its XML says', async () => {
    const detail =
      '<contact endpoint="*:-1:stcp" callsign="Zoë"/><status battery="85"/><track course="179.5" speed="1.25"/><remarks>x &lt; y</remarks>';
    const theirs = CoTParser.from_xml(event(detail));
    const read = decodeEvent(Buffer.from(await CoTParser.to_proto(theirs)));
    expect(read).toMatchObject({
      uid: 'ANDROID-1',
      type: 'a-f-G-U-C',
      how: 'm-g',
      access: 'Undefined',
      start: '2026-11-22T05:30:00.000Z',
      stale: '2026-11-22T05:36:15.000Z',
      point: { lat: 51.1, lon: 7.6, hae: 120.5, ce: 4.9, le: 9_999_999 },
    });
    expect(read?.detail('contact')?.attributes()).toEqual([
      ['endpoint', '*:-1:stcp'],
      ['callsign', 'Zoë'],
    ]);
    expect(read?.detail('status')?.attribute('battery')).toBe('85');
    expect(Number(read?.detail('track')?.attribute('speed'))).toBe(1.25);
    expect(read?.detail('remarks')?.text()).toBe('x < y');
  });

  it('keeps an element in XML unless it has exactly the attributes of its message, and nothing else', () => {
    const lifted = [
      '<contact endpoint="e" callsign="c"/>',
      '<__group name="n" role="r"></__group>',
      '<precisionlocation altsrc="a" geopointsrc="g"/>',
      '<status battery="0"/>',
      '<status battery="4294967295"/>',
      '<takv device="d" platform="p" os="o" version="v"/>',
      '<track speed="0.0" course="-12.50"/>',
      '<track speed="0.1234567890123456" course="1e+300"/>',
    ];
    const kept = [
      '<contact callsign="c"/>',
      '<contact endpoint="" callsign="c"/>',
      '<contact endpoint="e" callsign="c" phone="1"/>',
      '<contact endpoint="e" callsign="c"> </contact>',
      '<contact endpoint="e" callsign="c"><!-- x --></contact>',
      '<contact endpoint="e" callsign="c"/><contact endpoint="f" callsign="d"/>',
      '<__group name="n" role="r"><a/></__group>',
      '<status battery="085"/>',
      '<status battery="85.5"/>',
      '<status battery="4294967296"/>',
      '<status battery="-1"/>',
      '<status battery=""/>',
      '<track speed="fast" course="1"/>',
      '<track speed="0.12345678901234567890" course="1"/>',
      '<track speed="NaN" course="1"/>',
      '<track speed="1"/>',
      '<a><contact endpoint="e" callsign="c"/></a>',
    ];
    for (const detail of lifted) {
      expect([detail, encoded(event(detail)).toString('latin1').includes(detail.slice(0, 8))]).toEqual([detail, false]);
    }
    for (const detail of kept) {
      expect([detail, encoded(event(detail)).toString('latin1').includes(detail)]).toEqual([detail, true]);
      expect(roundTrip(detail)).toBe(`<detail>${detail}</detail>`);
    }
  });

  it('brings back the values that went in, and the order of all the rest', () => {
    expect(roundTrip('<a/>1<contact endpoint="&lt;&quot;&#10;" callsign="é"/>2<b/>')).toBe(
      '<detail><contact endpoint="&lt;&quot;&#10;" callsign="é"/><a/>12<b/></detail>',
    );
    expect(roundTrip(']]<status battery="1"/>>')).toBe('<detail><status battery="1"/>]]<!---->></detail>');
    expect(roundTrip('<marti><dest uid="x"/></marti><track speed="0" course="0.5"/>')).toBe(
      '<detail><track speed="0" course="0.5"/></detail>',
    );
    expect(roundTrip('')).toBe('<detail></detail>');
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (speed) => {
        const back = decodeEvent(encoded(event(`<track speed="${speed}" course="0"/>`)));
        expect(Number(back?.detail('track')?.attribute('speed'))).toBe(speed === 0 ? 0 : speed);
      }),
    );
  });

  it('leaves out times that are none', () => {
    const read = decodeEvent(
      encoded(SA.replace(/start="[^"]*" stale="[^"]*"/, 'start="soon" stale="1969-01-01T00:00:00Z"')),
    );
    expect([read?.start, read?.stale, read?.time]).toEqual([undefined, undefined, '2026-11-22T06:00:00.000Z']);
  });

  it('of the server itself is read by the client library', async () => {
    const frame = serverEventProtobuf(control.disconnected('gone', 'a-f'), new Date('2026-11-22T06:00:00.250Z'));
    const read = decodeEvent(messageOf(frame));
    expect(read).toMatchObject({
      type: 't-x-d-d',
      time: '2026-11-22T06:00:00.250Z',
      stale: '2026-11-22T06:01:00.250Z',
    });
    expect(read?.detail('link')?.attribute('uid')).toBe('gone');
    expect(rawOf(await CoTParser.from_proto(messageOf(frame))).event._attributes).toMatchObject({ type: 't-x-d-d' });
    expect(decodeEvent(messageOf(serverEventProtobuf(control.pong(), new Date())))).toMatchObject({ uid: 'takPong' });
  });
});

/** A message from fields of cotEvent (strings), of detail and of xmlDetail. */
function handmade(xmlDetail: string | Uint8Array, typed?: (writer: BinaryWriter) => void, uid = 'u'): Buffer {
  const writer = new BinaryWriter().tag(2, WireType.LengthDelimited).fork();
  writer.tag(1, WireType.LengthDelimited).string('t').tag(5, WireType.LengthDelimited).string(uid);
  writer.tag(15, WireType.LengthDelimited).fork();
  writer.tag(1, WireType.LengthDelimited).bytes(Buffer.from(xmlDetail));
  typed?.(writer);
  return Buffer.from(writer.join().join().finish());
}

const contact = (writer: BinaryWriter): unknown =>
  writer.tag(2, WireType.LengthDelimited).fork().tag(2, WireType.LengthDelimited).string('typed').join();

describe('what comes as protobuf', () => {
  it('loses a typed message to its element in xmlDetail, if that is a child of the detail', () => {
    const callsigns = (xml: string): (string | undefined)[] => {
      const read = decodeEvent(handmade(xml, contact));
      return [
        read?.detail('contact')?.attribute('callsign'),
        read && deliveryOf(read, STAMP).detail().split('<contact').length.toString(),
      ];
    };
    expect(callsigns('')).toEqual(['typed', '2']);
    expect(callsigns('<contact callsign="xml"/>')).toEqual(['xml', '2']);
    expect(callsigns('<a><contact callsign="xml"/></a>')).toEqual(['typed', '3']);
    expect(callsigns('<contacts/>')).toEqual(['typed', '3']);
    expect(callsigns('<!--<contact/>-->')).toEqual(['typed', '3']);
  });

  it('is no event without cotEvent, and may say things that we do not know', () => {
    const control = new BinaryWriter().tag(1, WireType.LengthDelimited).fork().tag(1, WireType.Varint).uint32(1).join();
    expect(decodeEvent(Buffer.from(control.finish()))).toBeUndefined();
    expect(decodeEvent(Buffer.alloc(0))).toBeUndefined();
    const unknown = new BinaryWriter()
      .tag(99, WireType.LengthDelimited)
      .string('x')
      .tag(3, WireType.Varint)
      .uint64(5)
      .finish();
    expect(decodeEvent(Buffer.concat([control.finish(), unknown, handmade('<a/>')]))).toMatchObject({
      uid: 'u',
      type: 't',
    });
    expect(decodeEvent(handmade('', undefined, ''))).toBeUndefined();
  });

  it('is a fault with an xmlDetail that is not well-formed by itself', () => {
    const bad = [
      '<a>',
      '</detail>',
      '</detail><detail>',
      '</detail></event><event><detail>',
      '<!--',
      '<![CDATA[',
      '<a b="',
    ];
    bad.push('&x;', '<!DOCTYPE a>', '<?xml version="1.0"?>', '\0', ']]>', '</detail><x/><detail>');
    for (const xml of bad) expect(() => decodeEvent(handmade(xml)), xml).toThrow(StreamFault);
    expect(() => decodeEvent(handmade(Buffer.from([0xc3, 0x28])))).toThrow(StreamFault);
    expect(() => decodeEvent(handmade('', undefined, 'a\0'))).toThrow(StreamFault);
    const name = handmade('', undefined, 'name');
    name[name.indexOf('name')] = 0xff;
    expect(() => decodeEvent(name)).toThrow(StreamFault);
    expect(() => decodeEvent(handmade('', undefined, '&'.repeat(70_000)))).toThrow(StreamFault);
  });

  it('escapes what a string holds', () => {
    const uid = '<&>"\' \n\té😀';
    expect(decodeEvent(handmade('<a/>', undefined, uid))?.uid).toBe(uid);
  });

  it('is read, refused or no event, whatever the bytes', () => {
    const whole = encoded(SA);
    const kinds = new Map<string, number>();
    const check = (bytes: Buffer): void => {
      let kind = 'fault';
      try {
        const read = decodeEvent(bytes);
        kind = read === undefined ? 'none' : 'event';
        if (read !== undefined)
          readEvent(
            Buffer.from(`<event uid="u" type="t"><point lat="0" lon="0"/>${deliveryOf(read, STAMP).detail()}</event>`),
          );
      } catch (thrown) {
        if (!(thrown instanceof StreamFault)) throw thrown;
      }
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    };
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat(), fc.nat(255), (garbage, place, byte) => {
        check(Buffer.from(garbage));
        check(Buffer.concat([Buffer.from([0x12, garbage.length]), garbage]));
        const changed = Buffer.from(whole);
        changed[place % whole.length] = byte;
        check(changed);
        check(whole.subarray(0, place % whole.length));
      }),
      { numRuns: runs(1500) },
    );
    for (const kind of ['fault', 'none', 'event']) expect(kinds.get(kind)).toBeGreaterThan(runs(100));
  });
});
