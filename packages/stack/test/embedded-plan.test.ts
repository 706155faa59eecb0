// What an embedded start decides before anything is written.

import { expect, it } from 'vitest';
import { takeIdentityHandover } from '@holdfast/identity/handover';
import { planEmbedded } from '../embedded-plan.ts';
import { BASE_PORTS, BLOCKED_PORTS, blockedPort } from '../process/layout.ts';
import { parseStartArguments } from '../start-arguments.ts';

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

it.each(BLOCKED_PORTS)('lists port %i only if fetch refuses it', async (port) => {
  const refused = await fetch(`http://127.0.0.1:${port}/`).catch((error: unknown) => error);
  expect(refused).toMatchObject({ cause: { message: 'bad port' } });
});

it.each([
  [2000, false, { port: 10_080, purpose: 'API and console', nextOffset: 2100 }],
  [659, false, { port: 3659, purpose: 'portal', nextOffset: 700 }],
  [3669, false, { port: 6669, purpose: 'portal', nextOffset: 3700 }],
  [1637, false, { port: 10_080, purpose: 'API of the core', nextOffset: 1700 }],
  [1634, false, { port: 10_080, purpose: 'enrollment', nextOffset: 1700 }],
  [1080, false, { port: 10_080, purpose: 'identity provider', nextOffset: 1100 }],
  [169, true, { port: 2049, purpose: 'flow engine', nextOffset: 200 }],
  [169, false, undefined],
  [4120, true, { port: 6000, purpose: 'flow engine', nextOffset: 4200 }],
  // Browsers never visit these: streaming on 10080, LDAP on 6566, PostgreSQL on 6000.
  [1991, false, undefined],
  [3177, false, undefined],
  [568, false, undefined],
  [0, true, undefined],
  [1000, true, undefined],
])('checks whether --offset %i (--flows: %s) needs a blocked port', (offset, flows, blocked) => {
  expect(blockedPort(offset, flows)).toEqual(blocked);
  if (blocked !== undefined) expect(blockedPort(blocked.nextOffset, flows)).toBeUndefined();
});

it('suggests an offset that start.sh accepts for every blocked one', () => {
  const call = { home: '/nowhere', cwd: '/nowhere', environment: {} };
  const parse = (offset: number) =>
    parseStartArguments({ ...call, argv: ['--embedded', '--flows', '--offset', String(offset)] });
  let blocked = 0;
  for (let offset = 0; offset <= 65_535 - Math.max(...Object.values(BASE_PORTS)); offset++) {
    const found = blockedPort(offset, true);
    if (found === undefined) continue;
    blocked += 1;
    expect(() => parse(offset)).toThrow(`browsers refuse port ${found.port} (${found.purpose})`);
    expect(() => parse(offset)).toThrow(`--offset ${found.nextOffset}`);
    expect(parse(found.nextOffset)).toMatchObject({ offset: found.nextOffset });
  }
  expect(blocked).toBeGreaterThan(20);
});
