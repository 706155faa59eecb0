// The identity provider over HTTP, held to the contract by a real provider, where the environment names one.

import { describe, it } from 'vitest';
import { identityContract } from '../contract/identity.ts';
import { httpIdentity } from '../../shared/adapters/identity-http.ts';
import { queuePerKey } from '../../shared/adapters/exclusive.ts';
import { Secret } from '../../shared/domain/secret.ts';

const { HOLDFAST_TEST_IDENTITY_URL: url = '', HOLDFAST_TEST_IDENTITY_TOKEN: token = '' } = process.env;

if (url === '' || token === '') {
  describe('identity (a real provider)', () => {
    it.skip('HOLDFAST_TEST_IDENTITY_URL and HOLDFAST_TEST_IDENTITY_TOKEN (of a superuser) are not set', () =>
      undefined);
  });
} else {
  const exclusive = queuePerKey(60_000);
  identityContract(url, () => httpIdentity({ url, token: new Secret(token), fetch, exclusive }));
}
