// What every Identity must do with app passwords.

import { describe, expect, it } from 'vitest';
import type { AppPassword, NewAppPassword } from '../../shared/identity/port.ts';
import { type Bench, NO_ACCOUNT, unique } from './identity-bench-contract.ts';

const MINUTES = 60_000;
const DAYS = 24 * 60 * MINUTES;

export function identityAppPasswordsContract({ identity, prefix, account, forgetAppPassword }: Bench): void {
  const passwords = () => identity().appPasswords;
  const after = (ms: number): Date => new Date(Date.now() + ms);
  const create = async (wanted: Omit<NewAppPassword, 'identifier' | 'description'> & Partial<NewAppPassword>) => {
    const identifier = `${prefix}-${unique()}`;
    const made = await passwords().create({ identifier, description: 'Tablet 7', ...wanted });
    forgetAppPassword(made.identifier);
    return made;
  };
  const withoutKey = ({ identifier, accountId, description, expiresAt }: AppPassword): AppPassword => {
    return { identifier, accountId, description, expiresAt };
  };

  describe('app passwords', () => {
    it('are made with a key that can be looked at again', async () => {
      const { id: accountId } = await account();
      const expiresAt = after(20 * MINUTES);
      const made = await create({ accountId, expiresAt, description: 'Ünit “7”' });
      expect(made).toMatchObject({ accountId, description: 'Ünit “7”', expiresAt: expiresAt.toISOString() });
      expect(made.key).toMatch(/^\S{20,}$/);
      expect(await passwords().reveal(made.identifier)).toBe(made.key);
      expect(await passwords().get(made.identifier)).toEqual(withoutKey(made));
    });

    it('have keys of their own', async () => {
      const { id: accountId } = await account();
      const made = [await create({ accountId, expiresAt: null }), await create({ accountId, expiresAt: null })];
      expect(new Set(made.map(({ key }) => key)).size).toBe(2);
    });

    it('may live longer than a day, and longer still the next time', async () => {
      const { id: accountId } = await account({ attributes: { app_kept: 1 } });
      for (const days of [7, 30, 2]) {
        const expiresAt = after(days * DAYS);
        expect((await create({ accountId, expiresAt })).expiresAt).toBe(expiresAt.toISOString());
      }
      expect((await identity().accounts.get(accountId))?.attributes).toMatchObject({ app_kept: 1 });
    });

    it('may never end', async () => {
      const { id: accountId } = await account({ kind: 'service' });
      const made = await create({ accountId, expiresAt: null });
      expect(made.expiresAt).toBeNull();
      expect(await passwords().get(made.identifier)).toMatchObject({ expiresAt: null });
    });

    it('may have ended already', async () => {
      const { id: accountId } = await account();
      const expiresAt = after(-MINUTES);
      expect((await create({ accountId, expiresAt })).expiresAt).toBe(expiresAt.toISOString());
    });

    it('have identifiers that are taken once', async () => {
      const [one, two] = [await account(), await account()];
      const { identifier, key } = await create({ accountId: one.id, expiresAt: null });
      for (const { id: accountId } of [one, two]) {
        const again = create({ identifier, accountId, expiresAt: after(2 * DAYS) });
        await expect(again).rejects.toMatchObject({ code: 'conflict' });
      }
      expect(await passwords().reveal(identifier)).toBe(key);
      expect(await passwords().get(identifier)).toMatchObject({ accountId: one.id, expiresAt: null });
    });

    it.each(['', '..', 'a b', 'a/b', 'ü', 'x'.repeat(256)])('have no such identifier: %j', async (identifier) => {
      const { id: accountId } = await account();
      await expect(create({ identifier, accountId, expiresAt: null })).rejects.toMatchObject({
        code: 'invalid',
        fields: [{ path: 'identifier', message: expect.stringMatching(/./) }],
      });
      expect(await passwords().get(identifier)).toBeUndefined();
      expect(await passwords().reveal(identifier)).toBeUndefined();
      await passwords().delete(identifier);
    });

    it('belong to somebody', async () => {
      for (const expiresAt of [null, after(MINUTES), after(3 * DAYS)]) {
        await expect(create({ accountId: NO_ACCOUNT, expiresAt })).rejects.toMatchObject({ code: 'not_found' });
      }
    });

    it('are listed for one account', async () => {
      const [one, two, three] = [await account(), await account(), await account()];
      const made = [
        await create({ accountId: one.id, expiresAt: null }),
        await create({ accountId: one.id, expiresAt: after(MINUTES) }),
      ];
      const other = await create({ accountId: two.id, expiresAt: null });
      const listed = await passwords().list(one.username);
      const order = (all: AppPassword[]) => all.toSorted((a, b) => (a.identifier < b.identifier ? -1 : 1));
      expect(order(listed)).toEqual(order(made.map(withoutKey)));
      expect(await passwords().list(two.username)).toEqual([withoutKey(other)]);
      expect(await passwords().list(three.username)).toEqual([]);
      expect(await passwords().list(`${prefix}-nobody`)).toEqual([]);
    });

    it('are deleted one by one, and not missed when they are gone', async () => {
      const made = await account();
      const gone = await create({ accountId: made.id, expiresAt: null });
      const kept = await create({ accountId: made.id, expiresAt: null });
      await passwords().delete(gone.identifier);
      await passwords().delete(gone.identifier);
      await passwords().delete(`${prefix}-never`);
      expect(await passwords().get(gone.identifier)).toBeUndefined();
      expect(await passwords().reveal(gone.identifier)).toBeUndefined();
      expect(await passwords().list(made.username)).toEqual([withoutKey(kept)]);
    });

    it('go with their account', async () => {
      const { id: accountId, username } = await account();
      const { identifier } = await create({ accountId, expiresAt: null });
      await identity().accounts.delete(accountId);
      expect(await passwords().get(identifier)).toBeUndefined();
      expect(await passwords().list(username)).toEqual([]);
    });

    it('stay when their account is switched off', async () => {
      const { id: accountId } = await account();
      const { identifier } = await create({ accountId, expiresAt: null });
      await identity().accounts.change(accountId, { isActive: false });
      expect(await passwords().get(identifier)).toMatchObject({ identifier });
    });
  });
}
