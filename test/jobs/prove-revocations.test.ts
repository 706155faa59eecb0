// When the job that proves makes health measure again what takes too long.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { run } from '../../jobs/prove-revocations.ts';
import { MemoryHealthCache } from '../../shared/health/cache.ts';
import { never, revocationWorld, type RevocationWorld, standIn } from '../devices/fake-revocation-world.ts';

let world: RevocationWorld;
beforeEach(async () => {
  world = await revocationWorld();
  const nowMs = () => world.around.now.getTime();
  world.deps.health = new MemoryHealthCache({ intervals: { certificates: 3600 }, nowMs });
  world.deps.coreAuthority.revocationList = async () => {
    throw new AppError('unavailable', 'It does not answer');
  };
});

/** One run, which takes so many seconds. */
async function prove(seconds = 0): Promise<void> {
  const putBack = standIn(world.deps.core, 'status', (real) => async () => {
    world.later(seconds);
    putBack();
    return real();
  });
  await run(world.deps, world.around.now, never);
}

const isDue = async () => (await world.deps.health.takeDue(world.around.now.getTime())).includes('certificates');
const measured = () =>
  world.deps.health.put({
    module: 'certificates',
    status: 'note',
    message: '',
    details: [],
    remedies: [],
    updated_at: world.iso(),
    data: {},
    shouldAlert: false,
    failuresInRow: 0,
    pollsInRow: 0,
  });
/** True when it was due. */
async function measure(): Promise<boolean> {
  const due = await isDue();
  if (due) await measured();
  return due;
}

const WANTED = {
  'a revocation': () => world.note(world.core.enrolledByDevice('john')),
  'an order': async () => {
    world.core.mood = 'down';
    await world.deps.certificateStore.order({ username: 'john', wantedAt: world.iso() });
  },
};

describe.each(['a revocation', 'an order'] as const)('%s that is not proven in time', (what) => {
  beforeEach(async () => {
    await WANTED[what]();
    await prove();
    await measure();
  });

  it('is measured anew when it is late, and then no more', async () => {
    world.later(19);
    await prove();
    expect(await measure()).toBe(false);
    world.later(1);
    await prove();
    expect(await measure()).toBe(true);
    for (let nth = 0; nth < 30; nth++) {
      world.later(5);
      await prove();
      expect([nth, await measure()]).toEqual([nth, false]);
    }
  });

  it('is measured anew though the run took longer than that', async () => {
    world.later(19);
    await prove(45);
    expect(await measure()).toBe(true);
    world.later(5);
    await prove();
    expect(await measure()).toBe(false);
  });

  it('is measured anew though no run was there for minutes', async () => {
    world.later(600);
    await prove();
    expect(await measure()).toBe(true);
  });

  it('is measured anew when the measurement that has ended since began too early to see it', async () => {
    world.later(15);
    await world.deps.health.forget('certificates');
    expect(await isDue()).toBe(true);
    world.later(8);
    await measured();
    await prove();
    expect(await measure()).toBe(true);
  });
});
