// Answers of a directory, however they are cut, and bytes that are none.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { answerReader, type LdapAnswer, NoAnswer } from '../../shared/sign-in/ldap/answers.ts';
import { BIND, done, entry, message, SEARCH, tlv } from './fake-ldap-server.ts';

function readAll(chunks: Buffer[]): LdapAnswer[] {
  const read = answerReader();
  return chunks.flatMap((chunk) => [...read(chunk)]);
}

function cut(bytes: Buffer, places: number[]): Buffer[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
}

const MESSAGES = Buffer.concat([
  done(1, BIND, 49, 'no'),
  entry(2_000_000, 'cn=ä', { CN: ['ä', 'b'], memberOf: [], 'ak-active': ['TRUE'], x: ['y'.repeat(300)] }),
  message(3, tlv(0x73, tlv(4, 'ldap://elsewhere'))),
  done(4, SEARCH, 0),
  done(0, 0x78, 52),
]);
const MEANT = [
  { id: 1, kind: 'bound', code: 49 },
  {
    id: 2_000_000,
    kind: 'entry',
    entry: {
      dn: 'cn=ä',
      attributes: new Map([
        ['cn', ['ä', 'b']],
        ['memberof', []],
        ['ak-active', ['TRUE']],
        ['x', ['y'.repeat(300)]],
      ]),
    },
  },
  { id: 3, kind: 'reference' },
  { id: 4, kind: 'searched', code: 0 },
  { id: 0, kind: 'extended', code: 52 },
];

describe('answers', () => {
  it('are the same however they are cut', () => {
    expect(readAll([MESSAGES])).toEqual(MEANT);
    expect(readAll(cut(MESSAGES, [...MESSAGES.keys()]))).toEqual(MEANT);
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 20 }), (places) => {
        expect(readAll(cut(MESSAGES, places))).toEqual(MEANT);
      }),
    );
  });

  it('carry no value that is no text', () => {
    const bytes = entry(1, 'cn=a', { cn: ['a'], photo: ['JPEG', 'text'] });
    bytes.set([0xff, 0xd8, 0xff, 0xe0], bytes.indexOf('JPEG'));
    expect(readAll([bytes])).toMatchObject([
      {
        entry: {
          attributes: new Map([
            ['cn', ['a']],
            ['photo', ['text']],
          ]),
        },
      },
    ]);
  });

  it('that are damaged anywhere are read to an end, or are told to be none', () => {
    const damage = fc.array(fc.tuple(fc.nat({ max: MESSAGES.length - 1 }), fc.nat({ max: 255 })), { maxLength: 6 });
    fc.assert(
      fc.property(damage, fc.array(fc.nat(), { maxLength: 3 }), (changes, places) => {
        const bytes = Buffer.from(MESSAGES);
        for (const [at, value] of changes) bytes[at] = value;
        expectAnswersOrNone(cut(bytes, places));
      }),
      { numRuns: 5000 },
    );
  });

  it('are not made of any bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 4 }), (chunks) => {
        expectAnswersOrNone(chunks.map((chunk, at) => Buffer.from(at === 0 ? [0x30, ...chunk] : chunk)));
      }),
      { numRuns: 5000 },
    );
  });
});

function expectAnswersOrNone(chunks: Buffer[]): void {
  try {
    for (const { id, kind } of readAll(chunks)) expect([Number.isInteger(id), typeof kind]).toEqual([true, 'string']);
  } catch (error) {
    expect(error).toBeInstanceOf(NoAnswer);
  }
}
