// The identity provider that stands in for a real one in tests, held to what a real one does.

import { describe, expect, it } from 'vitest';
import { fakeIdentity } from './fake-identity.ts';
import { identityContract } from './identity-contract.ts';

identityContract('in memory', () => fakeIdentity());

describe('the identity provider in memory', () => {
  it('accepts passwords of active accounts, and app passwords until they end', async () => {
    let now = new Date('2026-01-01T00:00:00Z');
    const { accounts, appPasswords, accepts } = fakeIdentity({ now: () => now });
    const { id } = await accounts.create({ username: 'Ada', name: 'Ada' });
    expect(accepts('Ada', '')).toBe(false);
    await accounts.setPassword(id, 'correct horse');
    const made = { identifier: 'tablet', accountId: id, description: '', expiresAt: new Date('2026-01-02T00:00:00Z') };
    const { key } = await appPasswords.create(made);
    expect([accepts('ada', 'correct horse'), accepts('ada', key), accepts('ada', 'wrong')]).toEqual([
      true,
      true,
      false,
    ]);
    now = new Date('2026-01-02T00:00:01Z');
    expect([accepts('ada', 'correct horse'), accepts('ada', key)]).toEqual([true, false]);
    await accounts.change(id, { isActive: false });
    expect(accepts('ada', 'correct horse')).toBe(false);
  });

  it('gives copies away', async () => {
    const { accounts } = fakeIdentity();
    const made = await accounts.create({ username: 'ada', name: 'Ada', attributes: { app_list: [1] } });
    made.attributes['app_list'] = 'changed';
    expect((await accounts.get(made.id))?.attributes).toEqual({ app_list: [1] });
  });
});
