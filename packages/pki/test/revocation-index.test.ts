import fc from 'fast-check';
import { expect, it } from 'vitest';
import { formatDistinguishedName } from '@holdfast/kit/distinguished-name';
import { indexText, readIndex } from '../crl.ts';
import { anyCharacter } from '../../../test/support/runs.ts';

const seconds = (min: string, max: string) =>
  fc.date({ min: new Date(min), max: new Date(max), noInvalidDate: true }).map((date) => {
    date.setUTCMilliseconds(0);
    return date;
  });
const part = fc.record({
  type: fc.constantFrom('CN', 'O', 'OU', '2.5.4.5'),
  value: fc.string({ unit: anyCharacter, minLength: 1 }),
});
const subject = fc
  .array(fc.array(part, { minLength: 1, maxLength: 2 }), { maxLength: 4 })
  .map((parts) => formatDistinguishedName(parts));
const entry = fc.record({
  serial: fc.bigInt({ min: 1n, max: 2n ** 127n }).map((number) => number.toString(16)),
  revokedAt: seconds('1980-01-01', '2049-12-31'),
  expiresAt: seconds('2000-01-01', '2120-01-01'),
  subject,
});

it('whatever is written to the index is read back', () => {
  fc.assert(
    fc.property(fc.array(entry), (revoked) => {
      expect(readIndex(indexText(revoked))).toEqual({ revoked, damaged: [] });
    }),
  );
});

it('keeps a byte order mark at the head of a name', () => {
  const revoked = [
    { serial: '1', revokedAt: new Date(0), expiresAt: new Date('2050-01-01T00:00:00Z'), subject: 'CN=\uFEFFada' },
  ];
  expect(readIndex(indexText(revoked))).toEqual({ revoked, damaged: [] });
});

it('no name makes a second line, a further column or another entry', () => {
  const base = { serial: '4a', revokedAt: new Date(0), expiresAt: new Date('2050-01-01T00:00:00Z') };
  const text = indexText([
    { ...base, subject: String.raw`CN=a\0Ab\09c/O=d` },
    { ...base, subject: 'no name at all\n' },
  ]);
  expect(text).toBe(
    String.raw`R|20500101000000Z|700101000000Z|4A|unknown|/CN=a\x0Ab\x09c\x2FO=d`.replaceAll('|', '\t') +
      '\n' +
      String.raw`R|20500101000000Z|700101000000Z|4A|unknown|/CN=no name at all\x0A`.replaceAll('|', '\t') +
      '\n',
  );
});

it('lines of OpenSSL count: valid and expired ones are passed over, a reason does no harm, others are told', () => {
  const lines = [
    'V\t271122000000Z\t\t01\tunknown\t/CN=ada',
    'R\t271122000000Z\t261122000000Z,keyCompromise\t0A\tunknown\t/O=Holdfast/CN=bob',
    'E\t201122000000Z\t\t02\tunknown\t/CN=eve',
    'R\t271122000000Z\tsoon\t0B\tunknown\t/CN=x',
  ];
  expect(readIndex(lines.join('\n'))).toEqual({
    revoked: [
      {
        serial: 'a',
        revokedAt: new Date('2026-11-22T00:00:00Z'),
        expiresAt: new Date('2027-11-22T00:00:00Z'),
        subject: 'CN=bob,O=Holdfast',
      },
    ],
    damaged: [lines[3]],
  });
});
