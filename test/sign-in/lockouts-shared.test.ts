// Lockouts that several processes count together.

import { describe, expect, it } from 'vitest';
import { type AuthenticatorWorld, authenticatorWorld, HERE } from './fake-authenticator.ts';
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
});
