import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { issue, type Issued } from '../../../test/support/certificates.ts';
import { bundleHolds, certificateBundle, keyBundle } from '../pkcs12.ts';

const ca = await issue('A CA', undefined, { ca: true });
const ada = await issue('ada', ca);
const der = ({ certificate }: Issued) => new Uint8Array(certificate.rawData);
const privateKeyPkcs8Der = new Uint8Array(await webcrypto.subtle.exportKey('pkcs8', ada.keys.privateKey));

async function bundle(password: string, iterations = 1000) {
  return keyBundle({
    privateKeyPkcs8Der,
    certificate: der(ada),
    chain: [der(ca)],
    friendlyName: 'ada',
    password,
    iterations,
  });
}

describe('a bundle with a key', () => {
  it.each(['atakatak', '', 'p ä ß 密 " \\', 'x'.repeat(200)])(
    'opens with its password %j and no other',
    async (password) => {
      const pfx = Buffer.from(await bundle(password));
      expect(() => createSecureContext({ pfx, passphrase: password })).not.toThrow();
      expect(() => createSecureContext({ pfx, passphrase: `${password}x` })).toThrow(/mac verify failure/);
    },
  );

  it('shows neither key nor certificate to who has no password', async () => {
    const file = Buffer.from(await bundle('atakatak'));
    const secrets = [privateKeyPkcs8Der, der(ada), der(ca)].map((bytes) => file.includes(Buffer.from(bytes)));
    expect(secrets).toEqual([false, false, false]);
  });

  it('has its key in one piece of octets, as readers without BER want it', async () => {
    const file = Buffer.from(await bundle('atakatak'));
    const aes = Buffer.from('0960864801650304012a0410', 'hex');
    const afterVector = file.indexOf(aes) + aes.length + 16;
    expect(file[afterVector]?.toString(16)).toBe('4');
  });

  it('is another one each time', async () => {
    expect(Buffer.from(await bundle('atakatak')).equals(await bundle('atakatak'))).toBe(false);
  });

  it('is not made of what is no key or no certificate', async () => {
    const wrong = { certificate: der(ada), chain: [], friendlyName: 'ada', password: 'atakatak' };
    await expect(keyBundle({ ...wrong, privateKeyPkcs8Der: new Uint8Array([1, 2, 3]) })).rejects.toThrow();
    await expect(keyBundle({ ...wrong, privateKeyPkcs8Der, certificate: new Uint8Array(9) })).rejects.toThrow();
  });
});

describe('what a bundle holds', () => {
  it('is the certificate of its key, or those in the clear; never that of a torn file or another password', async () => {
    const withKey = await bundle('atakatak');
    const entries = [ada, ca].map((each, at) => ({ friendlyName: `ca${at}`, certificate: der(each) }));
    const open = await certificateBundle(entries, 'atakatak');
    const holds = async (file: Uint8Array<ArrayBuffer>, which: Issued, password = 'atakatak') =>
      bundleHolds(file, der(which), password);
    expect([await holds(withKey, ada), await holds(withKey, ca)]).toEqual([true, false]);
    expect([await holds(open, ada), await holds(open, ca)]).toEqual([true, true]);
    expect([await holds(withKey, ada, 'other'), await holds(open, ca, 'other')]).toEqual([false, false]);
    for (const length of [0, 1, 40, open.length - 1]) expect(await holds(open.slice(0, length), ca)).toBe(false);
    const changed = Uint8Array.from(open);
    changed[300] = (changed[300] ?? 0) ^ 1;
    expect(await holds(changed, ca)).toBe(false);
  });
});
