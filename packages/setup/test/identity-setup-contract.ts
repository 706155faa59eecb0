// What identity-setup asks of authentik and of our own provider alike: who a key signs in, and keys
// that are looked at and set.

import { describe, expect, it } from 'vitest';
import type { IdentitySetupApi } from '../identity/api.ts';

export interface KeysWorld {
  api: IdentitySetupApi;
  /** Of a superuser. */
  key: string;
  /** Of a token of somebody who is none, and its key. */
  identifier: string;
  held: string;
}

export function identityKeysContract(name: string, make: () => Promise<KeysWorld>): void {
  describe(`keys at ${name}`, () => {
    it('sign their holder in, and one that was never given out is refused', async () => {
      const { api, key, held } = await make();
      expect(await api.holderOf(key)).toMatchObject({ isSuperuser: true });
      expect(await api.holderOf(held)).toMatchObject({ isSuperuser: false });
      expect(await api.holderOf('key-that-was-never-given-out-0123456789')).toBe('refused');
    });

    it('are shown to a superuser', async () => {
      const { api, key, identifier, held } = await make();
      expect(await api.keyOf(key, identifier)).toBe(held);
      expect(await api.keyOf(key, 'no-such-token')).toBeUndefined();
    });

    it('are set by a superuser: the new one is in force, the old one is not', async () => {
      const { api, key, identifier, held } = await make();
      const wanted = 'another-key-0123456789-abcdefgh';
      expect(await api.setKey(key, identifier, wanted)).toBe(true);
      expect(await api.holderOf(held)).toBe('refused');
      expect(await api.holderOf(wanted)).toMatchObject({ isSuperuser: false });
      expect(await api.setKey(key, 'no-such-token', wanted)).toBe(false);
    });
  });
}
