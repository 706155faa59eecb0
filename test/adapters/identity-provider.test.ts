// The identity provider's HTTP API over a real PostgreSQL: users.

import { describe, expect, it } from 'vitest';
import { testProvider } from '../stack/identity-provider.ts';

const provider = testProvider();
const { ask } = provider;

let counter = 0;
const fresh = (): string => `user-${(counter += 1)}`;
const create = async (values: Record<string, unknown> = {}) => {
  const answer = await ask('POST', '/core/users/', { json: { username: fresh(), name: 'N', ...values } });
  expect(answer.status).toBe(201);
  return answer.body;
};

describe('signing in', () => {
  it.each([
    ['no header', null, {}, 'Authentication credentials were not provided.'],
    ['a wrong key', 'x'.repeat(60), {}, 'Token invalid/expired'],
    ['another scheme', null, { authorization: 'Basic YTpi' }, 'Unsupported authentication type'],
    ['no key', null, { authorization: 'Bearer' }, 'Malformed header'],
    ['two keys', null, { authorization: 'Bearer a b' }, 'Malformed header'],
    ['an endless key', 'x'.repeat(5000), {}, 'Token invalid/expired'],
  ])('is 403 with %s, whatever is asked', async (_, key, headers, detail) => {
    for (const [method, path] of [
      ['GET', '/core/users/'],
      ['POST', '/core/users/'],
      ['DELETE', '/core/users/'],
      ['GET', '/core/users/me/'],
      ['GET', '/core/tokens/holdfast-bootstrap/view_key/'],
      ['GET', '/admin/version/'],
    ] as const) {
      const answer = await ask(method, path, { key, headers });
      expect([answer.status, answer.body]).toEqual([403, { detail }]);
    }
  });

  it('takes the scheme in any case', async () => {
    const headers = { authorization: 'bEaReR bootstrap-token-of-the-tests-0123456789' };
    expect((await ask('GET', '/core/users/me/', { key: null, headers })).status).toBe(200);
  });
});

describe('a user', () => {
  it('is made with what the provider adds', async () => {
    const made = await create({ email: 'a@example.org', attributes: { a: 1 } });
    expect(made).toMatchObject({ is_active: true, type: 'internal', path: 'users', groups: [], attributes: { a: 1 } });
    expect((await ask('GET', `/core/users/${made.pk}/`)).body).toEqual(made);
  });
});
