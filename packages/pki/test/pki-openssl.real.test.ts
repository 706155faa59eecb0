// OpenSSL judges what the CA of the core signs and writes.

import { execFileSync, spawnSync } from 'node:child_process';
import { webcrypto, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { prolongCa } from '../ca-renewal.ts';
import type { Authority, SignedCertificate } from '../parts.ts';
import { certificateBundle, keyBundle } from '../pkcs12.ts';
import { ensureServerCertificate } from '../server-certificate.ts';
import { enrolled, NAMES, revocationOf, type Workshop, workshops } from './workshop.ts';

const workshop = workshops();

let place: Workshop;
let authority: Authority;
let ada: { signed: SignedCertificate; keys: webcrypto.CryptoKeyPair };
let bob: typeof ada;

beforeAll(async () => {
  place = await workshop();
  authority = await place.open();
  ada = await enrolled(authority, 'ada');
  bob = await enrolled(authority, 'bob, "the" #1');
  writeFileSync(path('ada.pem'), ada.signed.pem);
  writeFileSync(path('bob.pem'), bob.signed.pem);
  await authority.writeRevocationList([revocationOf(bob.signed)], new Date());
});

const path = (name: string): string => join(place.directory, name);
const openssl = (...args: string[]): string => execFileSync('openssl', args, { encoding: 'utf8', stdio: 'pipe' });
const verified = (file: string, ...more: string[]): string => {
  const { files } = place;
  const args = [
    'verify',
    '-x509_strict',
    '-CAfile',
    files.ca,
    '-CRLfile',
    files.revocationList,
    '-crl_check',
    ...more,
    file,
  ];
  const { stdout, stderr } = spawnSync('openssl', args, { encoding: 'utf8' });
  return stdout + stderr;
};

describe('to OpenSSL', () => {
  it('a client certificate is good until it stands in the list, and says what it is for', () => {
    expect(verified(path('ada.pem'), '-purpose', 'sslclient')).toContain('ada.pem: OK');
    expect(verified(path('bob.pem'), '-purpose', 'sslclient')).toMatch(/error 23 .*certificate revoked/);
    expect(verified(path('ada.pem'), '-purpose', 'sslserver')).toContain('unsuitable certificate purpose');
    const text = openssl('x509', '-in', path('ada.pem'), '-noout', '-text');
    expect(text).toMatch(/Key Usage: critical\s+Digital Signature, Non Repudiation, Key Agreement\n/);
    expect(text).toMatch(/Extended Key Usage: \s+TLS Web Client Authentication, challengePassword\n/);
    expect(text).toContain('Signature Algorithm: ecdsa-with-SHA256');
    expect(text).not.toContain('Subject Alternative Name');
    const subject = (file: string) =>
      openssl('x509', '-in', path(file), '-noout', '-subject', '-nameopt', 'RFC2253').trim();
    expect(subject('ada.pem')).toBe('subject=CN=ada,OU=CoT,O=Holdfast');
    expect(subject('bob.pem')).toBe(String.raw`subject=CN=bob\, \"the\" #1,OU=CoT,O=Holdfast`);
  });

  it('the server certificate is good for its names', () => {
    const { files } = place;
    expect(verified(files.server, '-purpose', 'sslserver', '-verify_hostname', 'cot.example.org')).toContain('OK');
    expect(verified(files.server, '-verify_ip', '127.0.0.1')).toContain('OK');
    expect(verified(files.server, '-verify_ip', '192.0.2.1')).toContain('IP address mismatch');
    expect(readFileSync(files.server, 'utf8').match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
  });

  it('the list is of version 2, numbered, names its key, lasts a week, and holds whom it should', async () => {
    const { files } = place;
    const text = openssl('crl', '-in', files.revocationList, '-noout', '-text', '-CAfile', files.ca);
    expect(text).toMatch(/Version 2 \(0x1\)\s+Signature Algorithm: ecdsa-with-SHA384/);
    expect(text).toMatch(/X509v3 CRL Number: \s+\d{13}\n/);
    expect(text).toContain('X509v3 Authority Key Identifier');
    const when = (name: string): number => Date.parse(new RegExp(`${name} Update: (.*)`).exec(text)?.[1] ?? '');
    expect([when('Next') - when('Last'), Date.now() - when('Last') >= 3_600_000]).toEqual([169 * 3_600_000, true]);
    expect(text.match(/Serial Number: .*/g)).toEqual([`Serial Number: ${bob.signed.serial.toUpperCase()}`]);
    const serials = ['1', '7f', '80', 'ff00', `8${'0'.repeat(31)}`];
    const long = Array.from({ length: 4000 }, (_, at) => (0x1000000 + at).toString(16));
    const all = [...serials, ...long].map((serial) => ({ ...revocationOf(ada.signed), serial }));
    await authority.writeRevocationList(all, new Date());
    const listed =
      openssl('crl', '-in', files.revocationList, '-noout', '-text').match(/(?<=Serial Number: ).*/g) ?? [];
    expect(listed.map((each) => each.toLowerCase().replace(/^0+/, ''))).toEqual(all.map(({ serial }) => serial));
    await authority.writeRevocationList([], new Date());
    expect(openssl('crl', '-in', files.revocationList, '-noout', '-text')).toContain('No Revoked Certificates');
    expect(verified(path('bob.pem'))).toContain('OK');
    await authority.writeRevocationList([revocationOf(bob.signed)], new Date());
  });

  it('a hundred signatures are all well-formed', async () => {
    const many = await Promise.all(Array.from({ length: 100 }, async () => enrolled(authority, 'ada')));
    const names = many.map(({ signed }, at) => {
      writeFileSync(path(`many-${at}.pem`), signed.pem);
      return path(`many-${at}.pem`);
    });
    expect(openssl('verify', '-x509_strict', '-CAfile', place.files.ca, ...names).match(/: OK/g)).toHaveLength(100);
  });

  it('the index is one that it can make the list of', () => {
    const { files } = place;
    const list = path('by-openssl.crl');
    writeFileSync(
      path('ca.cnf'),
      `[ca]\ndefault_ca=own\n[own]\ndatabase=${files.revocationIndex}\ndefault_md=sha384\ndefault_crl_days=7\n`,
    );
    openssl('ca', '-gencrl', '-config', path('ca.cnf'), '-keyfile', files.caKey, '-cert', files.ca, '-out', list);
    expect(openssl('crl', '-in', list, '-noout', '-text')).toContain(bob.signed.serial.toUpperCase());
  });

  it('the trusted forms are trusted, with their names', () => {
    const { files } = place;
    const name = /CN ?= ?(Holdfast CA \w+)/.exec(openssl('x509', '-in', files.ca, '-noout', '-subject'))?.[1];
    for (const [file, alias] of [
      [files.caTrusted, name],
      [files.rootCaTrusted, name],
      [files.serverTrusted, 'takserver'],
    ]) {
      const text = openssl('x509', '-in', file ?? '', '-noout', '-text');
      expect(text).toMatch(/Trusted Uses:\s+TLS Web Client Authentication, TLS Web Server Authentication\n/);
      expect(text).toContain(`Alias: ${alias}\n`);
    }
  });

  it('a CA with a new certificate for its key has signed the old client certificates, and the list', async () => {
    const renewed = await workshop(new Date(Date.now() - 86_400_000));
    const { signed } = await enrolled(await renewed.open(), 'ada');
    await (await renewed.open()).writeRevocationList([], new Date());
    const old = join(await prolongCa(renewed.files, new Date()), 'ca.pem');
    await ensureServerCertificate(renewed.directory, NAMES, new Date());
    writeFileSync(join(renewed.directory, 'ada.pem'), signed.pem);
    const bundle = openssl(
      'pkcs12',
      '-in',
      renewed.files.serverBundle,
      '-passin',
      'pass:atakatak',
      '-cacerts',
      '-nokeys',
    );
    expect(bundle).toContain(readFileSync(renewed.files.ca, 'utf8'));
    for (const ca of [old, renewed.files.ca])
      for (const file of [join(renewed.directory, 'ada.pem'), renewed.files.server])
        expect(
          openssl('verify', '-CAfile', ca, '-CRLfile', renewed.files.revocationList, '-crl_check', file),
        ).toContain('OK');
  });
});

describe('PKCS#12, to OpenSSL', () => {
  const listed = (file: string, password: string): string =>
    execFileSync('openssl', ['pkcs12', '-in', file, '-passin', `pass:${password}`, '-nodes', '-info'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });

  it('a key and its chain, encrypted with AES, come out as they went in', async () => {
    const key = new Uint8Array(await webcrypto.subtle.exportKey('pkcs8', ada.keys.privateKey));
    const chain = authority.chain.map((pem) => Uint8Array.from(new X509Certificate(pem).raw));
    const bundle = await keyBundle({
      privateKeyPkcs8Der: key,
      certificate: ada.signed.der,
      chain,
      friendlyName: 'ada',
      password: 'atakatak',
    });
    writeFileSync(path('ada.p12'), bundle);
    const { stderr } = spawnSync(
      'openssl',
      ['pkcs12', '-in', path('ada.p12'), '-passin', 'pass:atakatak', '-noout', '-info'],
      {
        encoding: 'utf8',
      },
    );
    expect(stderr).toMatch(/^MAC: sha256/);
    expect(stderr.match(/PBES2, PBKDF2, AES-256-CBC, Iteration 100000, PRF hmacWithSHA256/g)).toHaveLength(2);
    const text = listed(path('ada.p12'), 'atakatak');
    expect(text.match(/localKeyID: .*/g)).toHaveLength(2);
    expect(text.match(/friendlyName: ada/g)).toHaveLength(2);
    expect(text.replaceAll('\n', '')).toContain(Buffer.from(key).toString('base64'));
    expect(
      [...text.matchAll(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)].map(
        ([pem]) => new X509Certificate(pem).fingerprint256,
      ),
    ).toEqual([ada.signed.hash, ...authority.chain.map((pem) => new X509Certificate(pem).fingerprint256)]);
    expect(() => listed(path('ada.p12'), 'other')).toThrow(/invalid password/);
  });

  it('certificates alone are not encrypted and keep their names; the files of the core open too', async () => {
    const entries = [ada.signed.der, ...authority.chain.map((pem) => Uint8Array.from(new X509Certificate(pem).raw))];
    const names = ['signedCert', 'ca0'];
    writeFileSync(
      path('open.p12'),
      await certificateBundle(
        entries.map((certificate, at) => ({ friendlyName: names[at] ?? '', certificate })),
        'atakatak',
      ),
    );
    const text = listed(path('open.p12'), 'atakatak');
    expect(text.match(/(?<=friendlyName: ).*/g)).toEqual(names);
    const args = ['pkcs12', '-in', path('open.p12'), '-passin', 'pass:atakatak', '-noout', '-info'];
    const { stderr } = spawnSync('openssl', args, { encoding: 'utf8' });
    expect(stderr).toMatch(/^MAC: sha1,[^]*PKCS7 Data\nCertificate bag\nCertificate bag\n$/);
    expect(listed(place.files.truststore, 'atakatak')).toMatch(/friendlyName: Holdfast CA [0-9a-f]{8}\n/);
    expect(listed(place.files.serverBundle, 'atakatak')).toMatch(/friendlyName: takserver[^]*BEGIN PRIVATE KEY/);
  });

  it.skipIf(spawnSync('keytool', ['-help']).error !== undefined)('a JVM sees the truststore and the key', () => {
    const seen = (file: string): string =>
      execFileSync('keytool', ['-list', '-keystore', file, '-storepass', 'atakatak'], {
        encoding: 'utf8',
        stdio: 'pipe',
      });
    expect(seen(place.files.truststore)).toMatch(/holdfast ca \w+, .*trustedCertEntry/);
    expect(seen(place.files.serverBundle)).toMatch(/takserver, .*PrivateKeyEntry/);
  });
});
