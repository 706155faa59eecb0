// Passwords to enroll with: one at a time for each user, made anew when they are no good, and nothing left behind that nobody knows.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { run as finishIntents } from '../../jobs/finish-intents.ts';
import {
  type EnrollmentContext,
  type IssuedEnrollment,
  issueEnrollment,
} from '../../shared/devices/enrollment/issue.ts';
import { cancelEnrollment } from '../../shared/devices/enrollment/kept.ts';
import type { Account } from '../../shared/identity/port.ts';
import { deactivateUser } from '../../shared/people/deactivate-user.ts';
import { ACTOR, Died, dyingAt, peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

const MINUTE = 60_000;
const never = new AbortController().signal;
let world: PeopleWorld;
let ada: Account;
beforeEach(async () => {
  world = await peopleWorld({ SERVER_ADDRESS: 'cot.example.org' });
  ada = await world.account({ username: 'ada' });
});

const context = (deps: EnrollmentContext['deps'] = world.deps): EnrollmentContext => ({ deps, actor: ACTOR });
const issue = (account = ada, deps = world.deps): Promise<IssuedEnrollment> => issueEnrollment(context(deps), account);
const later = (ms: number): void => void (world.around.now = new Date(world.around.now.getTime() + ms));
const passwords = async (): Promise<string[]> =>
  (await world.deps.identity.appPasswords.list('ada')).map(({ identifier }) => identifier);
const rows = async (): Promise<string[]> =>
  (await world.deps.enrollmentTokens.of(ada.id)).map(({ identifier }) => identifier);
const records = () =>
  world.deps.audit.records.map(({ action, phase, result, detail }) => ({
    action,
    phase,
    result,
    detail: JSON.parse(detail) as Record<string, unknown>,
  }));
const expires = (at: number | null) => world.deps.identity.accounts.changeAttributes(ada.id, { app_expires: at });

describe('issuing an enrollment', () => {
  it('gives an app password that ends after ENROLLMENT_TTL_MINUTES, and remembers the CA', async () => {
    const { token, key, authority } = await issue();
    expect(token).toEqual({
      identifier: expect.stringMatching(new RegExp(`^enroll-${ada.id}-[0-9a-f-]{36}$`)),
      accountId: ada.id,
      username: 'ada',
      caFingerprint: 'CA:01',
      createdAt: '2026-03-04T05:06:07.000Z',
      expiresAt: '2026-03-04T05:21:07.000Z',
    });
    expect(authority.fingerprint).toBe('CA:01');
    expect([world.deps.identity.accepts('ada', key), await rows(), await passwords()]).toEqual([
      true,
      [token.identifier],
      [token.identifier],
    ]);
    later(15 * MINUTE);
    expect(world.deps.identity.accepts('ada', key)).toBe(false);
  });

  it('is in the audit log with all but the password', async () => {
    const { token, key } = await issue();
    const detail = {
      id: ada.id,
      identifier: token.identifier,
      expires_at: token.expiresAt,
      ca_fingerprint: 'CA:01',
    };
    expect(records()).toEqual([
      { action: 'enrollment.issue', phase: 'intent', result: null, detail },
      { action: 'enrollment.issue', phase: 'outcome', result: 'ok', detail: {} },
    ]);
    expect(JSON.stringify(world.deps.audit.records)).not.toContain(key);
  });

  it('gives the same again while it is good, and says so in the audit log', async () => {
    const first = await issue();
    later(13 * MINUTE);
    expect(await issue()).toEqual(first);
    expect(await passwords()).toHaveLength(1);
    const { identifier } = first.token;
    expect(records().at(-1)).toMatchObject({ action: 'enrollment.show', result: 'ok', detail: { identifier } });
  });

  it.each<[string, () => Promise<unknown> | void]>([
    ['it is about to end', () => later(14.5 * MINUTE)],
    ['it has ended', () => later(16 * MINUTE)],
    ['the CA has changed', () => void (world.deps.theCore.ca = 'CA:02')],
    [
      'somebody has deleted it at the provider',
      async () => world.deps.identity.appPasswords.delete((await passwords())[0] ?? ''),
    ],
    ['the user ends before it', () => expires(world.around.now.getTime() / 1000 + 300)],
  ])('makes a new one, and only that is left, when %s', async (_, change) => {
    const first = await issue();
    await change();
    const second = await issue();
    expect(second.token.identifier).not.toBe(first.token.identifier);
    expect(second.token.caFingerprint).toBe(world.deps.theCore.ca);
    expect([await rows(), await passwords()]).toEqual([[second.token.identifier], [second.token.identifier]]);
    expect([first.key, second.key].map((key) => world.deps.identity.accepts('ada', key))).toEqual([false, true]);
  });

  it('never outlives the user', async () => {
    await expires(world.around.now.getTime() / 1000 + 120);
    expect((await issue()).token.expiresAt).toBe('2026-03-04T05:08:07.000Z');
  });

  it('lives as long as a lifetime of one minute allows before it is made anew', async () => {
    world.deps.settings = { ...world.deps.settings, ENROLLMENT_TTL_MINUTES: 1 };
    const { token } = await issue();
    later(40_000);
    expect((await issue()).token).toEqual(token);
    later(10_000);
    expect((await issue()).token.identifier).not.toBe(token.identifier);
  });

  it('leaves app passwords alone that are for something else', async () => {
    const own = { accountId: ada.id, description: '', expiresAt: null };
    for (const identifier of ['weather', `enroll-${ada.id}0-x`])
      await world.deps.identity.appPasswords.create({ identifier, ...own });
    await world.deps.identity.appPasswords.create({ identifier: `enroll-${ada.id}-unknown`, ...own });
    const { token } = await issue();
    expect(await passwords()).toEqual([token.identifier, `enroll-${ada.id}0-x`, 'weather'].toSorted());
  });

  it('makes one when two ask at once', async () => {
    const [one, other] = await Promise.all([issue(), issue()]);
    expect(other).toEqual(one);
    expect(await passwords()).toHaveLength(1);
  });

  it('is refused, with nothing made, for somebody who is not active or has expired', async () => {
    await world.deps.identity.accounts.change(ada.id, { isActive: false });
    await expect(issue()).rejects.toMatchObject({ code: 'conflict', message: expect.stringMatching(/not active/) });
    await world.deps.identity.accounts.change(ada.id, { isActive: true });
    await expires(world.around.now.getTime() / 1000);
    await expect(issue()).rejects.toMatchObject({ code: 'conflict', message: expect.stringMatching(/has expired/) });
    expect([await rows(), await passwords(), records()]).toEqual([[], [], []]);
  });

  it('is refused to a token of the scope users for an administrator', async () => {
    const webadmin = await world.named('webadmin');
    const principal = {
      username: 'vera',
      role: 'admin' as const,
      groups: [],
      by: { kind: 'token' as const, id: 't', scope: 'users' as const },
    };
    for (const act of [issueEnrollment, cancelEnrollment])
      await expect(act({ ...context(), principal }, webadmin)).rejects.toMatchObject({ code: 'forbidden' });
    await issueEnrollment({ ...context(), principal }, ada);
  });

  it('leaves no password to somebody who is deactivated at that moment', async () => {
    const { appPasswords } = world.deps.identity;
    world.deps.identity.appPasswords = {
      ...appPasswords,
      create: async (wanted) => {
        await deactivateUser({ deps: world.deps, actor: ACTOR }, ada);
        return appPasswords.create(wanted);
      },
    };
    await expect(issue()).rejects.toMatchObject({ code: 'conflict' });
    expect([await rows(), await passwords()]).toEqual([[], []]);
    expect(records().at(-1)).toMatchObject({ action: 'enrollment.issue', phase: 'outcome', result: 'failed' });
  });

  it('makes nothing while the CA cannot be read or our database is away', async () => {
    const { coreAuthority, audit } = world.deps;
    world.deps.coreAuthority = {
      ...coreAuthority,
      certificate: () => Promise.reject(new AppError('unavailable', 'ca.pem is missing')),
    };
    await expect(issue()).rejects.toMatchObject({ code: 'unavailable' });
    world.deps.coreAuthority = coreAuthority;
    audit.mood = 'away';
    await expect(issue()).rejects.toMatchObject({ code: 'unavailable' });
    expect([await rows(), await passwords()]).toEqual([[], []]);
  });

  it('leaves it to a job when the provider may still make one, and gives that one to nobody', async () => {
    const { appPasswords } = world.deps.identity;
    let late: (() => Promise<unknown>) | undefined;
    world.deps.identity.appPasswords = {
      ...appPasswords,
      create: async (wanted) => {
        late = () => appPasswords.create(wanted);
        throw new AppError('unavailable', 'The identity provider does not answer');
      },
    };
    await expect(issue()).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/Then issue a new one/),
    });
    await late?.();
    world.deps.identity.appPasswords = appPasswords;
    expect(await passwords()).toHaveLength(1);
    later(3 * MINUTE);
    expect(await finishIntents(world.deps, world.around.now, never)).toMatchObject({ failed: 1, open: 0 });
    expect([await passwords(), await rows()]).toEqual([[], []]);
  });
});

/** As `dyingAt`; a dead process writes no row either. */
function dying(nth: number, when: 'before' | 'after') {
  const deps = dyingAt(world.deps, nth, when);
  const { enrollmentTokens } = world.deps;
  const alive = async <T>(act: () => Promise<T>): Promise<T> => {
    if (deps.calls() >= nth) throw new Died('dead already');
    return act();
  };
  return {
    ...deps,
    enrollmentTokens: {
      add: (...given: Parameters<typeof enrollmentTokens.add>) => alive(() => enrollmentTokens.add(...given)),
      of: (id: number) => alive(() => enrollmentTokens.of(id)),
      remove: (identifier: string) => alive(() => enrollmentTokens.remove(identifier)),
    },
  };
}

describe('a process that dies while it issues', () => {
  it.each(['before', 'after'] as const)('leaves nothing that works, wherever it died (%s a call)', async (when) => {
    const whole = dying(1_000, when);
    await issue(ada, whole);
    await cancelEnrollment(context(), ada);
    expect(whole.calls()).toBeGreaterThan(4);
    for (let nth = 1; nth <= whole.calls(); nth++) {
      await expect(issue(ada, dying(nth, when))).rejects.toThrow();
      const known = await rows();
      for (const identifier of await passwords()) expect([nth, known]).toEqual([nth, [identifier]]);
      later(3 * MINUTE);
      await finishIntents(world.deps, world.around.now, never);
      expect([nth, await passwords(), await rows()]).toEqual([nth, [], []]);
    }
    const count = (wanted: string): number => records().filter(({ phase }) => phase === wanted).length;
    expect(count('outcome')).toBe(count('intent'));
  });
});

describe('withdrawing an enrollment', () => {
  it('deletes all app passwords of ours for it and their rows, and no others', async () => {
    const { key } = await issue();
    const own = { accountId: ada.id, description: '', expiresAt: null };
    for (const identifier of ['weather', `enroll-${ada.id}-unknown`])
      await world.deps.identity.appPasswords.create({ identifier, ...own });
    await cancelEnrollment(context(), ada);
    expect([await passwords(), await rows()]).toEqual([['weather'], []]);
    expect(world.deps.identity.accepts('ada', key)).toBe(false);
    expect(records().slice(-2)).toMatchObject([
      { action: 'enrollment.withdraw', phase: 'intent', detail: { id: ada.id, identifiers: expect.any(Array) } },
      { action: 'enrollment.withdraw', phase: 'outcome', result: 'ok' },
    ]);
    await cancelEnrollment(context(), ada);
  });

  it('is possible for somebody who is not active, and drops rows without a password', async () => {
    await issue();
    await deactivateUser({ deps: world.deps, actor: ACTOR }, ada);
    expect([await passwords(), (await rows()).length]).toEqual([[], 1]);
    await cancelEnrollment(context(), ada);
    expect(await rows()).toEqual([]);
  });
});
