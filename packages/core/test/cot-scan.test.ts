// The scanner accepts and refuses what a maintained parser does; what it refuses is a StreamFault,
// in linear time.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StreamFault } from '../model/stream.ts';
import { MAX_ATTRIBUTES, MAX_CHILDREN, MAX_DEPTH, scan } from '../stream/wire/xml-scan.ts';
import { isAccepted, nearlyEvent, PIECES, randomOf, SA } from './cot-grammar.ts';
import { runs } from '../../../test/support/runs.ts';

function accepts(bytes: Buffer): boolean {
  try {
    scan(bytes);
    return true;
  } catch (thrown) {
    if (!(thrown instanceof StreamFault)) throw thrown;
    return false;
  }
}

const both = (bytes: Buffer): [boolean, boolean] => [accepts(bytes), isAccepted(bytes)];

describe('the scanner and the parser', () => {
  it('agree on each piece inside an event', () => {
    for (const piece of PIECES) {
      for (const text of [
        piece,
        `${piece}</a>`,
        `<a${piece}>`,
        `<a b="${piece}"/>`,
        `<!--${piece}-->`,
        `<![CDATA[${piece}]]>`,
      ]) {
        const bytes = Buffer.from(`<event>${text}</event>`);
        expect([text, ...both(bytes)]).toEqual([text, isAccepted(bytes), isAccepted(bytes)]);
      }
    }
  });

  it('agree on every code point in text, in a value, in a name and at the beginning of one', () => {
    const wrong: string[] = [];
    const codes = [...Array(0x3100).keys(), 0xd7ff, 0xe000, 0xf8ff, 0xf900, 0xfdcf, 0xfdd0, 0xfdef, 0xfdf0, 0xfeff];
    codes.push(0xfffd, 0xfffe, 0xffff, 0x10000, 0x1fffe, 0xeffff, 0xf0000, 0x10ffff);
    for (const code of codes) {
      if (code >= 0x400 && code < 0x1f00 && code % 16 > 0) continue;
      const char = String.fromCodePoint(code);
      for (const text of [char, `<a b="${char}"/>`, `<a${char}/>`, `<${char}/>`, `<a ${char}=""/>`, `<?${char}a?>`]) {
        const [ours, theirs] = both(Buffer.from(`<event>${text}</event>`));
        if (ours !== theirs) wrong.push(`${code.toString(16)} in ${text}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it('agree on events that are nearly well-formed', () => {
    let accepted = 0;
    const times = runs(6000);
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const bytes = nearlyEvent(randomOf(seed));
        const [ours, theirs] = both(bytes);
        accepted += theirs ? 1 : 0;
        if (ours !== theirs) throw new Error(`ours ${ours}, theirs ${theirs}: ${JSON.stringify(bytes.toString())}`);
      }),
      { numRuns: times },
    );
    expect(accepted).toBeGreaterThan(times / 5);
    expect(accepted).toBeLessThan((4 * times) / 5);
  });

  it('agree on any pieces in a row', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...PIECES), { maxLength: 6 }), (pieces) => {
        const [ours, theirs] = both(Buffer.from(`<event>${pieces.join('')}</event>`));
        return ours === theirs;
      }),
      { numRuns: runs(2000) },
    );
  });

  it('agree on bytes that are no UTF-8', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 6 }), (bytes) => {
        const [ours, theirs] = both(Buffer.concat([Buffer.from('<event>'), bytes, Buffer.from('</event>')]));
        return ours === theirs;
      }),
      { numRuns: runs(1000) },
    );
    for (const bytes of [[0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82], [0xff]]) {
      expect(accepts(Buffer.concat([Buffer.from('<event>'), Buffer.from(bytes), Buffer.from('</event>')]))).toBe(false);
    }
  });
});

describe('the limits of the scanner', () => {
  const nestedTo = (depth: number): Buffer =>
    Buffer.from(`<event>${'<a>'.repeat(depth - 1)}${'</a>'.repeat(depth - 1)}</event>`);

  it(`are ${MAX_DEPTH} elements in one another`, () => {
    expect(both(nestedTo(MAX_DEPTH))).toEqual([true, true]);
    expect(both(nestedTo(MAX_DEPTH + 1))).toEqual([false, false]);
    expect(accepts(nestedTo(1_000_000))).toBe(false);
  });

  it(`are ${MAX_ATTRIBUTES} attributes in a tag, all different`, () => {
    const withAttributes = (names: string[]): Buffer =>
      Buffer.from(`<event><a ${names.map((name) => `${name}=""`).join(' ')}/></event>`);
    const names = Array.from({ length: MAX_ATTRIBUTES }, (_, k) => `a${k}`);
    expect(both(withAttributes(names))).toEqual([true, true]);
    expect(accepts(withAttributes([...names, 'b']))).toBe(false);
    for (const many of [2, 8, 16, 17, 18, 100]) {
      expect(both(withAttributes(names.slice(0, many)))).toEqual([true, true]);
      expect(both(withAttributes([...names.slice(0, many - 1), 'a0']))).toEqual([false, false]);
    }
  });

  it(`are ${MAX_CHILDREN} elements in the detail`, () => {
    const withChildren = (count: number): Buffer =>
      Buffer.from(`<event><b/><detail>${'<a><b/></a>'.repeat(count)}</detail><b/></event>`);
    expect(accepts(withChildren(MAX_CHILDREN))).toBe(true);
    expect(accepts(withChildren(MAX_CHILDREN + 1))).toBe(false);
  });

  it('are a DOCTYPE and entities of its own: neither is read', () => {
    const bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;">]>';
    expect(() => scan(Buffer.from(`<event>${bomb}</event>`))).toThrow(StreamFault);
    expect(() => scan(Buffer.from('<event>&b;</event>'))).toThrow(/unknown entity/);
  });

  it('are said without a word of the sender', () => {
    for (const text of ['<secret>', '&secret;', '<a secret="1" secret="1"/>', '</secret>', '<?xml secret?>']) {
      const messages: string[] = [];
      try {
        scan(Buffer.from(`<event>${text}</event>`));
      } catch (thrown) {
        messages.push(String(thrown));
      }
      expect(messages).toEqual([expect.stringMatching(/^StreamFault: XML is not well-formed: (?!.*secret)/)]);
    }
  });

  it('let 2 MB of anything be read in a time that grows with its length', () => {
    const fill = (piece: string): Buffer =>
      Buffer.from(`<event>${piece.repeat(Math.floor(2_000_000 / piece.length))}</event>`);
    for (const piece of [
      '<a/>',
      ']]',
      '&amp;',
      '<a b="c" d="e"/>',
      '<!---->',
      '<![CDATA[x]]>',
      '<?x?>',
      'é',
      '<a></a>',
    ]) {
      const bytes = fill(piece);
      const before = process.cpuUsage();
      expect(accepts(bytes)).toBe(true);
      expect(process.cpuUsage(before).user).toBeLessThan(2_000_000);
    }
    for (const piece of ['<a', '&', '<!--', '<![CDATA[', '<?x ', '</', '<a b="', ']]>'])
      expect(accepts(fill(piece))).toBe(false);
  });
});

it('an event of a client is well-formed', () => {
  expect(both(Buffer.from(SA))).toEqual([true, true]);
});
