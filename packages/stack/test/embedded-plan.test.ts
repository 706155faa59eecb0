// What an embedded start decides before anything is written.

import { expect, it } from 'vitest';
import { takeCoreHandover } from '@holdfast/core/handover';
import { takeIdentityHandover } from '@holdfast/identity/handover';
import { natsProgram } from '../cluster.ts';
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
  expect(blockedPort(offset, { flows })).toEqual(blocked);
  if (blocked !== undefined) expect(blockedPort(blocked.nextOffset, { flows })).toBeUndefined();
});

it.each([
  [1624, 'enrollment of core-2'],
  [1617, 'API of core-3'],
])('checks the ports of every core node with --offset %i', (offset, purpose) => {
  const parts = { flows: false, nodes: 3 };
  expect(blockedPort(offset, parts)).toEqual({ port: 10_080, purpose, nextOffset: 1700 });
  expect(blockedPort(offset, { flows: false })).toBeUndefined();
  expect(() =>
    parseStartArguments({
      home: '/nowhere',
      cwd: '/nowhere',
      environment: {},
      argv: ['--embedded', '--cluster', '3', '--offset', String(offset)],
    }),
  ).toThrow(`browsers refuse port 10080 (${purpose})`);
});

it('suggests an offset that start.sh accepts for every blocked one', () => {
  const call = { home: '/nowhere', cwd: '/nowhere', environment: {} };
  const parse = (offset: number) =>
    parseStartArguments({ ...call, argv: ['--embedded', '--flows', '--offset', String(offset)] });
  let blocked = 0;
  for (let offset = 0; offset <= 65_535 - Math.max(...Object.values(BASE_PORTS)); offset++) {
    const found = blockedPort(offset, { flows: true });
    if (found === undefined) continue;
    blocked += 1;
    expect(() => parse(offset)).toThrow(`browsers refuse port ${found.port} (${found.purpose})`);
    expect(() => parse(offset)).toThrow(`--offset ${found.nextOffset}`);
    expect(parse(found.nextOffset)).toMatchObject({ offset: found.nextOffset });
  }
  expect(blocked).toBeGreaterThan(20);
});

it('gives each node of a cluster ports and files of its own, and all of them one message server', () => {
  const plan = planEmbedded(process.cwd(), { ...args, offset: 100, cluster: 3 }, {});
  if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
  const nodes = plan.cluster?.nodes.map(({ environment }) => takeCoreHandover({ ...environment })) ?? [];
  expect(nodes.map(({ streamingPort, cluster }) => [streamingPort, cluster?.node, cluster?.index])).toEqual([
    [8189, 'core', 0],
    [8199, 'core-2', 1],
    [8209, 'core-3', 2],
  ]);
  expect(new Set(nodes.map(({ cluster }) => cluster?.directory)).size).toBe(3);
  expect(new Set(nodes.map(({ cluster }) => JSON.stringify(cluster?.nats))).size).toBe(1);
  expect(plan.core.environment).toBe(plan.cluster?.nodes[0]?.environment);
  expect(plan.stackFile).toMatchObject({
    started_with: { arguments: ['--offset', '100', '--cluster', '3', '--env', '/dev/null'] },
    core: { streaming: 'tls://127.0.0.1:8189', nodes: [{}, {}, { streaming: 'tls://127.0.0.1:8209' }] },
  });
});

it('knows nothing of a message server with one node', () => {
  const plan = planEmbedded(process.cwd(), args, {});
  expect(plan).not.toHaveProperty('cluster');
  expect(plan).not.toHaveProperty('stackFile.core.nodes');
});

it.each(['0', '10', '-3', 'three'])('refuses --cluster %s', (value) => {
  const call = { argv: ['--embedded', `--cluster=${value}`], home: '/h', cwd: '/h', environment: {} };
  expect(() => parseStartArguments(call)).toThrow(`--cluster ${value}: must be a number of core nodes from 1 to 9`);
});

it('says how to install the message server when it is missing', () => {
  expect(() => natsProgram('/nowhere', ['/nowhere/else'])).toThrow(
    '--cluster needs nats-server, which is not installed.',
  );
});
