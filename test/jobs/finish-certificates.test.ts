// What becomes of deeds with certificates whose process died.

import { beforeEach, describe, expect, it } from 'vitest';
import type { Attributes } from '@holdfast/kit/json';
import { API_ACCOUNT, CANARY_ACCOUNT, PROBE_ACCOUNT } from '@holdfast/kit/names';
import { run } from '../../jobs/finish-intents.ts';
import { never, revocationWorld, type RevocationWorld } from '../devices/fake-revocation-world.ts';
import { ACTOR } from '../people/fake-people.ts';

let world: RevocationWorld;
beforeEach(async () => {
  world = await revocationWorld();
});

const intend = (action: string, target: string, detail: Attributes = {}) =>
  world.deps.audit.intend({ actor: ACTOR, action, target }, detail);
async function finish(): Promise<unknown> {
  world.later(180);
  const summary = await run(world.deps, world.around.now, never);
  expect(Object.values(summary).reduce((sum, each) => sum + each)).toBe(1);
  if (summary['open'] === 1) return 'open';
  const { result, detail = '' } = world.deps.audit.records.at(-1) ?? {};
  return [result, JSON.parse(detail)];
}
const because = (pattern: RegExp) => ({ finished_later: true, error: expect.stringMatching(pattern) as string });

describe('certificate.revoke', () => {
  it('is done when it was noted: the rest goes on by itself', async () => {
    const phone = await world.made('john');
    await intend('certificate.revoke', 'john', { hash: phone.hash });
    await world.note(phone);
    world.core.mood = 'down';
    expect(await finish()).toEqual(['ok', { finished_later: true, state: 'revoking' }]);
  });

  it('is noted when it was not, from what Holdfast knows also while the core is away', async () => {
    const phone = await world.made('john');
    await intend('certificate.revoke', 'john', { hash: phone.hash });
    world.core.mood = 'down';
    expect(await finish()).toEqual(['ok', { finished_later: true, state: 'revoking' }]);
    expect(await world.revocation(phone)).toMatchObject({ state: 'revoking' });
  });

  it('of what a device enrolled waits for the core', async () => {
    const device = world.core.enrolledByDevice('john');
    await intend('certificate.revoke', 'john', { hash: device.hash });
    world.core.mood = 'down';
    expect(await finish()).toBe('open');
    world.core.mood = 'up';
    expect(await finish()).toEqual(['ok', { finished_later: true, state: 'revoking' }]);
  });

  it('has failed for what does not exist, is somebody else’s or Holdfast’s own', async () => {
    const [other, own] = [await world.made('john-doe'), world.core.enrolledByDevice(API_ACCOUNT, API_ACCOUNT)];
    await intend('certificate.revoke', 'john', { hash: 'AA' });
    expect(await finish()).toEqual(['failed', because(/no such certificate/)]);
    await intend('certificate.revoke', 'john', { hash: other.hash });
    expect(await finish()).toEqual(['failed', because(/isn't a certificate of john/)]);
    await intend('certificate.revoke', API_ACCOUNT, { hash: own.hash });
    expect(await finish()).toEqual(['failed', because(/can be revoked/)]);
    expect(await world.revocations()).toEqual([]);
  });

  it('that cannot be read is not known', async () => {
    await intend('certificate.revoke', 'john', { nonsense: true });
    expect(await finish()).toEqual(['unknown', { finished_later: true, reason: "the intent can't be read" }]);
  });
});

describe('certificate.issue', () => {
  const detail = { username: 'john', name: 'phone', client_uid: 'holdfast-phone' };

  it('whose key nobody holds is revoked, and that one only', async () => {
    const [made, device] = [await world.made('john'), world.core.enrolledByDevice('john')];
    world.later(600);
    await intend('certificate.issue', 'john', detail);
    world.later(1);
    const lost = world.core.enrolledByDevice('John', 'holdfast-phone');
    const other = world.core.enrolledByDevice('john-doe', 'holdfast-phone');
    expect(await finish()).toEqual(['failed', because(/not finished; the certificate is being revoked/)]);
    expect((await world.revocations()).map(({ hash }) => hash)).toEqual([lost.hash]);
    expect([made, device, other].map(({ revokedAt }) => revokedAt)).toEqual([null, null, null]);
  });

  it('was not done when nothing was issued since', async () => {
    world.core.enrolledByDevice('john', 'holdfast-phone');
    world.later(600);
    await intend('certificate.issue', 'john', detail);
    expect(await finish()).toEqual(['failed', because(/not done/)]);
    expect(await world.revocations()).toEqual([]);
  });

  it('is done when the book knows it', async () => {
    await intend('certificate.issue', 'john', detail);
    await world.made('john');
    expect(await finish()).toEqual(['ok', { finished_later: true }]);
    expect(await world.revocations()).toEqual([]);
  });

  it('waits for the core', async () => {
    await intend('certificate.issue', 'john', detail);
    world.core.mood = 'down';
    expect(await finish()).toBe('open');
  });
});

describe('service_account.certificate', () => {
  const detail = { username: PROBE_ACCOUNT, client_uid: PROBE_ACCOUNT };

  it('whose key nobody holds is revoked, and nothing that a device enrolled', async () => {
    await intend('service_account.certificate', PROBE_ACCOUNT, detail);
    const device = world.core.enrolledByDevice(PROBE_ACCOUNT);
    const lost = world.core.enrolledByDevice(PROBE_ACCOUNT, PROBE_ACCOUNT);
    expect(await finish()).toEqual(['failed', because(/not finished; the certificate is being revoked/)]);
    expect((await world.revocations()).map(({ hash }) => hash)).toEqual([lost.hash]);
    expect(device.revokedAt).toBe(null);
  });

  it('is judged when nobody is at work on it: what is being made is not taken for lost', async () => {
    const { deps } = world;
    await intend('service_account.certificate', PROBE_ACCOUNT, detail);
    const fresh = world.core.enrolledByDevice(PROBE_ACCOUNT, PROBE_ACCOUNT);
    const lock = deps.deviceLock;
    deps.deviceLock = async (key, work) => {
      if (key === `service-account:${PROBE_ACCOUNT}`) await deps.certificateStore.remember({ ...fresh, name: '' });
      return lock(key, work);
    };
    expect(await finish()).toEqual(['ok', { finished_later: true }]);
    expect(await world.revocations()).toEqual([]);
  });
});

describe('canary.run', () => {
  it('has failed; the next one clears away what it left', async () => {
    await intend('canary.run', CANARY_ACCOUNT);
    expect(await finish()).toEqual(['failed', because(/not finished; the next canary/)]);
  });
});
