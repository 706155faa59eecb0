import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { API_ACCOUNT, KIND, PROBE_ACCOUNT } from '@holdfast/kit/names';
import { run as finishIntents } from '../../jobs/finish-intents.ts';
import { run as proveRevocations } from '../../jobs/prove-revocations.ts';
import { revokeCertificate } from '../../shared/devices/revocation/revoke.ts';
import { VIEWER } from '../http/fake-deps.ts';
import { ACTOR, dyingAt, OF_REVOCATION } from '../people/fake-people.ts';
import { never, revocationWorld, type RevocationWorld, standIn } from './fake-revocation-world.ts';

let world: RevocationWorld;
beforeEach(async () => {
  world = await revocationWorld();
});

type Body = Record<string, unknown>;
async function revoke(file: string, headers?: Record<string, string>): Promise<[number, Body]> {
  const response = await world.ask('POST', `/api/ops/certs/${file}/revoke`, undefined, headers);
  return [response.status, (await response.json()) as Body];
}
const unavailable = async (): Promise<never> => {
  throw new AppError('unavailable', 'The core does not answer');
};
const tokenOf = async (scope: 'users' | 'admin' | 'read'): Promise<Record<string, string>> => {
  const expiresAt = new Date(world.around.now.getTime() + 1e9).toISOString();
  const { text } = await world.deps.signIns.createToken({ name: 'x', scope, owner: 'webadmin', expiresAt });
  return { authorization: `Bearer ${text}` };
};

describe('POST /api/ops/certs/{file}/revoke', () => {
  it('revokes and proves it: 200 with the certificate as it is then', async () => {
    const { hash, serial } = await world.made('john');
    const response = await world.ask('POST', '/api/ops/certs/john~phone.p12/revoke');
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(await response.json()).toMatchObject({
      file: 'john~phone.p12',
      fingerprint: hash,
      serial,
      state: 'revoked',
      revoked_at: world.iso(),
      effective_until: world.iso(),
      days_left: 0,
      downloadable: false,
    });
    const detail = JSON.stringify({ hash, serial, file: 'john~phone.p12' });
    expect(world.deps.audit.records).toMatchObject([
      { actor: 'webadmin', action: 'certificate.revoke', target: 'john', phase: 'intent', detail },
      { actor: 'webadmin', action: 'certificate.revoke', target: 'john', phase: 'outcome', result: 'ok' },
    ]);
  });

  it('takes the hash as well, also of what a device enrolled, and leaves john-doe alone', async () => {
    const { hash } = world.core.enrolledByDevice('john');
    const other = await world.made('john-doe');
    expect(await revoke(hash)).toMatchObject([200, { state: 'revoked', username: 'john', name: null }]);
    expect([other.revokedAt, await world.revocations('john-doe')]).toEqual([null, []]);
  });

  it('does not wait for the identity provider, which may be away when a certificate must be revoked', async () => {
    await world.account({ username: 'john' });
    await world.made('john');
    world.deps.identity.accounts.named = unavailable;
    expect(await revoke('john~phone.p12')).toMatchObject([200, { state: 'revoked', username: 'john' }]);
  });

  it('notes it although the kept keys cannot be read, which leaves the proof open', async () => {
    await world.made('john');
    world.deps.clientKeys.kept = unavailable;
    expect(await revoke('john~phone.p12')).toMatchObject([202, { state: 'revoking', username: 'john' }]);
    expect(await world.revocations('john')).toMatchObject([{ problem: expect.stringContaining('stored keys') }]);
  });

  it('answers 202 while it is not proven', async () => {
    await world.made('john');
    world.core.writesList = false;
    expect(await revoke('john~phone.p12')).toMatchObject([202, { state: 'revoking', revoked_at: world.iso() }]);
  });

  it('answers 202 when something was seen that must not be', async () => {
    await world.made('john');
    world.core.enforces = false;
    expect(await revoke('john~phone.p12')).toMatchObject([202, { state: 'revocation_failed', downloadable: false }]);
  });

  it('answers 202 when the core goes away after it was noted; the job goes on by itself', async () => {
    const phone = await world.made('john');
    const putBack = standIn(world.deps.core, 'revoke', () => async () => {
      world.core.mood = 'down';
      return unavailable();
    });
    expect(await revoke('john~phone.p12')).toMatchObject([
      202,
      { state: 'revoking', revoked_at: null, downloadable: false },
    ]);
    expect(await world.revocation(phone)).toMatchObject({
      state: 'revoking',
      problem: expect.stringMatching(/not answer/),
    });
    expect(world.deps.audit.records.at(-1)).toMatchObject({ phase: 'outcome', result: 'unknown' });
    putBack();
    world.core.mood = 'up';
    expect(await proveRevocations(world.deps, world.around.now, never)).toMatchObject({ revoked: 1 });
  });

  it('answers 202 while the core is away, and 503 instead of 404 for what only the core can know', async () => {
    const phone = await world.made('john');
    const device = world.deps.theCore.enrolledByDevice('john', 'ANDROID-1');
    world.core.mood = 'down';
    expect(await revoke('john~phone.p12')).toMatchObject([202, { state: 'revoking', file: 'john~phone.p12' }]);
    for (const place of ['/api/ops/certs', '/api/me/certs']) {
      const answer = await world.ask('POST', `${place}/${device.hash}/revoke`);
      expect([answer.status, ((await answer.json()) as Body)['detail']]).toEqual([503, 'The core does not answer']);
    }
    world.core.mood = 'up';
    expect(await proveRevocations(world.deps, world.around.now, never)).toMatchObject({ revoked: 1 });
    expect(phone.revokedAt).not.toBeNull();
  });

  it('changes nothing of what is proven already', async () => {
    const phone = await world.made('john');
    await revoke('john~phone.p12');
    const [records, calls] = [world.deps.audit.records.length, await world.revocation(phone)];
    world.later(3600);
    expect(await revoke('john~phone.p12')).toMatchObject([200, { state: 'revoked' }]);
    expect([world.deps.audit.records.length, await world.revocation(phone)]).toEqual([records, calls]);
  });

  it('tries again at once what is on its way', async () => {
    const phone = await world.made('john');
    world.core.enforces = false;
    await revoke('john~phone.p12');
    world.core.enforces = true;
    expect(await revoke(phone.hash)).toMatchObject([200, { state: 'revoked' }]);
  });

  it('refuses the certificate that Holdfast itself uses, and says what to do', async () => {
    const own = world.core.enrolledByDevice(API_ACCOUNT, API_ACCOUNT);
    expect(await revoke('svc_api.p12')).toMatchObject([
      409,
      { code: 'conflict', detail: expect.stringMatching(/Holdfast itself uses .* docs\/certificates\.md/) },
    ]);
    expect([own.revokedAt, await world.revocations()]).toEqual([null, []]);
    const other = world.core.enrolledByDevice(API_ACCOUNT, 'ANDROID-1');
    expect((await revoke(other.hash))[0]).toBe(200);
  });

  it('is not for a token of the scope users when the certificate is an administrator’s', async () => {
    await world.person('chief', ['stack_admin']);
    const [theirs, mine] = [await world.made('CHIEF'), await world.made('john')];
    const users = await tokenOf('users');
    expect(await revoke(theirs.hash, users)).toMatchObject([
      403,
      { detail: expect.stringMatching(/administrator chief/) },
    ]);
    expect(theirs.revokedAt).toBeNull();
    expect((await revoke(mine.hash, users))[0]).toBe(200);
    expect((await revoke(theirs.hash, await tokenOf('read')))[0]).toBe(403);
    expect((await revoke(theirs.hash, VIEWER))[0]).toBe(403);
    expect((await revoke(theirs.hash, await tokenOf('admin')))[0]).toBe(200);
  });

  it('is not for a token of the scope users when it would stop the stack, or a program of the kind admin', async () => {
    const service = (username: string, kind: string) =>
      world.account({ username, kind: 'service', attributes: { [KIND]: kind } });
    await service(PROBE_ACCOUNT, 'data');
    await service('svc_ops', 'admin');
    await service('svc_radio', 'data');
    const users = await tokenOf('users');
    for (const username of [PROBE_ACCOUNT, 'svc_ops', 'SVC_OPS']) {
      const theirs = await world.made(username, '');
      expect([username, ...(await revoke(theirs.hash, users))]).toMatchObject([
        username,
        403,
        { detail: expect.stringMatching(/scope admin/) },
      ]);
      expect(theirs.revokedAt).toBeNull();
      expect((await revoke(theirs.hash, await tokenOf('admin')))[0]).not.toBe(403);
    }
    expect((await revoke((await world.made('svc_radio', '')).hash, users))[0]).not.toBe(403);
  });

  it('is 404 for what is no certificate', async () => {
    await world.made('john');
    for (const file of ['john.p12', 'john~other.p12', 'john', '0123456789abcdef.pem', 'x'.repeat(64)])
      expect((await revoke(file))[0]).toBe(404);
    expect((await revoke('x'.repeat(201)))[0]).toBe(422);
  });

  it('notes nothing when nothing may be intended', async () => {
    const phone = await world.made('john');
    world.deps.audit.mood = 'away';
    expect((await revoke(phone.hash))[0]).toBe(503);
    expect([phone.revokedAt, await world.revocations()]).toEqual([null, []]);
  });

  it('says so when it cannot be noted, and then asks nothing of the core', async () => {
    const phone = await world.made('john');
    world.deps.certificateStore.wantRevoked = unavailable;
    expect((await revoke(phone.hash))[0]).toBe(503);
    expect(phone.revokedAt).toBeNull();
  });
});

describe('a revocation whose process dies', () => {
  it.each(['before', 'after'] as const)('%s any call is finished by the jobs, or was never begun', async (when) => {
    let died = 0;
    for (let nth = 1; ; nth += 1) {
      world = await revocationWorld();
      const phone = await world.made('john');
      const { deps } = world;
      const dying = dyingAt(deps, nth, when, OF_REVOCATION);
      await revokeCertificate({ deps: dying, actor: ACTOR }, phone).catch(() => undefined);
      if (dying.calls() < nth) break;
      died += 1;
      const wasIntended = deps.audit.records.some(({ action }) => action === 'certificate.revoke');
      world.later(180);
      await finishIntents(deps, world.around.now, never);
      await proveRevocations(deps, world.around.now, never);
      const state = (await world.revocation(phone))?.state;
      expect([nth, when, state]).toEqual([nth, when, wasIntended ? 'revoked' : undefined]);
      expect(phone.revokedAt !== null).toBe(wasIntended);
      expect(await deps.audit.unfinished(world.iso(), 9)).toEqual([]);
    }
    expect(died).toBeGreaterThan(8);
  });
});
