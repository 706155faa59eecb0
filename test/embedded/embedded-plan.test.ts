// What an embedded start decides before anything is written.

import { expect, it } from 'vitest';
import { takeIdentityHandover } from '../../compose/embedded/identity/handover.ts';
import { planEmbedded } from '../../scripts/embedded-plan.ts';

it('gives the identity provider secrets of its own, whatever the environment calls so', () => {
  const args = { embedded: true, data: '/nowhere/data', offset: 0, env: '/dev/null', listen: undefined, detach: false };
  const environment = { IDENTITY_DB_PASSWORD: 'of something else', IDENTITY_SECRET_KEY: 'of something else' };
  const plan = planEmbedded(process.cwd(), args, environment);
  if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
  const { databaseUrl, secretKey } = takeIdentityHandover({ ...plan.identity.environment });
  expect(databaseUrl).toContain(`:${plan.databasePasswords.identity}@`);
  expect([plan.databasePasswords.identity.length, secretKey.length]).toEqual([32, 32]);
});
