// What an embedded start decides before anything is written.

import { expect, it } from 'vitest';
import { takeIdentityHandover } from '@holdfast/identity/handover';
import { planEmbedded } from '../embedded-plan.ts';

const args = {
  embedded: true,
  data: '/nowhere/data',
  offset: 0,
  env: '/dev/null',
  listen: undefined,
  detach: false,
  flows: false,
};

function identityOf(environment: Record<string, string>) {
  const plan = planEmbedded(process.cwd(), args, environment);
  if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
  return { ...takeIdentityHandover({ ...plan.identity.environment }), password: plan.databasePasswords.identity };
}

it('gives the identity provider the secrets that are set, else some of its own', () => {
  const own = identityOf({});
  expect([own.password.length, own.secretKey.length]).toEqual([32, 32]);
  expect(own.databaseUrl).toContain(`:${own.password}@`);
  const IDENTITY_SECRET_KEY = 'set-by-a-person-and-long-enough-to-seal';
  const { password, databaseUrl, secretKey } = identityOf({ IDENTITY_DB_PASSWORD: 'of a person', IDENTITY_SECRET_KEY });
  expect([password, secretKey]).toEqual(['of a person', IDENTITY_SECRET_KEY]);
  expect(databaseUrl).toContain(':of%20a%20person@');
});

it('refuses a key of the identity provider that is too short to seal anything', () => {
  expect(planEmbedded(process.cwd(), args, { IDENTITY_SECRET_KEY: 'short' })).toMatchObject([
    { name: 'IDENTITY_SECRET_KEY', value: '***' },
  ]);
});
