import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { CANARY_ACCOUNT } from '@holdfast/kit/names';
import { run as findRevocations } from '../../jobs/find-revocations.ts';
import { run as proveRevocations } from '../../jobs/prove-revocations.ts';
import { never, revocationWorld, type RevocationWorld, standIn } from '../devices/fake-revocation-world.ts';

let world: RevocationWorld;
beforeEach(async () => {
  world = await revocationWorld();
});

describe('find-revocations', () => {
  it('notes what was revoked past Holdfast, once, and leaves the rest alone', async () => {
    const revoked = world.core.enrolledByDevice('john');
    const [known, canary] = [world.core.enrolledByDevice('jane'), world.core.enrolledByDevice(CANARY_ACCOUNT)];
    world.core.enrolledByDevice('john');
    await world.note(known);
    await proveRevocations(world.deps, world.around.now, never);
    for (const { hash } of [revoked, canary]) await world.core.core.revoke(hash);
    expect(await findRevocations(world.deps)).toEqual({ found: 1, keys_removed: 0 });
    expect(await world.revocations()).toMatchObject([
      { hash: known.hash, state: 'revoked' },
      { hash: revoked.hash, username: 'john', state: 'revoking', wantedAt: world.iso() },
    ]);
    expect(await findRevocations(world.deps)).toEqual({ found: 0, keys_removed: 0 });
    expect(await proveRevocations(world.deps, world.around.now, never)).toMatchObject({ revoked: 1, revoking: 0 });
  });

  it('never reads all revocations there ever were', async () => {
    await world.core.core.revoke(world.core.enrolledByDevice('john').hash);
    world.deps.certificateStore.revocations = async () => Promise.reject(new Error('all of them'));
    expect(await findRevocations(world.deps)).toEqual({ found: 1, keys_removed: 0 });
    expect(await findRevocations(world.deps)).toEqual({ found: 0, keys_removed: 0 });
  });

  it('leaves alone what has ended', async () => {
    await world.core.core.revoke(world.core.enrolledByDevice('john').hash);
    world.later(366 * 86_400);
    expect(await findRevocations(world.deps)).toMatchObject({ found: 0 });
  });

  it('removes keys that were left behind when a revocation was proven', async () => {
    const [phone, tablet] = [await world.made('john'), await world.made('john', 'tablet')];
    await world.note(phone);
    const broken = async () => Promise.reject(new Error('the disk is away'));
    const putBack = standIn(world.deps.clientKeys, 'remove', () => broken);
    await proveRevocations(world.deps, world.around.now, never);
    putBack();
    expect(await findRevocations(world.deps)).toMatchObject({ keys_removed: 1 });
    expect(await world.deps.clientKeys.kept([phone.hash, tablet.hash])).toEqual([tablet.hash]);
  });

  it('finds nothing while the core is away, which is no failure; an answer without sense is one', async () => {
    world.core.mood = 'down';
    expect(await findRevocations(world.deps)).toEqual({ found: null, keys_removed: 0 });
    world.deps.core.revokedCertificates = async () => {
      throw new AppError('upstream', 'Its answer makes no sense');
    };
    await expect(findRevocations(world.deps)).rejects.toThrow('makes no sense');
  });
});
