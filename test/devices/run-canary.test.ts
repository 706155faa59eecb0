// The canary: what it must see, what counts as a failure, what says nothing, and when one is due.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { CANARY_ACCOUNT } from '@holdfast/kit/names';
import { isWanted } from '../../jobs/prove-revocations.ts';
import { runCanaryIfDue } from '../../shared/devices/revocation/canary.ts';
import { proveOpenRevocations } from '../../shared/devices/revocation/prove.ts';
import { dyingAt, OF_REVOCATION } from '../people/fake-people.ts';
import { never, revocationWorld, type RevocationWorld, standIn } from './fake-revocation-world.ts';

let world: RevocationWorld;
beforeEach(async () => {
  world = await revocationWorld();
  world.later(86_400);
});

const PACE = { withinMs: 30, pauseMs: 5 };
const run = () => runCanaryIfDue(world.deps, PACE);
const last = () => world.deps.certificateStore.lastCanary();
const own = () => world.core.certificates.filter(({ username }) => username === CANARY_ACCOUNT);
const keys = async () => (await world.deps.clientKeys.kept(own().map(({ hash }) => hash))).length;
const actions = () => world.deps.audit.records.map(({ action, phase, result }) => [action, phase, result]);
const unavailable = async (): Promise<never> => {
  throw new AppError('unavailable', 'It does not answer');
};
const failed = (pattern: RegExp) => ({ ok: false, signed: true, problem: expect.stringMatching(pattern) as string });

describe('a canary', () => {
  it('is enrolled, let in, revoked and refused; it leaves no key and nothing in force', async () => {
    expect(await run()).toBe('passed');
    expect(await last()).toEqual({
      at: world.iso(),
      ok: true,
      signed: true,
      problem: null,
      coreStartedAt: world.core.status.startedAt,
    });
    expect(own()).toMatchObject([{ revokedAt: world.iso(), clientUid: CANARY_ACCOUNT }]);
    expect([await keys(), await world.revocations()]).toEqual([0, []]);
    expect(await world.deps.identity.appPasswords.list(CANARY_ACCOUNT)).toEqual([]);
    expect(actions()).toEqual([
      ['canary.run', 'intent', null],
      ['canary.run', 'outcome', 'ok'],
    ]);
  });

  it('fails where a revoked certificate is let in, and says where', async () => {
    world.core.enforces = false;
    expect(await run()).toBe('failed');
    expect(await last()).toMatchObject(
      failed(
        /revoked, its open connection still answers, the stream accepts a new connection with it, the API of the core accepts it\.$/,
      ),
    );
    expect([own()[0]?.revokedAt, await keys()]).toEqual([world.iso(), 0]);
    expect(actions().at(-1)).toEqual(['canary.run', 'outcome', 'failed']);
  });

  it('fails when its number is in no list of the CA', async () => {
    world.core.writesList = false;
    expect(await run()).toBe('failed');
    expect(await last()).toMatchObject(failed(/serial number is not in the revocation list of the CA/));
  });

  it('fails for a single door that is open', async () => {
    world.deps.coreDevices.roles = async () => ['ROLE_ANONYMOUS'];
    expect(await run()).toBe('failed');
    expect(await last()).toMatchObject(failed(/revoked, the API of the core accepts it\.$/));
  });

  it('gives the core some time', async () => {
    let requested = 0;
    standIn(
      world.deps.coreDevices,
      'answers',
      (real) => async (connection) => (requested += 1) < 3 || real(connection),
    );
    expect(await runCanaryIfDue(world.deps, { withinMs: 10_000, pauseMs: 5 })).toBe('passed');
    expect(requested).toBe(3);
  });

  it('fails when it is refused before it was revoked: that it is refused afterwards would say nothing', async () => {
    world.deps.coreDevices.connect = async () => ({ refused: 'silence' });
    expect(await run()).toBe('failed');
    expect(await last()).toMatchObject(failed(/refused the canary before it was revoked: silence/));
    world.later(60);
    world.deps.coreDevices.connect = async () => ({ connection: 'x', milliseconds: 1 });
    world.deps.coreDevices.roles = async () => undefined;
    expect(await run()).toBe('failed');
    expect(await last()).toMatchObject(failed(/API of the core refused the canary before/));
    expect(own().filter(({ revokedAt }) => revokedAt === null)).toEqual([]);
  });

  it('fails when the core answers and does not revoke it', async () => {
    world.deps.core.revoke = async () => {
      throw new AppError('upstream', 'The core has not set the date');
    };
    expect(await run()).toBe('failed');
    expect(await last()).toMatchObject(failed(/did not revoke the canary: The core has not set the date/));
  });

  it.each(['upstream', 'forbidden', 'not_found', 'conflict', 'invalid'] as const)(
    'says nothing when a call of it fails with %s, which the log tells, and is tried again after 30 s',
    async (code) => {
      const refuse = async (): Promise<never> => {
        throw new AppError(code, 'It does not let svc_canary in');
      };
      const { core, coreDevices, coreEnrollment, identity } = world.deps;
      const before = await last();
      const calls: [object, string][] = [
        ...(code === 'upstream' ? [] : [[coreEnrollment, 'enroll'] satisfies [object, string]]),
        [identity.appPasswords, 'create'],
        [coreDevices, 'connect'],
        [core, 'certificates'],
      ];
      for (const [port, name] of calls) {
        const putBack = standIn(port as Record<string, unknown>, name, () => refuse);
        expect([name, await run(), await last()]).toEqual([name, 'not tried', before]);
        expect([name, actions().at(-1)]).toEqual([name, ['canary.run', 'outcome', 'unknown']]);
        expect(world.deps.audit.records.at(-1)?.detail).toContain('It does not let svc_canary in');
        const reason = expect.stringContaining('It does not let svc_canary in') as string;
        expect(world.deps.log.events).toContainEqual({ level: 'warn', event: 'canary.not_tried', fields: { reason } });
        putBack();
        world.later(29);
        expect(await run()).toBe('not tried');
        world.later(1);
      }
      expect(await run()).toBe('passed');
    },
  );

  it('fails without a word on revocation when the core answers and does not sign, and is tried again after a minute', async () => {
    const certificate = await world.made('john');
    standIn(world.deps.coreEnrollment, 'enroll', () => async () => {
      throw new AppError('upstream', 'The core has an internal error (500 for POST signClient/v2)');
    });
    expect(await run()).toBe('failed');
    expect(await last()).toMatchObject({ ok: false, signed: false, problem: expect.stringContaining('500 for POST') });
    await world.note(certificate);
    await proveOpenRevocations(world.deps, never);
    expect(await world.revocations()).toMatchObject([
      { state: 'revoking', problem: expect.stringContaining('did not sign the certificate of the canary') },
    ]);
    expect(await isWanted(world.deps)).toBe(true);
    world.later(59);
    expect(await run()).toBe('not due');
    world.later(1);
    expect(await run()).toBe('failed');
  });

  it('says nothing when the provider does not tell its account', async () => {
    const before = await last();
    world.deps.identity.accounts.named = async () => {
      throw new AppError('upstream', 'Its answer makes no sense');
    };
    expect([await run(), await last(), actions()]).toEqual(['not tried', before, []]);
  });

  it('says nothing while it has no account, which the log tells; then no revocation has failed', async () => {
    const [before, certificate] = [await last(), await world.made('john')];
    await world.deps.identity.accounts.delete((await world.named(CANARY_ACCOUNT)).id);
    world.core.status = { ...world.core.status, startedAt: world.iso() };
    expect([await run(), await last(), actions()]).toEqual(['not tried', before, []]);
    const reason = expect.stringMatching(
      /account svc_canary does not exist.* Restart the stack to create it/,
    ) as string;
    expect(world.deps.log.events).toContainEqual({ level: 'warn', event: 'canary.not_tried', fields: { reason } });
    await world.note(certificate);
    await proveOpenRevocations(world.deps, never);
    const problem = expect.stringMatching(/no canary has run/) as string;
    expect(await world.revocation(certificate)).toMatchObject({ state: 'revoking', problem });
    await world.account({ username: CANARY_ACCOUNT, kind: 'service' });
    expect(await run()).toBe('passed');
  });

  it('begins by clearing away what a crash has left, also when nothing comes of it itself', async () => {
    const left = world.core.enrolledByDevice(CANARY_ACCOUNT, CANARY_ACCOUNT);
    const doe = world.core.enrolledByDevice(`${CANARY_ACCOUNT}-doe`);
    await world.deps.clientKeys.keep(left.hash, { keyPem: '', certificatePem: '', chainPem: [] });
    world.deps.coreEnrollment.enroll = unavailable;
    expect(await run()).toBe('not tried');
    expect([left.revokedAt, doe.revokedAt, await keys()]).toEqual([world.iso(), null, 0]);
  });

  it('says nothing while the core or the provider is away, and leaves the audit log alone', async () => {
    const before = await last();
    world.core.mood = 'down';
    expect(await run()).toBe('not tried');
    world.core.mood = 'up';
    world.deps.identity.accounts.named = unavailable;
    expect(await run()).toBe('not tried');
    expect([await last(), actions()]).toEqual([before, []]);
  });

  it.each(['enroll', 'connect', 'roles', 'revoke', 'answers'] as const)(
    'says nothing when %s finds the core away, is tried again after 30 s, and tidies up then',
    async (call) => {
      const before = await last();
      const { core, coreDevices, coreEnrollment } = world.deps;
      const ports = {
        enroll: coreEnrollment,
        connect: coreDevices,
        roles: coreDevices,
        revoke: core,
        answers: coreDevices,
      };
      const port = ports[call] as unknown as Record<string, unknown>;
      const real = port[call];
      port[call] = unavailable;
      expect(await run()).toBe('not tried');
      expect([await last(), actions().at(-1)]).toEqual([before, ['canary.run', 'outcome', 'unknown']]);
      port[call] = real;
      world.later(29);
      expect(await run()).toBe('not tried');
      world.later(1);
      expect(await run()).toBe('passed');
      expect([own().filter(({ revokedAt }) => revokedAt === null), await keys()]).toEqual([[], 0]);
    },
  );

  it('whose process dies at any moment leaves nothing that the next one does not clear away', async () => {
    let died = 0;
    for (const when of ['before', 'after'] as const)
      for (let nth = 1; ; nth += 1) {
        world = await revocationWorld();
        world.later(86_400);
        const ports = [...OF_REVOCATION, 'coreEnrollment'] as const;
        const dying = dyingAt(world.deps, nth, when, ports);
        await runCanaryIfDue(dying, PACE).catch(() => undefined);
        if (dying.calls() < nth) break;
        died += 1;
        world.later(60);
        const isDone = (await last())?.at !== '2026-03-04T05:06:07.000Z';
        expect([nth, await run()]).toEqual([nth, isDone ? 'not due' : 'passed']);
        expect([nth, own().filter(({ revokedAt }) => revokedAt === null), await keys()]).toEqual([nth, [], 0]);
      }
    expect(died).toBeGreaterThan(30);
  });
});

describe('a canary is due', () => {
  it('a day after the last, and not before', async () => {
    world.later(-1);
    expect(await run()).toBe('not due');
    world.later(1);
    expect(await run()).toBe('passed');
    expect(await run()).toBe('not due');
  });

  it('when none has run since this process began', async () => {
    await world.canary();
    world.later(40);
    world.deps.startedAt = world.around.now;
    expect(await run()).toBe('passed');
  });

  it('a minute after one that failed', async () => {
    await world.canary({ ok: false, signed: true, problem: 'x' });
    world.later(59);
    expect(await run()).toBe('not due');
    world.later(1);
    expect(await run()).toBe('passed');
  });

  it('when the core is another process than it was, at once', async () => {
    expect(await run()).toBe('passed');
    world.later(1);
    world.core.status = { ...world.core.status, startedAt: world.iso() };
    expect(await run()).toBe('passed');
    expect(await run()).toBe('not due');
  });
});

describe('the job that proves', () => {
  const wanted = () => isWanted(world.deps);

  it('is wanted for a canary that is due, as long as the core can be asked', async () => {
    expect(await wanted()).toBe(true);
    world.core.mood = 'down';
    expect(await wanted()).toBe(false);
    world.core.mood = 'up';
    await run();
    expect(await wanted()).toBe(false);
  });

  it('is not wanted for a canary while people wait for a start', async () => {
    world.deps.startedAt = world.around.now;
    expect(await wanted()).toBe(false);
    world.later(4);
    expect(await wanted()).toBe(false);
    world.later(1);
    expect(await wanted()).toBe(true);
  });

  it('is wanted once a minute after a canary that failed, and not every few seconds', async () => {
    world.core.enforces = false;
    let runs = 0;
    for (let seconds = 0; seconds < 300; seconds += 5) {
      if (await wanted()) {
        runs += 1;
        await run();
      }
      world.later(5);
    }
    expect(runs).toBe(5);
  });

  it('asks the core once a minute whether it is another process', async () => {
    await world.canary();
    const before = world.core.calls;
    world.core.status = { ...world.core.status, startedAt: world.iso() };
    let found = 0;
    for (let seconds = 0; seconds < 180; seconds += 5) {
      if (await wanted()) found += 1;
      world.later(5);
    }
    expect([found, world.core.calls - before]).toEqual([3, 3]);
  });

  it('is wanted for an order and for what is not proven, also while the core is away', async () => {
    await world.canary();
    world.core.mood = 'down';
    expect(await wanted()).toBe(false);
    await world.deps.certificateStore.order({ username: 'john', wantedAt: world.iso() });
    expect(await wanted()).toBe(true);
    await world.deps.certificateStore.closeOrder({ username: 'john', wantedAt: world.iso() });
    await world.note(await world.made('john'));
    expect(await wanted()).toBe(true);
  });
});
