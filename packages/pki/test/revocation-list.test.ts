// A revocation list taken apart: what OpenSSL-made lists hold is tested with the files of the core; here, what is no list.

import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { DerError } from '@holdfast/kit/tlv';
import { runs } from '../../../test/support/runs.ts';
import { readRevocationList } from '../revocation-list.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const THIS_UPDATE = new Date('2049-12-31T23:59:59Z');
const NEXT_UPDATE = new Date('2050-01-07T00:00:00Z');
let der: Uint8Array<ArrayBuffer>;

beforeAll(async () => {
  const { privateKey } = await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const list = await x509.X509CrlGenerator.create({
    issuer: 'CN=Some CA',
    thisUpdate: THIS_UPDATE,
    nextUpdate: NEXT_UPDATE,
    entries: [{ serialNumber: '00ff01', revocationDate: THIS_UPDATE }],
    extensions: [new x509.Extension('2.5.29.20', false, Uint8Array.from([2, 2, 1, 0]))],
    signingAlgorithm: ALGORITHM,
    signingKey: privateKey,
  });
  der = new Uint8Array(list.rawData);
});

function readAll(bytes: Uint8Array<ArrayBuffer>) {
  const list = readRevocationList(bytes);
  const { thisUpdate, nextUpdate, algorithm } = list;
  return { thisUpdate, nextUpdate, algorithm, number: list.number(), revoked: list.revoked() };
}

describe('a revocation list', () => {
  it('has times before and after 2050, a number, and serial numbers in one spelling', () => {
    expect(readAll(der)).toEqual({
      thisUpdate: THIS_UPDATE,
      nextUpdate: NEXT_UPDATE,
      algorithm: '1.2.840.10045.4.3.2',
      number: 256n,
      revoked: [{ serial: 'ff01', revokedAt: THIS_UPDATE }],
    });
  });

  it('that is damaged anywhere is read, or refused with a DerError, and with nothing else', () => {
    const damage = fc.array(fc.tuple(fc.nat(der.length - 1), fc.nat(255)), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(damage, fc.integer({ min: 1, max: der.length }), (bytes, length) => {
        const damaged = Uint8Array.from(der);
        for (const [at, byte] of bytes) damaged[at] = byte;
        for (const given of [damaged, damaged.slice(0, length)]) {
          try {
            readAll(given);
          } catch (error) {
            expect(error).toBeInstanceOf(DerError);
          }
        }
      }),
      { numRuns: runs(2000) },
    );
  });

  it('whose time fills megabytes is refused', () => {
    const algorithm = element(0x30, Buffer.from([6, 1, 42]));
    const signed = element(0x30, algorithm, element(0x30), element(0x17, Buffer.alloc(4_000_000, 0x30)));
    const list = element(0x30, signed, algorithm, element(3, Buffer.from([0])));
    expect(() => readRevocationList(Uint8Array.from(list))).toThrow('a time that cannot be read');
  });
});

function element(tag: number, ...contents: Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const hex = content.length.toString(16);
  const length = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
  const long = content.length < 128 ? [] : [0x80 | length.length];
  return Buffer.concat([Buffer.from([tag, ...long]), length, content]);
}
