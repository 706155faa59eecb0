// Lockouts that several processes count together.

import { describe, expect, it, vi } from 'vitest';
import { Lockouts } from '../../shared/sign-in/lockouts.ts';
import { type AuthenticatorWorld, authenticatorWorld, HERE, sessionOf } from './fake-authenticator.ts';
import { fakeFailures } from './fake-failures.ts';
import { failuresContract } from './failures-contract.ts';

failuresContract('in memory', () => fakeFailures(() => 0));

const kinds = (all: readonly { kind: string }[]): string[] => all.map(({ kind }) => kind);

function twoProcesses(): {
  world: AuthenticatorWorld;
  here: AuthenticatorWorld['tryWith'];
  there: AuthenticatorWorld['tryWith'];
} {
  const world = authenticatorWorld();
  const other = world.otherProcess();
  return {
    world,
    here: (...attempt) => world.tryWith(...attempt),
    there: (username, password, address = HERE, base = 'web') =>
      other.password({ username, password, address, base, requestId: 'request-2' }),
  };
}

/** Writing to the database goes on beside sign-ins. */
const written = (): Promise<void> => new Promise((turn) => setTimeout(turn));

describe('lockouts of two processes', () => {
  it('count failures of both, and hold in both', async () => {
    const { world, here, there } = twoProcesses();
    for (let count = 0; count < 5; count++)
      expect(kinds([await here('vera', `a${count}`), await there('vera', `b${count}`)])).toEqual([
        'refused',
        'refused',
      ]);
    world.later(501);
    expect(await here('ada', 'pw-ada')).toMatchObject({ kind: 'locked' });
    expect(await there('ada', 'pw-ada', HERE, 'core')).toMatchObject({ kind: 'locked' });
    expect(await there('ada', 'pw-ada', '192.0.2.8')).toMatchObject({ kind: 'in' });
    world.later(15 * 60_000);
    expect(kinds([await here('ada', 'pw-ada'), await there('ada', 'pw-ada')])).toEqual(['in', 'in']);
  });

  it('answer at most ten guesses in all, even when each process gets them at the same moment', async () => {
    const { here, there } = twoProcesses();
    const guesses = Array.from({ length: 20 }, async (_, count) =>
      (count % 2 === 0 ? here : there)('vera', `guess ${count}`),
    );
    const answers = kinds(await Promise.all(guesses));
    expect(answers.filter((kind) => kind === 'refused')).toHaveLength(10);
    expect(answers.filter((kind) => kind === 'locked')).toHaveLength(10);
  });

  it('also hold for a password that the other process has just accepted', async () => {
    const { world, here, there } = twoProcesses();
    expect(await there('ada', 'pw-ada')).toMatchObject({ kind: 'in' });
    await world.fail(10);
    world.later(501);
    expect(await there('ada', 'pw-ada')).toMatchObject({ kind: 'locked' });
    expect(await here('ada', 'pw-ada')).toMatchObject({ kind: 'locked' });
  });

  it('end in both when one releases the address', async () => {
    const { world, there } = twoProcesses();
    await world.fail(10);
    world.later(501);
    expect(await there('ada', 'pw-ada')).toMatchObject({ kind: 'locked' });
    expect(await world.authenticator.release(HERE)).toBe(true);
    world.later(501);
    expect(await there('ada', 'pw-ada')).toMatchObject({ kind: 'in' });
  });

  it('end where requests only look whether the address is locked, too', async () => {
    const { world } = twoProcesses();
    const other = world.otherProcess();
    await world.fail(10);
    expect(await other.lockouts()).toHaveLength(1);
    expect(other.lockedFor(HERE)).toBe(15 * 60);
    await world.authenticator.release(HERE);
    world.later(501);
    other.lockedFor(HERE);
    await new Promise((turn) => setImmediate(turn));
    expect(other.lockedFor(HERE)).toBeUndefined();
  });

  it('are known to a process that starts later', async () => {
    const { world } = twoProcesses();
    await world.fail(10);
    world.later(60_000);
    const late = world.otherProcess();
    expect(await late.lockouts()).toEqual([expect.objectContaining({ address: HERE, failures: 10 })]);
  });

  it('are counted by each process alone while the database does not answer, and together again afterwards', async () => {
    const { world, here, there } = twoProcesses();
    world.databaseUnavailable = true;
    await world.fail(10);
    expect(kinds([await here('ada', 'pw-ada'), await there('ada', 'pw-ada')])).toEqual(['locked', 'in']);
    world.databaseUnavailable = false;
    world.later(1001);
    for (let count = 0; count < 10; count++) await there('vera', `guess ${count}`, '192.0.2.9');
    world.later(501);
    expect(await here('ada', 'pw-ada', '192.0.2.9')).toMatchObject({ kind: 'locked' });
    expect(await here('ada', 'pw-ada')).toMatchObject({ kind: 'locked' });
  });

  it('wait once for a database that hangs, and then nobody waits while it is asked again', async () => {
    let requests = 0;
    let steadyMs = 0;
    const never = (): Promise<never> => (requests++, new Promise(() => undefined));
    const table = { failed: never, changed: never, release: never };
    const lockouts = new Lockouts({ table, steadyMs: () => steadyMs });
    vi.useFakeTimers();
    try {
      const first = lockouts.current();
      await vi.advanceTimersByTimeAsync(1_500);
      await first;
      steadyMs = 2_600;
      await lockouts.current();
      expect(await lockouts.failed(HERE)).toBe(true);
      expect(requests).toBe(2);
    } finally {
      vi.useRealTimers();
    }
  });

  it('stay when the database comes back, and hold in the other process then', async () => {
    const { world, here, there } = twoProcesses();
    await world.fail(1);
    world.databaseUnavailable = true;
    world.later(501);
    await world.fail(9);
    world.databaseUnavailable = false;
    world.later(6_000);
    expect(await here('ada', 'pw-ada')).toMatchObject({ kind: 'locked' });
    await written();
    world.later(501);
    expect(await there('ada', 'pw-ada')).toMatchObject({ kind: 'locked' });
    expect(await here('ada', 'pw-ada')).toMatchObject({ kind: 'locked' });
    world.later(15 * 60_000);
    expect(kinds([await here('ada', 'pw-ada'), await there('ada', 'pw-ada')])).toEqual(['in', 'in']);
  });

  it('count in both what one counted alone, unless it is too old', async () => {
    const { world, here, there } = twoProcesses();
    world.databaseUnavailable = true;
    await world.fail(6);
    await world.fail(6, '192.0.2.8');
    world.later(4 * 60_000);
    await world.fail(1, '192.0.2.8');
    world.later(61_000);
    world.databaseUnavailable = false;
    await here('ada', 'pw-ada');
    await written();
    for (const address of [HERE, '192.0.2.8'])
      for (let count = 0; count < 8; count++) await there('vera', 'x', address);
    expect(await there('vera', 'x', '192.0.2.8')).toMatchObject({ kind: 'refused' });
    expect(await there('ada', 'pw-ada', '192.0.2.8')).toMatchObject({ kind: 'locked' });
    expect(await there('ada', 'pw-ada')).toMatchObject({ kind: 'in' });
  });

  it('end in one process even while the database does not answer, which is reported', async () => {
    const { world, here } = twoProcesses();
    await world.fail(10);
    world.databaseUnavailable = true;
    world.later(501);
    await expect(world.authenticator.release(HERE)).rejects.toThrow(
      'Our own database does not answer. 192.0.2.7 is unlocked in this process only',
    );
    expect(await here('ada', 'pw-ada')).toMatchObject({ kind: 'in' });
  });

  it('hold for a right password, too, that was being checked when another process locked the address', async () => {
    const { world, there } = twoProcesses();
    const signIn = world.directory.signIn.bind(world.directory);
    world.directory.signIn = async (base, username, password) => {
      if (username !== 'ada') return signIn(base, username, password);
      world.later(501);
      for (let count = 0; count < 10; count++) await there('vera', 'x');
      return signIn(base, username, password);
    };
    expect(await world.tryWith('ada', 'pw-ada')).toMatchObject({ kind: 'locked' });
  });

  it('hold for a remembered header, too, though a session keeps the person known', async () => {
    const { world, here, there } = twoProcesses();
    const session = await sessionOf(world, 'ada');
    const header = `Basic ${Buffer.from('ada:pw-ada').toString('base64')}`;
    expect(await here('ada', 'pw-ada')).toMatchObject({ kind: 'in' });
    expect(world.authenticator.known(header, HERE)).toMatchObject({ username: 'ada' });
    for (let count = 0; count < 10; count++) await there('vera', 'x');
    world.later(501);
    await world.authenticator.session(session);
    expect(world.authenticator.known(header, HERE)).toBeUndefined();
  });
});
