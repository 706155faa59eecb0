// The parts of the identity provider that need no database: durations, keys, password hashes,
// queries, times.

import { argon2Sync, pbkdf2Sync } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import { readTime } from '../http/body.ts';
import { ceilingMs } from '../http/tokens.ts';
import { identityKeys, newKey } from '../model/keys.ts';
import { nameKey, readDuration, whyNotKept } from '../model/names.ts';
import { hashPassword, isOutdated, isPasswordOf, readPasswordHash } from '../model/password-hash.ts';
import { AttributeQueryFault, readAttributeQuery } from '../store/attribute-query.ts';
import { slugOf } from '../store/store.ts';

const DAY = 86_400_000;

describe('a duration', () => {
  it.each([
    ['days=7', 7 * DAY],
    ['days=7;hours=12', 7.5 * DAY],
    [' weeks = 1 ; minutes=30 ', 7 * DAY + 1_800_000],
    ['seconds=0.5', 500],
    ['milliseconds=3', 3],
    ['days=999999999', 36_525 * DAY],
  ])('%j is %d ms', (text, ms) => {
    expect(readDuration(text)).toBe(ms);
  });

  it.each([
    '',
    'days',
    'days=',
    'days=-1',
    'days=0',
    'days=1;',
    'fortnights=1',
    'toString=1',
    'days=1e9',
    7,
    null,
    undefined,
  ])('%j is none', (text) => {
    expect(readDuration(text)).toBeUndefined();
  });

  it('never gives anything but a whole number of ms above zero, whatever the text', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.stringMatching(/^(days|hours|weeks)=[0-9.]{1,9}(;minutes=\d{1,9})?$/)),
        (text) => {
          const ms = readDuration(text);
          return ms === undefined || (Number.isSafeInteger(ms) && ms > 0);
        },
      ),
    );
  });
});

describe('the ceiling of app passwords', () => {
  const name = 'goauthentik.io/user/token-maximum-lifetime';
  const group = (value: string) => ({
    uuid: '',
    num_pk: 1,
    name: '',
    is_superuser: false,
    attributes: { [name]: value },
  });

  it('is one day, or the largest of the user and its groups', () => {
    expect(ceilingMs({ attributes: {}, groups: [] })).toBe(DAY);
    expect(ceilingMs({ attributes: { [name]: 'nonsense' }, groups: [] })).toBe(DAY);
    expect(ceilingMs({ attributes: { [name]: 'days=3' }, groups: [group('days=9'), group('hours=1')] })).toBe(9 * DAY);
    expect(ceilingMs({ attributes: { [name]: 'hours=1' }, groups: [] })).toBe(3_600_000);
  });
});

describe('keys of tokens', () => {
  const keys = identityKeys(new Secret('a secret that is long enough: 0123456789'));
  const others = identityKeys(new Secret('another secret, just as long: 0123456789'));

  it('are 60 letters and digits, never the same', () => {
    const made = Array.from({ length: 200 }, newKey);
    expect(made.every((key) => /^[A-Za-z0-9]{60}$/.test(key))).toBe(true);
    expect(new Set(made).size).toBe(200);
  });

  it('open as they were sealed, and only with the same secret and for the same token', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.uuid(), fc.uuid(), (key, uuid, other) => {
        const sealed = keys.seal(key, uuid);
        expect(keys.open(sealed, uuid)).toBe(key);
        expect(others.open(sealed, uuid)).toBeUndefined();
        if (other !== uuid) expect(keys.open(sealed, other)).toBeUndefined();
      }),
    );
  });

  it('do not open when any bit of the sealed text has changed, or it is cut off', () => {
    const sealed = keys.seal('key', 'uuid');
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const damaged = Buffer.from(sealed);
      damaged[bit >> 3]! ^= 1 << (bit & 7);
      expect(keys.open(damaged, 'uuid')).toBeUndefined();
    }
    for (let length = 0; length < sealed.length; length++) {
      expect(keys.open(sealed.subarray(0, length), 'uuid')).toBeUndefined();
    }
  });

  it('are sealed differently each time, and found by the same digest', () => {
    expect(keys.seal('key', 'uuid').equals(keys.seal('key', 'uuid'))).toBe(false);
    expect(keys.digest('key').equals(keys.digest('key'))).toBe(true);
    expect(keys.digest('key').equals(others.digest('key'))).toBe(false);
  });

  it('give an account a uid of 64 hexadecimal digits that hangs on the secret', () => {
    expect(keys.uid(7)).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set([keys.uid(7), keys.uid(8), others.uid(7)]).size).toBe(3);
    expect(identityKeys(new Secret('a secret that is long enough: 0123456789')).uid(7)).toBe(keys.uid(7));
  });

  it('are not made of a short secret', () => {
    expect(() => identityKeys(new Secret('too short'))).toThrow(/at least 32/);
  });
});

const plain = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '');

function argon2Text(password: string, memory = 19_456, passes = 2, parallelism = 1): string {
  const nonce = Buffer.from('0123456789abcdef');
  const tag = argon2Sync('argon2id', { message: password, nonce, memory, passes, parallelism, tagLength: 32 });
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${plain(nonce)}$${plain(tag)}`;
}

const pbkdf2Text = (password: string, iterations: number): string =>
  `pbkdf2_sha256$${iterations}$salt42$${pbkdf2Sync(password, 'salt42', iterations, 32, 'sha256').toString('base64')}`;

describe('a password hash', () => {
  it('of our own is argon2id with its parameters, salted, and up to date', async () => {
    const [one, two] = await Promise.all([hashPassword('secret'), hashPassword('secret')]);
    expect(one).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    expect(one).not.toBe(two);
    const hash = readPasswordHash(one);
    expect(hash).toBeDefined();
    expect(isOutdated(hash!)).toBe(false);
    expect(await isPasswordOf(hash!, 'secret')).toBe(true);
    expect(await isPasswordOf(hash!, 'Secret')).toBe(false);
  });

  it.each(['', ' ', 'a\0b', 'a\0', '💧'.repeat(256), 'é', 'é'])('fits only the very password: %j', async (password) => {
    const hash = readPasswordHash(await hashPassword(password));
    expect(await isPasswordOf(hash!, password)).toBe(true);
    expect(await isPasswordOf(hash!, `${password}\0`)).toBe(false);
    expect(await isPasswordOf(hash!, password.slice(0, -1) + '~')).toBe(false);
  });

  it.each([
    ['PHC', argon2Text('pw'), false],
    ['PHC with other costs', argon2Text('pw', 8192, 3), true],
    ['Django argon2id', `argon2${argon2Text('pw', 102_400, 2, 8)}`, true],
    ['Django PBKDF2', pbkdf2Text('pw', 20_000), true],
  ])('of the form %s is checked', async (_, text, outdated) => {
    const hash = readPasswordHash(text);
    expect(hash).toBeDefined();
    expect([await isPasswordOf(hash!, 'pw'), await isPasswordOf(hash!, 'pw2')]).toEqual([true, false]);
    expect(isOutdated(hash!)).toBe(outdated);
  });

  const good = argon2Text('pw');
  it.each([
    '',
    'pw',
    '!unusable',
    'md5$salt$hash',
    'bcrypt_sha256$$2b$12$abc',
    good.replace('argon2id', 'argon2i'),
    good.replace('v=19', 'v=16'),
    good.replace('m=19456', 'm=1024'),
    good.replace('m=19456', 'm=4194304'),
    good.replace('m=19456,t=2', 'm=131072,t=10'),
    good.replace('t=2', 't=0'),
    good.replace('t=2', 't=11'),
    good.replace('p=1', 'p=0'),
    good.replace('p=1', 'p=17'),
    good.replace('m=19456,t=2,p=1', 't=2,m=19456,p=1'),
    `${good}\n`,
    `${good}=`,
    good.slice(0, -30),
    pbkdf2Text('pw', 9999),
    pbkdf2Text('pw', 20_000).replace('20000', '2000001'),
    pbkdf2Text('pw', 20_000).replace('20000', '-1'),
    pbkdf2Text('pw', 20_000).slice(0, -4),
  ])('is not read from %j', (text) => {
    expect(readPasswordHash(text)).toBeUndefined();
  });

  it('is read from no text without throwing', () => {
    fc.assert(fc.property(fc.string(), (text) => readPasswordHash(text) === undefined));
  });
});

describe('a query on attributes', () => {
  it('is read key by key', () => {
    expect(readAttributeQuery('{"a":1,"b__c__lt":2.5,"d__isnull":true,"e__in":[1,"x"],"f":null,"exact":1}')).toEqual([
      { path: ['a'], lookup: 'exact', value: 1 },
      { path: ['b', 'c'], lookup: 'lt', value: 2.5 },
      { path: ['d'], lookup: 'isnull', value: true },
      { path: ['e'], lookup: 'in', value: [1, 'x'] },
      { path: ['f'], lookup: 'exact', value: null },
      { path: ['exact'], lookup: 'exact', value: 1 },
    ]);
  });

  it.each([
    '',
    '{',
    '[]',
    '1',
    'null',
    '"a"',
    '{"a__regex":"(a+)+$"}',
    '{"__lt":1}',
    '{"a____b":1}',
    '{"":1}',
    '{"a__isnull":1}',
    '{"a__in":1}',
    '{"a__icontains":[1]}',
    String.raw`{"a":"\u0000"}`,
    String.raw`{"\u0000":1}`,
    String.raw`{"a":"\ud800"}`,
    '{"a":1e999}',
    `{"a":${'['.repeat(100)}${']'.repeat(100)}}`,
    JSON.stringify(Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`k${index}`, 1]))),
    `{"${'a__'.repeat(20)}a":1}`,
  ])('is refused: %s', (text) => {
    expect(() => readAttributeQuery(text)).toThrow(AttributeQueryFault);
  });

  it('never fails in another way', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        try {
          readAttributeQuery(text);
        } catch (error) {
          expect(error).toBeInstanceOf(AttributeQueryFault);
        }
      }),
    );
  });
});

describe('names', () => {
  it('are the same without case and however accents are written', () => {
    expect(nameKey('ÄNNE')).toBe(nameKey('änne'));
    expect(nameKey('É')).toBe(nameKey('é'));
    expect(nameKey('a')).not.toBe(nameKey('b'));
  });

  it.each([
    ['My Service', 'my-service'],
    ['Näh Maschine_2', 'nah-maschine_2'],
    ['--a  --  b--', 'a-b'],
    ['a.b@c', 'abc'],
    ['Ж', ''],
  ])('%j is %j in an identifier', (name, slug) => {
    expect(slugOf(name)).toBe(slug);
  });
});

describe('free JSON', () => {
  it('may be anything that the database keeps', () => {
    expect(whyNotKept({ a: [1, 'x', null, true, { b: {} }] })).toBeUndefined();
    expect(whyNotKept({ a: 'x\0' })).toMatch(/Null/);
    expect(whyNotKept({ 'x\0': 1 })).toMatch(/Null/);
    expect(whyNotKept({ a: ['\ud800'] })).toMatch(/broken/);
    expect(whyNotKept({ a: Number.POSITIVE_INFINITY })).toMatch(/range/);
    expect(whyNotKept(JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`))).toMatch(/deeper/);
  });
});

describe('a time', () => {
  it.each([
    ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05.000Z'],
    ['2026-01-02T03:04:05.123456Z', '2026-01-02T03:04:05.123Z'],
    ['2026-01-02T03:04:05+02:00', '2026-01-02T01:04:05.000Z'],
    ['2026-01-02T03:04:05+0200', '2026-01-02T01:04:05.000Z'],
    ['2026-01-02 03:04', '2026-01-02T03:04:00.000Z'],
  ])('%s is %s', (text, iso) => {
    expect(readTime(text)?.toISOString()).toBe(iso);
  });

  it.each([
    '',
    'now',
    '2026',
    '2026-13-01T00:00Z',
    '0000-01-01T00:00Z',
    '0001-01-01T00:00+14:00',
    '2026-01-02T03:04:05Zx',
    '+010000-01-01T00:00Z',
  ])('%j is none', (text) => {
    expect(readTime(text)).toBeUndefined();
  });
});
