// What every keeper of client keys does.

import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ClientKeys, KeptKey } from '../../shared/core/devices/port.ts';

export const someHash = (): string =>
  Array.from(randomBytes(32), (byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join(':');

export function someKey(chain = 1): KeptKey {
  const pem = (label: string): string =>
    `-----BEGIN ${label}-----\n${randomBytes(40).toString('base64')}\n-----END ${label}-----\n`;
  return {
    keyPem: pem('PRIVATE KEY'),
    certificatePem: pem('CERTIFICATE'),
    chainPem: Array.from({ length: chain }, () => pem('CERTIFICATE')),
  };
}

export function clientKeysContract(name: string, make: () => ClientKeys): void {
  describe(`keys kept by ${name}`, () => {
    it('are read as they were kept, by the hash of their certificate', async () => {
      const keys = make();
      const hashes = [someHash(), someHash(), someHash()] as const;
      const [one, two] = [someKey(), someKey(2)];
      await keys.keep(hashes[0], one);
      await keys.keep(hashes[1], two);
      expect([await keys.read(hashes[0]), await keys.read(hashes[1])]).toEqual([one, two]);
      expect(await keys.read(hashes[2])).toBeUndefined();
      expect(await keys.kept(hashes)).toEqual([hashes[0], hashes[1]]);
      expect(await keys.kept([])).toEqual([]);
    });

    it('are replaced by another of the same certificate', async () => {
      const keys = make();
      const hash = someHash();
      const later = someKey(0);
      await keys.keep(hash, someKey());
      await keys.keep(hash, later);
      expect(await keys.read(hash)).toEqual(later);
    });

    it('are gone when they are removed; one that is gone already is no error', async () => {
      const keys = make();
      const [gone, other] = [someHash(), someHash()] as const;
      await keys.remove(gone);
      await keys.keep(gone, someKey());
      await keys.keep(other, someKey());
      await keys.remove(gone);
      await keys.remove(gone);
      expect([await keys.read(gone), await keys.kept([gone, other])]).toEqual([undefined, [other]]);
    });
  });
}
