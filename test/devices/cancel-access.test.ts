// What becomes of somebody's certificates when the person is put out: all of them go, nobody else's, whatever fails in the
// middle; and what comes after a reactivation stays.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { API_ACCOUNT } from '@holdfast/kit/names';
import { run as expireUsers } from '../../jobs/expire-users.ts';
import { run as finishIntents } from '../../jobs/finish-intents.ts';
import { isWanted, run as proveRevocations } from '../../jobs/prove-revocations.ts';
import { revokeCertificatesOf } from '../../shared/devices/revocation/cancel-access.ts';
import { deactivateUser, updateUser } from '../../shared/people/deactivate-user.ts';
import { ACTOR, dyingAt, OF_REVOCATION } from '../people/fake-people.ts';
import { never, revocationWorld, type RevocationWorld, standIn } from './fake-revocation-world.ts';

let world: RevocationWorld;
let id: number;
beforeEach(async () => {
  await begin();
});

async function begin(): Promise<void> {
  world = await revocationWorld();
  ({ id } = await world.account({ username: 'john' }));
  await world.account({ username: 'john-doe' });
}

const deactivate = () => deactivateUser({ deps: world.deps, actor: ACTOR }, { id });
const reactivate = () => updateUser({ deps: world.deps, actor: ACTOR }, { id, is_active: true });
const prove = () => proveRevocations(world.deps, world.around.now, never);
const states = async (username = 'john') =>
  Object.fromEntries((await world.revocations(username)).map(({ clientUid, state }) => [clientUid, state]));
const orders = async () => (await world.deps.certificateStore.orders()).map(({ username }) => username);

describe('a deactivation', () => {
  it('revokes everything of the person at once, what has another case of the name with the next run, and nothing of john-doe', async () => {
    await world.made('john');
    world.core.enrolledByDevice('john', 'ANDROID-1');
    world.core.enrolledByDevice('John', 'ANDROID-2');
    const other = await world.made('john-doe');
    world.core.online('john');
    world.core.online('john-doe');
    await deactivate();
    expect(await states()).toEqual({ 'holdfast-phone': 'revoked', 'ANDROID-1': 'revoked' });
    await prove();
    expect(await states()).toEqual({ 'holdfast-phone': 'revoked', 'ANDROID-1': 'revoked', 'ANDROID-2': 'revoked' });
    expect([other.revokedAt, await states('john-doe')]).toEqual([null, {}]);
    expect(world.core.clients.map(({ username }) => username)).toEqual(['john-doe']);
  });

  it('does not read the whole list of the core for whoever waits', async () => {
    await world.made('john');
    const requests: (string | undefined)[] = [];
    standIn(world.deps.core, 'certificates', (real) => async (username) => {
      requests.push(username);
      return real(username);
    });
    await deactivate();
    expect([requests.length > 0, requests.includes(undefined)]).toEqual([true, false]);
  });

  it('does not believe a core that lists somebody else’s', async () => {
    const other = await world.made('john-doe');
    world.deps.core.certificates = async () => world.core.certificates;
    await deactivate();
    expect([other.revokedAt, await world.revocations()]).toEqual([null, []]);
  });

  it('is done although the core is away: what is known is noted, the rest is ordered, the job does it later', async () => {
    await world.made('john');
    const device = world.core.enrolledByDevice('john', 'ANDROID-1');
    world.core.mood = 'down';
    expect((await deactivate()).isActive).toBe(false);
    expect([await states(), await orders()]).toEqual([{ 'holdfast-phone': 'revoking' }, ['john']]);
    expect(await isWanted(world.deps)).toBe(true);
    world.later(3600);
    expect(await prove()).toMatchObject({ open_orders: 1, revoking: 1, revoked: 0 });
    world.core.mood = 'up';
    expect(await prove()).toMatchObject({ open_orders: 0, revoked: 2 });
    expect(device.revokedAt).toBe(world.iso());
    expect([await orders(), await isWanted(world.deps)]).toEqual([[], false]);
  });

  it('revokes what the core finds under the name while its whole list is too long to be read, and stays open', async () => {
    const device = world.core.enrolledByDevice('john', 'ANDROID-1');
    const other = world.core.enrolledByDevice('john-doe', 'ANDROID-2');
    const putBack = standIn(world.deps.core, 'certificates', (certificates) => async (username) => {
      if (username === undefined) throw new AppError('upstream', 'The core answered with more than the size limit');
      return certificates(username);
    });
    await deactivate();
    expect([device.revokedAt, await states(), await orders()]).toEqual([
      world.iso(),
      { 'ANDROID-1': 'revoked' },
      ['john'],
    ]);
    const late = world.core.enrolledByDevice('john', 'ANDROID-3');
    world.later(3600);
    expect(await prove()).toMatchObject({ open_orders: 1, revoked: 1 });
    expect([late.revokedAt, other.revokedAt]).toEqual([world.iso(), null]);
    putBack();
    expect(await prove()).toMatchObject({ open_orders: 0 });
  });

  it('waits some seconds for a core that is slow, and no longer', async () => {
    await world.made('john');
    const { promise: never_ } = Promise.withResolvers<never>();
    world.deps.core.certificates = () => never_;
    await revokeCertificatesOf(world.deps, 'john', { withinMs: 20 });
    expect([await states(), await orders()]).toEqual([{ 'holdfast-phone': 'revoking' }, ['john']]);
  });

  it('begins nothing more at the core when it has waited long enough', async () => {
    const phone = await world.made('john');
    const { promise: slow, resolve } = Promise.withResolvers<typeof world.core.certificates>();
    world.deps.core.certificates = () => slow;
    await revokeCertificatesOf(world.deps, 'john', { withinMs: 20 });
    resolve([phone]);
    // The fakes need no time: what would follow has followed by the next turn.
    await new Promise((turn) => setImmediate(turn));
    expect(phone.revokedAt).toBeNull();
  });

  it('deletes the app passwords before it asks which certificates there are', async () => {
    const { identity, core } = world.deps;
    await identity.appPasswords.create({ identifier: 'x', accountId: id, description: '', expiresAt: null });
    let left: number | undefined;
    standIn(core, 'certificates', (real) => async (username) => {
      left ??= (await identity.appPasswords.list('john')).length;
      return real(username);
    });
    await deactivate();
    expect(left).toBe(0);
  });

  it('finds what was being enrolled at that moment: the order stands for 10 s', async () => {
    await deactivate();
    world.later(1);
    const device = world.core.enrolledByDevice('john', 'ANDROID-1');
    world.later(4);
    expect(await prove()).toMatchObject({ open_orders: 1 });
    expect([device.revokedAt, await states()]).toEqual([world.iso(), { 'ANDROID-1': 'revoked' }]);
    world.later(5);
    expect(await prove()).toMatchObject({ open_orders: 0 });
  });

  it('fails when it cannot be ordered, and is then finished by the job', async () => {
    const broken = async () => Promise.reject(new Error('our own database is away'));
    const putBack = standIn(world.deps.certificateStore, 'order', () => broken);
    await expect(deactivate()).rejects.toThrow();
    putBack();
    world.later(180);
    expect(await finishIntents(world.deps, world.around.now, never)).toMatchObject({ ok: 1 });
    expect(await orders()).toEqual(['john']);
  });

  it('never takes the certificate that Holdfast itself uses', async () => {
    const own = world.core.enrolledByDevice(API_ACCOUNT, API_ACCOUNT);
    const other = world.core.enrolledByDevice(API_ACCOUNT, 'ANDROID-1');
    await revokeCertificatesOf(world.deps, API_ACCOUNT);
    expect([own.revokedAt, other.revokedAt]).toEqual([null, world.iso()]);
  });

  it('leaves alone what has ended', async () => {
    const [old, ended] = [world.core.enrolledByDevice('john'), await world.made('john')];
    world.later(366 * 86_400);
    await deactivate();
    expect([old.revokedAt, ended.revokedAt, await states()]).toEqual([null, null, {}]);
  });

  it('makes health look again', async () => {
    const forgotten: string[] = [];
    world.deps.health.forget = (module) => void forgotten.push(module);
    world.core.mood = 'down';
    await deactivate();
    expect(forgotten).toContain('certificates');
  });
});

describe('an expiry', () => {
  it('revokes as well, of programs too', async () => {
    await world.account({ username: 'svc_feed', kind: 'service', attributes: { app_expires: 1 } });
    const feed = await world.made('svc_feed', '');
    expect(await expireUsers(world.deps, world.around.now, never)).toMatchObject({ expired: 1 });
    expect(await world.revocation(feed)).toMatchObject({ state: 'revoked' });
  });
});

describe('a reactivation while the order is open', () => {
  it('keeps what is enrolled after it, however soon; what was there before goes', async () => {
    const old = world.core.enrolledByDevice('john', 'ANDROID-1');
    world.core.mood = 'down';
    await deactivate();
    world.later(1);
    await reactivate();
    world.later(1);
    const renewed = world.core.enrolledByDevice('john', 'ANDROID-2');
    world.core.mood = 'up';
    await prove();
    world.later(60);
    expect(await prove()).toMatchObject({ open_orders: 0 });
    expect([old.revokedAt !== null, renewed.revokedAt]).toEqual([true, null]);
    expect(await states()).toEqual({ 'ANDROID-1': 'revoked' });
  });

  it('keeps the order open as long as nobody can say whether somebody is back', async () => {
    world.core.mood = 'down';
    await deactivate();
    world.later(20);
    const early = world.core.enrolledByDevice('john', 'ANDROID-1');
    world.core.mood = 'up';
    const broken = async () => Promise.reject(new Error('away'));
    const putBack = standIn(world.deps.identity.accounts, 'named', () => broken);
    expect(await prove()).toMatchObject({ open_orders: 1 });
    expect(early.revokedAt).toBeNull();
    putBack();
    expect(await prove()).toMatchObject({ open_orders: 0 });
    expect(early.revokedAt).toBe(world.iso());
  });

  it('is told of in the log for a minute, not all night, while the core is away', async () => {
    world.core.mood = 'down';
    await deactivate();
    const { events } = world.deps.log;
    events.length = 0;
    await prove();
    expect(events.map(({ event }) => event)).toContain('certificates.list_unreadable');
    world.later(61);
    events.length = 0;
    await prove();
    expect(events).toEqual([]);
  });

  it('gives no longer than a minute to clocks that differ', async () => {
    world.core.mood = 'down';
    await deactivate();
    world.later(61);
    const device = world.core.enrolledByDevice('john', 'ANDROID-1');
    world.core.mood = 'up';
    await prove();
    expect(device.revokedAt).toBeNull();
  });

  it('and another deactivation takes everything', async () => {
    world.core.mood = 'down';
    await deactivate();
    world.later(5);
    await reactivate();
    const renewed = world.core.enrolledByDevice('john', 'ANDROID-2');
    world.later(5);
    await deactivate();
    world.core.mood = 'up';
    await prove();
    expect(renewed.revokedAt).toBe(world.iso());
  });
});

describe('an order that cannot be carried out', () => {
  it('does not keep the others from it', async () => {
    const { certificateStore } = world.deps;
    const [one, two] = [world.core.enrolledByDevice('anna'), world.core.enrolledByDevice('berta')];
    for (const username of ['anna', 'berta']) await certificateStore.order({ username, wantedAt: world.iso() });
    standIn(certificateStore, 'wantRevoked', (real) => async (certificates, wantedAt) => {
      if (certificates.some(({ username }) => username === 'anna')) throw new Error('it cannot be written down');
      return real(certificates, wantedAt);
    });
    world.later(11);
    expect(await prove()).toMatchObject({ open_orders: 1, revoked: 1 });
    expect([one.revokedAt, two.revokedAt]).toEqual([null, world.iso()]);
  });
});

describe('a deactivation whose process dies', () => {
  it.each(['before', 'after'] as const)(
    '%s any call: in the end all is revoked, and john-doe is let in',
    async (when) => {
      let died = 0;
      for (let nth = 1; ; nth += 1) {
        await begin();
        const { deps } = world;
        const mine = [await world.made('john'), world.core.enrolledByDevice('john', 'ANDROID-1')];
        const other = await world.made('john-doe');
        const dying = dyingAt(deps, nth, when, OF_REVOCATION);
        await deactivateUser({ deps: dying, actor: ACTOR }, { id }).catch(() => undefined);
        if (dying.calls() < nth) break;
        died += 1;
        const wasIntended = deps.audit.records.some(({ action }) => action === 'user.deactivate');
        world.later(180);
        await finishIntents(deps, world.around.now, never);
        await prove();
        expect([nth, when, (await world.named('john')).isActive]).toEqual([nth, when, !wasIntended]);
        const [outcomes, after] = [
          wasIntended ? 'revoked' : undefined,
          await Promise.all(mine.map((each) => world.revocation(each))),
        ];
        expect([nth, ...after.map((each) => each?.state)]).toEqual([nth, outcomes, outcomes]);
        expect([other.revokedAt, await world.revocation(other)]).toEqual([null, undefined]);
        expect(await deps.audit.unfinished(world.iso(), 9)).toEqual([]);
      }
      expect(died).toBeGreaterThan(20);
    },
  );
});
