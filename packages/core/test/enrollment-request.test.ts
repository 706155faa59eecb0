// Signing requests made by OpenSSL, and what only somebody who means harm would send.

import { createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { publicKeyFor, RequestRefused } from '../enrollment/enroll.ts';
import { bare, der, opensslRequest, P384 } from './fake-signing-requests.ts';
import { anyCharacter, runs } from '../../../test/support/runs.ts';

const SPKI = { type: 'spki', format: 'der' } as const;
let good: { pem: string; key: string };
beforeAll(() => {
  good = opensslRequest();
});

const keyOf = (privateKey: string): Buffer => createPublicKey(privateKey).export(SPKI);
const refusal = (text: string, username = 'ada'): string => {
  try {
    publicKeyFor(username, text);
  } catch (error) {
    expect(error).toBeInstanceOf(RequestRefused);
    return (error as Error).message;
  }
  throw new Error('it was taken');
};

const subjectRefusal = (subject: string): string => refusal(opensslRequest({ subject }).pem);

describe('a signing request', () => {
  it('is taken with and without header lines, with any line ends, and gives its key', () => {
    const key = keyOf(good.key);
    const forms = [
      good.pem,
      good.pem.replaceAll('\n', '\r\n'),
      good.pem.replaceAll('CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST'),
      bare(good.pem),
      ` ${bare(good.pem).replaceAll(/(.{40})/g, '$1 \t\r\n')} `,
    ];
    for (const form of forms) expect(Buffer.from(publicKeyFor('ada', form))).toEqual(key);
  });

  it('is taken with keys that clients have', () => {
    const kinds = [
      ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'],
      ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'],
      ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-521'],
      ['-algorithm', 'ED25519'],
    ];
    for (const key of kinds) {
      const made = opensslRequest({ key });
      expect(Buffer.from(publicKeyFor('ada', made.pem))).toEqual(keyOf(made.key));
    }
  });

  it('is taken with every digest but the broken ones', () => {
    for (const digest of ['-sha1', '-sha384', '-sha512'])
      expect(publicKeyFor('ada', opensslRequest({ more: [digest] }).pem).length).toBeGreaterThan(80);
    expect(refusal(opensslRequest({ key: ['-algorithm', 'RSA'], more: ['-md5'] }).pem)).toMatch(
      /signature .* not supported/,
    );
  });

  it('is refused with a weak or odd key', () => {
    const kinds = [
      ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:1024'],
      ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:secp256k1'],
      ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-224'],
      ['-algorithm', 'ED448'],
    ];
    for (const key of kinds) expect(refusal(opensslRequest({ key }).pem)).toMatch(/^The key .* not supported/);
  });

  it('comes out with a named curve, whatever form its key had', () => {
    const key = [...P384, '-pkeyopt', 'ec_param_enc:explicit'];
    const explicit = opensslRequest({ key });
    const given = Buffer.from(bare(explicit.pem), 'base64').length;
    expect(given).toBeGreaterThan(Buffer.from(bare(good.pem), 'base64').length + 100);
    expect(publicKeyFor('ada', explicit.pem)).toHaveLength(120);
  });

  it('may have its parts in any order, and the name in any case', () => {
    const request = opensslRequest({ subject: '/CN=ADA/OU=CoT/O=Holdfast' });
    expect(publicKeyFor('ada', request.pem)).toHaveLength(120);
    const accents = opensslRequest({ subject: '/O=Holdfast/OU=CoT/CN=Zo\u0308e' });
    expect(publicKeyFor('zöE', accents.pem)).toHaveLength(120);
  });

  it('is refused with another name, telling both', () => {
    expect(subjectRefusal('/O=Holdfast/OU=CoT/CN=bob')).toBe(
      "The subject of the signing request has the common name 'bob', but 'ada' is signed in. It must be: CN=ada, O=Holdfast, OU=CoT",
    );
  });

  it('is refused when its subject is not exactly what tls/config says', () => {
    expect(subjectRefusal('/O=Holdfast/OU=Other/CN=ada')).toMatch(/lacks OU=CoT/);
    expect(subjectRefusal('/O=holdfast/OU=CoT/CN=ada')).toMatch(/lacks O=Holdfast/);
    expect(subjectRefusal('/O=Holdfast/CN=ada')).toMatch(/lacks OU=CoT/);
    expect(subjectRefusal('/C=DE/O=Holdfast/OU=CoT/CN=ada')).toMatch(/has 4 parts where 3/);
    expect(subjectRefusal('/O=Holdfast/OU=CoT/OU=Other/CN=ada')).toMatch(/has 4 parts where 3/);
    expect(subjectRefusal('/O=Holdfast/OU=CoT/CN=ada/CN=bob')).toMatch(/one common name/);
    expect(subjectRefusal('/O=Holdfast/OU=CoT')).toMatch(/one common name/);
    expect(subjectRefusal('/O=Holdfast/OU=CoT+CN=ada')).toMatch(/joins several/);
    expect(subjectRefusal('/O=Holdfast/OU=CoT/CN=ada+CN=webadmin')).toMatch(/joins several/);
  });

  it('is refused when it was not signed with its own key', () => {
    const other = bare(opensslRequest().pem);
    const mine = Buffer.from(bare(good.pem), 'base64');
    const theirs = Buffer.from(other, 'base64');
    const spki = keyOf(good.key);
    const at = mine.indexOf(spki);
    const swapped = Buffer.from(mine);
    theirs.copy(swapped, at, theirs.indexOf(spki.subarray(0, 24)), theirs.indexOf(spki.subarray(0, 24)) + spki.length);
    expect(refusal(swapped.toString('base64'))).toBe('The signature of the signing request does not match its key.');
  });

  it('gives nothing of its extensions away: the key is all that comes out', () => {
    const input = ['-addext', 'subjectAltName=DNS:evil.example', '-addext', 'basicConstraints=critical,CA:TRUE'];
    const request = opensslRequest({ more: input });
    expect(Buffer.from(publicKeyFor('ada', request.pem))).toEqual(keyOf(request.key));
  });
});

describe('what is no signing request', () => {
  it('is refused by name', () => {
    expect(refusal('')).toMatch(/body is empty/);
    expect(refusal('-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----')).toMatch(/body is empty/);
    expect(refusal('hello, world!')).toMatch(/PKCS#10 in base64/);
    expect(refusal('aGVsbG8=')).toMatch(/Couldn't read/);
    expect(refusal(`${bare(good.pem)}AAAA`)).toMatch(/more than belongs there|PKCS#10/);
    expect(refusal(bare(good.pem).slice(0, 200))).toMatch(/longer than what encloses it/);
  });

  it('is refused at once, however it is nested and whatever lengths it tells', () => {
    let nested: Buffer = Buffer.alloc(0);
    while (nested.length < 40_000) nested = der(0x30, nested);
    const hostile = [
      nested,
      Buffer.alloc(48_000, Buffer.from([0x30, 0x80])),
      Buffer.from([0x30, 0x84, 0xff, 0xff, 0xff, 0xff]),
      Buffer.from([0x30, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
      Buffer.from([0x3f, 0xff, 0xff, 0xff]),
      requestWith(nested, der(0x30)),
      requestWith(der(0x30, ...Array.from({ length: 8000 }, () => der(0x31))), der(0x30)),
      requestWith(der(0x30), nested),
    ];
    const reasons = hostile.map((bytes) => refusal(bytes.toString('base64')));
    expect(reasons.filter((reason) => reason.includes("Couldn't read"))).toHaveLength(6);
    expect(reasons.slice(-2)).toEqual([
      expect.stringMatching(/joins several/),
      expect.stringMatching(/one common name/),
    ]);
  });

  it('is refused with an RSA key that makes forging easy, or checking slow', () => {
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const { n = '' } = publicKey.export({ format: 'jwk' });
    const huge = Buffer.alloc(1025, 0xff).toString('base64url');
    const odd = [
      { n, e: 'AQ' },
      { n, e: 'Ag' },
      { n, e: 'AQAAAAAAAAAB' },
      { n: huge, e: 'AQAB' },
    ].map((numbers) => createPublicKey({ key: { kty: 'RSA', ...numbers }, format: 'jwk' }).export(SPKI));
    for (const spki of odd)
      expect(refusal(requestWith(subjectOf(good.pem), spki).toString('base64'))).toMatch(/^The key .* not supported/);
    expect(refusal(requestWith(subjectOf(good.pem), publicKey.export(SPKI)).toString('base64'))).toMatch(
      /^The signature/,
    );
  });

  it('is refused in any other coding than DER', () => {
    const bytes = Buffer.from(bare(good.pem), 'base64');
    const longer = Buffer.concat([Buffer.from([0x30, 0x83, 0, bytes[2] ?? 0, bytes[3] ?? 0]), bytes.subarray(4)]);
    const [after, long] = [Buffer.concat([bytes, Buffer.alloc(2)]), longer].map((text) =>
      refusal(text.toString('base64')),
    );
    expect([bytes[1], after, long]).toEqual([
      0x82,
      expect.stringMatching(/more than belongs there/),
      expect.stringMatching(/a length that DER does not have/),
    ]);
  });

  it('is refused with what PKCS#10 does not have', () => {
    const made = (more: { version?: number; unusedBits?: number }): string =>
      refusal(requestWith(subjectOf(good.pem), keyOf(good.key), more).toString('base64'));
    expect(made({ version: 1 })).toMatch(/a version that PKCS#10 does not have/);
    expect(made({ unusedBits: 1 })).toMatch(/no whole number of bytes/);
    expect(made({})).toMatch(/does not match its key/);
  });

  it('never ends in another error, whatever is sent', () => {
    const bytes = Buffer.from(bare(good.pem), 'base64');
    const changed = fc
      .array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
      .map((changes) => {
        const copy = Buffer.from(bytes);
        for (const [at, value] of changes) copy[at] = value;
        return copy.equals(bytes) ? '' : copy.toString('base64');
      });
    const anything = fc.oneof(
      changed,
      fc.string({ unit: anyCharacter, maxLength: 500 }),
      fc.uint8Array({ maxLength: 500 }).map((array) => Buffer.from(array).toString('base64')),
      fc.nat(bytes.length).map((end) => bytes.subarray(0, end - 1).toString('base64')),
    );
    fc.assert(
      fc.property(anything, (text) => {
        expect(refusal(text)).not.toBe('');
      }),
      { numRuns: runs(2000) },
    );
    // Each is a signature to be checked: seconds on a busy machine.
  }, 60_000);
});

function subjectOf(pem: string): Buffer {
  const bytes = Buffer.from(bare(pem), 'base64');
  const at = bytes.indexOf(Buffer.from([0x02, 0x01, 0x00])) + 3;
  return bytes.subarray(at, at + 2 + (bytes[at + 1] ?? 0));
}

/** Signed by a key of nobody. */
function requestWith(subject: Buffer, spki: Buffer, { version = 0, unusedBits = 0 } = {}): Buffer {
  const info = der(0x30, der(0x02, Buffer.from([version])), subject, spki, der(0xa0));
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = der(0x30, der(0x06, Buffer.from('2a8648ce3d040302', 'hex')));
  const signature = Buffer.concat([Buffer.from([unusedBits]), sign('sha256', info, privateKey)]);
  return der(0x30, info, algorithm, der(0x03, signature));
}
