import { expect, it } from 'vitest';
import { coreCertificatesContract, signedFor } from './core-certificates-contract.ts';
import { memoryCertificates } from './fake-core-certificates.ts';

coreCertificatesContract('in memory', async () => {
  const store = memoryCertificates();
  return { store, mark: () => store.mark() };
});

it('the table in memory rejects every call while it is away, and then knows what it knew', async () => {
  const store = memoryCertificates();
  const now = new Date();
  const add = () => store.add(signedFor('ada'), { creator: 'ada', clientUid: 'a' }, now);
  const { id } = await add();
  store.unavailable(new Error('gone'));
  const calls = [
    add(),
    store.list('all', now),
    store.byHash('AA'),
    store.byIds([id]),
    store.setRevoked(id, now),
    store.remove([id]),
    store.mark(),
  ];
  for (const call of await Promise.allSettled(calls))
    expect(call).toMatchObject({ status: 'rejected', reason: { message: 'gone' } });
  store.unavailable(undefined);
  expect(await store.list('all', now)).toMatchObject([{ id, revocationDate: null }]);
});
