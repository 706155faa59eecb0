// Distinguished names: the examples of RFC 4514, and values that try to be more than one value.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  escapeNameValue,
  formatDistinguishedName,
  isDistinguishedName,
  normalName,
  parseDistinguishedName,
  partsAbove,
} from '../ldap/distinguished-name.ts';
import { anyCharacter, runs } from '../../../test/support/runs.ts';

const BASE = 'ou=users,DC=core,DC=holdfast';

function parsed(text: string) {
  const parts = parseDistinguishedName(text);
  if (parts === undefined) throw new Error(`${text} is no name`);
  return parts;
}

describe('a distinguished name', () => {
  it.each([
    ['UID=jsmith,DC=example,DC=net', [['UID=jsmith'], ['DC=example'], ['DC=net']]],
    ['OU=Sales+CN=J.  Smith,DC=example,DC=net', [['OU=Sales', 'CN=J.  Smith'], ['DC=example'], ['DC=net']]],
    [String.raw`CN=James \"Jim\" Smith\, III,DC=example`, [['CN=James "Jim" Smith, III'], ['DC=example']]],
    [String.raw`CN=Before\0dAfter,DC=example`, [['CN=Before\rAfter'], ['DC=example']]],
    [String.raw`CN=Lu\C4\8Di\C4\87`, [['CN=Lučić']]],
    ['cn = alice , ou = users', [['cn=alice'], ['ou=users']]],
    [String.raw`cn=a\ ,ou=b`, [['cn=a '], ['ou=b']]],
    [String.raw`cn=a\\ ,ou=b`, [['cn=a\\'], ['ou=b']]],
    [String.raw`cn=\  \ ,ou=b`, [['cn=   '], ['ou=b']]],
    ['2.5.4.3=alice', [['2.5.4.3=alice']]],
    ['cn=a=b', [['cn=a=b']]],
    ['cn=🦊\n', [['cn=🦊\n']]],
  ])('reads %s', (text, expected) => {
    expect(parsed(text).map((part) => part.map(({ type, value }) => `${type}=${value}`))).toEqual(expected);
  });

  it.each([
    'alice',
    '=alice',
    'cn=',
    'cn= ',
    'cn=alice,',
    ',cn=alice',
    'cn=alice,,ou=users',
    'cn=alice+',
    'cn=a"b',
    'cn=a;b',
    'cn=a<b',
    'cn=a\0b',
    'cn=alice\\',
    String.raw`cn=a\zz`,
    String.raw`cn=a\C4`,
    'cn=#04024869',
    '1.4.=a',
    'c n=a',
    'cn=\uD800',
  ])('is not %j', (text) => {
    expect(parseDistinguishedName(text)).toBeUndefined();
    expect(isDistinguishedName(text)).toBe(false);
  });

  it('is empty text for the root, which is a name, but none that names anything', () => {
    expect(parseDistinguishedName('')).toEqual([]);
    expect(isDistinguishedName('')).toBe(false);
  });

  it('is read in a time that grows with its length only', () => {
    const before = process.cpuUsage();
    parseDistinguishedName(`cn=${' '.repeat(200_000)}x${' '.repeat(200_000)}`);
    parseDistinguishedName(`cn=${'\\ '.repeat(200_000)}`);
    parseDistinguishedName(`cn=${'\\'.repeat(200_001)}`);
    expect(process.cpuUsage(before).user).toBeLessThan(2_000_000);
  });
});

describe('a value in a distinguished name', () => {
  it('stays that value and one value, whatever it is', () => {
    const value = fc.string({ unit: anyCharacter, minLength: 1 });
    fc.assert(
      fc.property(value, (text) => {
        const name = `cn=${escapeNameValue(text)},${BASE}`;
        expect(partsAbove(parsed(name), parsed(BASE))).toEqual([[{ type: 'cn', value: text }]]);
      }),
      { numRuns: runs(2000) },
    );
  });

  it('stays that value when it is made of special characters only', () => {
    const special = fc.constantFrom(...(' #,+"\\<>;=\0\n\r*()/aé🦊0'.match(/./gsu) ?? []));
    fc.assert(
      fc.property(fc.array(special, { minLength: 1, maxLength: 12 }), (characters) => {
        const text = characters.join('');
        expect(parsed(`cn=${escapeNameValue(text)},${BASE}`)[0]).toEqual([{ type: 'cn', value: text }]);
        const joined = `cn=${escapeNameValue(text)}+uid=${escapeNameValue(text)}`;
        expect(formatDistinguishedName(parsed(joined))).toBe(joined);
      }),
      { numRuns: runs(5000) },
    );
  });

  it.each([
    ['alice,ou=users', String.raw`alice\,ou\=users`],
    ['alice+uid=x', String.raw`alice\+uid\=x`],
    [' alice ', String.raw`\ alice\ `],
    [' ', String.raw`\ `],
    ['  ', String.raw`\ \ `],
    ['#alice', String.raw`\#alice`],
    ['a#', 'a#'],
    ['a\0', String.raw`a\00`],
    ['a\\', String.raw`a\\`],
    ['a"<>;', String.raw`a\"\<\>\;`],
    ['*)(cn=*', String.raw`*)(cn\=*`],
  ])('%j is written %s', (value, expected) => {
    expect(escapeNameValue(value)).toBe(expected);
    expect(parsed(`cn=${expected}`)[0]).toEqual([{ type: 'cn', value }]);
  });

  it('cannot be half a character', () => {
    expect(parseDistinguishedName(`cn=${escapeNameValue('a\uD800')},${BASE}`)).toBeUndefined();
  });
});

describe('two names', () => {
  it('are the same whatever the case, the blanks in a row, and the order of joined pairs', () => {
    const same = ['CN=A  b+OU=x,dc=Core', 'ou=X + cn=a b,DC=core'];
    expect(new Set(same.map((text) => normalName(parsed(text)))).size).toBe(1);
    expect(normalName(parsed('cn=b+cn=a'))).toBe(normalName(parsed('cn=a+cn=b')));
  });

  it('differ when a separator is escaped in one of them', () => {
    expect(normalName(parsed(String.raw`cn=a\,ou=b`.replace('ou=', String.raw`ou\=`)))).not.toBe(
      normalName(parsed('cn=a,ou=b')),
    );
  });

  it('stand above one another only with whole parts', () => {
    expect(partsAbove(parsed(`cn=a,ou=deep,${BASE}`), parsed(BASE))).toHaveLength(2);
    expect(partsAbove(parsed('cn=a,OU=Users,dc=CORE,dc=holdfast'), parsed(BASE))).toHaveLength(1);
    expect(partsAbove(parsed(BASE), parsed(BASE))).toEqual([]);
    expect(partsAbove(parsed('cn=a,ou=users,DC=web,DC=holdfast'), parsed(BASE))).toBeUndefined();
    expect(partsAbove(parsed(`cn=${escapeNameValue(`a,${BASE}`)},DC=other`), parsed(BASE))).toBeUndefined();
    expect(partsAbove(parsed('DC=holdfast'), parsed(BASE))).toBeUndefined();
  });
});
