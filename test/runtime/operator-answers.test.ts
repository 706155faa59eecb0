// What the management process does for whoever runs the scripts on its machine.

import { expect, it } from 'vitest';
import type { MemoryHealthCache } from '../../shared/health/cache.ts';
import { bootstrapIdentity } from '../../shared/identity/bootstrap.ts';
import { answerOperator, type OperatorDeps, type Proof } from '../../shared/runtime/operator-answers.ts';
import { world } from '../health/fake-monitored.ts';
import { type FakeDeps, fakeDeps } from '../http/fake-deps.ts';

interface Operated {
  deps: FakeDeps;
  operatorDeps: OperatorDeps;
  /** By whom which password of the settings was given last. */
  applied: Map<string, string>;
  ask: (request: unknown) => Promise<unknown>;
}

function operated(around = world()): Operated {
  const deps = fakeDeps({}, around);
  const applied = new Map<string, string>();
  const appliedPasswords = {
    isApplied: async (username: string, password: string) => applied.get(username) === password,
    remember: async (username: string, password: string) => void applied.set(username, password),
    forget: async (username: string) => void applied.delete(username),
  };
  const operatorDeps: OperatorDeps = { ...deps, health: deps.health as MemoryHealthCache, appliedPasswords };
  return { deps, operatorDeps, applied, ask: (request) => answerOperator(operatorDeps, request) };
}

const NEW = 'a long new pass phrase';

async function wrongPasswords({ deps }: Operated, address: string): Promise<void> {
  for (let count = 0; count < 10; count++)
    await deps.authenticator.password({ username: 'vera', password: 'wrong', address, base: 'web', requestId: '' });
}

it('lists the locked addresses and frees one, audited as operator', async () => {
  const world = operated();
  await wrongPasswords(world, '192.0.2.1');
  expect(await world.ask({ ask: 'lockouts' })).toMatchObject([{ address: '192.0.2.1', failures: 10 }]);
  await world.ask({ ask: 'unlock', address: '192.0.2.1' });
  expect(await world.ask({ ask: 'lockouts' })).toEqual([]);
  const records = world.deps.audit.records.filter(({ action }) => action === 'lockout.release');
  expect(records).toMatchObject([
    { actor: 'operator', target: '192.0.2.1', phase: 'intent' },
    { actor: 'operator', phase: 'outcome', result: 'ok' },
  ]);
});

it('refuses what is no address and what is not locked, in words', async () => {
  const { ask } = operated();
  for (const address of ['; drop', '', '9'.repeat(1000)])
    await expect(ask({ ask: 'unlock', address })).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringContaining(`'${address}' isn't an address. unlock.sh --list`),
    });
  await expect(ask({ ask: 'unlock', address: '192.0.2.9' })).rejects.toMatchObject({ code: 'not_found' });
});

it('gives a user a password, audited as operator, which is quoted nowhere', async () => {
  const { deps, ask, applied } = operated();
  await deps.identity.accounts.create({ username: 'vera', name: 'Vera', kind: 'person' });
  await ask({ ask: 'password', username: 'vera', password: NEW, isOfSettings: false });
  expect(deps.identity.accepts('vera', NEW)).toBe(true);
  expect(deps.audit.records).toMatchObject([
    { actor: 'operator', action: 'user.password', target: 'vera', phase: 'intent' },
    { actor: 'operator', phase: 'outcome', result: 'ok' },
  ]);
  expect(JSON.stringify([deps.audit.records, deps.log.events])).not.toContain(NEW);
  expect(applied.size).toBe(0);
});

it('remembers that of webadmin as the one of the settings only where the settings have it', async () => {
  const { deps, ask, applied } = operated();
  await deps.identity.accounts.create({ username: 'webadmin', name: 'Web', kind: 'person' });
  await ask({ ask: 'password', username: 'webadmin', password: NEW, isOfSettings: false });
  expect(applied.size).toBe(0);
  await ask({ ask: 'password', username: 'webadmin', password: NEW, isOfSettings: true });
  expect(applied.get('webadmin')).toBe(NEW);
});

it('gives webadmin a password that a restart with the settings of before does not take back', async () => {
  const { deps, operatorDeps, ask } = operated();
  const start = (webadminPassword: string): Promise<unknown> =>
    bootstrapIdentity(
      { ...operatorDeps, directory: { signIn: async () => undefined } },
      { adminGroup: 'admins', viewerGroup: 'viewers', webadminPassword, ldapServicePassword: undefined },
    );
  const old = deps.settings.CORE_WEBADMIN_PASSWORD?.reveal() ?? '';
  await start(old);
  for (const password of ['an earlier pass phrase', NEW])
    await ask({ ask: 'password', username: 'webadmin', password, isOfSettings: true });
  await start(old);
  expect(deps.identity.accepts('webadmin', NEW)).toBe(true);
  await start(NEW);
  expect(deps.identity.accepts('webadmin', NEW)).toBe(true);
  // Once the new settings were in force, the old value is one like any other.
  await start(old);
  expect(deps.identity.accepts('webadmin', old)).toBe(true);
});

it.each([
  ['nobody', NEW, 'not_found'],
  ['n'.repeat(100), NEW, 'not_found'],
  ['svc_probe', NEW, 'not_found'],
  ['vera', 'short', 'invalid'],
  ['vera', 'atakatakatak', 'invalid'],
])('does not give %s the password %s', async (username, password, code) => {
  const { deps, ask } = operated();
  await deps.identity.accounts.create({ username: 'vera', name: 'Vera', kind: 'person' });
  await deps.identity.accounts.create({ username: 'svc_probe', name: 'Probe', kind: 'service' });
  await expect(ask({ ask: 'password', username, password, isOfSettings: false })).rejects.toMatchObject({ code });
});

it('does nothing while our own database is away, and says that it is', async () => {
  const { deps, ask } = operated();
  await deps.identity.accounts.create({ username: 'vera', name: 'Vera', kind: 'person' });
  deps.audit.mood = 'away';
  await expect(ask({ ask: 'password', username: 'vera', password: NEW, isOfSettings: false })).rejects.toMatchObject({
    code: 'unavailable',
  });
  expect(deps.identity.accepts('vera', NEW)).toBe(false);
});

it('proves the stack: every stage with its time, and what is wrong at the one that failed', async () => {
  const whole = (await operated().ask({ ask: 'prove' })) as Proof;
  expect(whole.stages.length).toBeGreaterThan(0);
  expect([whole.passed, whole.stages.filter(({ ok }) => !ok)]).toEqual([true, []]);
  const around = world();
  around.core.mood = 'down';
  const broken = (await operated(around).ask({ ask: 'prove' })) as Proof;
  const failed = broken.stages.find(({ ok }) => !ok);
  expect(failed).toBeDefined();
  expect([broken.passed, broken.message]).toEqual([false, failed?.problem]);
});

it('proves with what is wrong now, not with what was before the stack was up', async () => {
  const { deps, ask } = operated();
  const before = { status: 'critical', message: 'the core was away', data: {} } as const;
  const history = { failuresInRow: 1, pollsInRow: 1, shouldAlert: false, updated_at: new Date().toISOString() };
  await deps.health.put({ module: 'retention', ...before, details: [], remedies: [], ...history });
  const { complaints, measured } = (await ask({ ask: 'prove' })) as Proof;
  expect(measured).toBe(1);
  expect(complaints.map(({ message }) => message)).not.toContain('the core was away');
});

it('says where a setting came from, and of an unknown one nothing', async () => {
  const { ask } = operated();
  expect(await ask({ ask: 'source', name: 'CORE_WEBADMIN_PASSWORD' })).toBe('environment');
  expect(await ask({ ask: 'source', name: 'NONE' })).toBeNull();
});

it('refuses what it does not know', async () => {
  for (const requested of [undefined, {}, { ask: 'shell' }, { ask: 'health', more: 1 }, { ask: 'unlock' }])
    await expect(operated().ask(requested)).rejects.toMatchObject({ code: 'invalid' });
});

it('names the work that a restart would interrupt', async () => {
  const { deps, ask } = operated();
  expect(await ask({ ask: 'busy' })).toEqual([]);
  const now = deps.now().toISOString();
  await deps.opsJobs.add({ id: crypto.randomUUID(), kind: 'vacuum', actor: 'ada', input: {}, now });
  deps.backups.state = async () => ({
    ...(await fakeDeps().backups.state()),
    running: {
      kind: 'backup',
      name: null,
      started_at: now,
      phase: 'Copying cot_router',
      percent: null,
      bytes_per_second: null,
      seconds_left: null,
    },
  });
  expect(await ask({ ask: 'busy' })).toEqual(['vacuum', 'backup']);
});
