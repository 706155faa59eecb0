// The identity provider over HTTP, held to the contract by a provider of the tests, and by a real one where the
// environment names it.

import { afterAll, beforeAll, describe, it } from 'vitest';
import { serializeByKey } from '@holdfast/kit/concurrency';
import { Secret } from '@holdfast/kit/secret';
import { httpIdentity } from '../../shared/identity/authentik/http.ts';
import type { Identity } from '../../shared/identity/port.ts';
import { type IdentityServer, identityServer } from './fake-identity-server.ts';
import { identityContract } from './identity-contract.ts';

const exclusive = serializeByKey({ ms: 60_000, late: 'The work before' });
const { HOLDFAST_TEST_IDENTITY_URL: url = '', HOLDFAST_TEST_IDENTITY_TOKEN: token = '' } = process.env;
const over = (address: string, key: string): Identity =>
  httpIdentity({ url: address, token: new Secret(key), fetch, exclusive });

describe('over HTTP', () => {
  let server: IdentityServer;
  beforeAll(async () => {
    server = await identityServer('/below');
  });
  afterAll(() => server.close());
  identityContract('a provider of the tests', () => over(server.url, server.token));
});

if (url === '' || token === '') {
  describe('identity (a real provider)', () => {
    it.skip('HOLDFAST_TEST_IDENTITY_URL and HOLDFAST_TEST_IDENTITY_TOKEN (of a superuser) are not set', () =>
      undefined);
  });
} else {
  identityContract(url, () => over(url, token));
}
