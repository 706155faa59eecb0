// When a revocation may be called proven, and what is said as long as it may not.

import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import type { CoreCertificate, RevocationListContent } from '../../shared/core/port.ts';
import { proveOpenRevocations } from '../../shared/devices/revocation/prove.ts';
import { never, revocationWorld, type RevocationWorld, standIn } from './fake-revocation-world.ts';

let world: RevocationWorld;
let phone: CoreCertificate;
beforeEach(async () => {
  world = await revocationWorld();
  phone = await world.made('john');
  await world.note(phone);
});

const prove = () => proveOpenRevocations(world.deps, never);
const state = async (of = phone) => {
  const found = await world.revocation(of);
  return [found?.state, found?.problem ?? null, found?.streams ?? null];
};
const kept = async (of = phone) => (await world.deps.clientKeys.kept([of.hash])).length === 1;
const intents = () =>
  world.deps.audit.records.filter(({ phase, action }) => phase === 'intent' && action === 'certificate.revoke');
const says = (pattern: RegExp): unknown => expect.stringMatching(pattern);
const unavailable = async () => {
  throw new AppError('unavailable', 'It does not answer');
};

/** The list as the core writes it, changed. */
function listed(change: (list: RevocationListContent) => Partial<RevocationListContent>): void {
  const { coreAuthority } = world.deps;
  const read = coreAuthority.revocationList.bind(coreAuthority);
  coreAuthority.revocationList = async () => {
    const list = await read();
    return { ...list, ...change(list) };
  };
}

describe('a revocation', () => {
  it('is proven when the core has its date, the list its number, no stream lives, and a handshake is refused', async () => {
    expect(await prove()).toEqual({ revoked: 1, revoking: 0, revocation_failed: 0 });
    expect(await state()).toEqual(['revoked', null, 'none']);
    expect(await world.revocation(phone)).toMatchObject({ provenAt: world.iso(), checkedAt: world.iso() });
    expect(phone.revokedAt).toBe(world.iso());
    expect(await kept()).toBe(false);
    expect(world.deps.audit.records).toMatchObject([
      { actor: 'prove-revocations', action: 'certificate.revoke', target: 'john', phase: 'intent' },
      { actor: 'prove-revocations', action: 'certificate.revoke', target: 'john', phase: 'outcome', result: 'ok' },
    ]);
    expect(JSON.parse(intents()[0]?.detail ?? '')).toEqual({
      hash: phone.hash,
      serial: phone.serial,
      file: 'john~phone.p12',
    });
    expect(await prove()).toEqual({ revoked: 0, revoking: 0, revocation_failed: 0 });
  });

  it('waits for a core that is away, intends nothing meanwhile, and goes on when it is back', async () => {
    world.core.mood = 'down';
    for (let run = 0; run < 3; run++) expect(await prove()).toMatchObject({ revoking: 1 });
    expect(await state()).toEqual(['revoking', says(/Couldn't ask the core: The core does not answer/), null]);
    expect(intents()).toEqual([]);
    world.core.mood = 'up';
    expect(await prove()).toMatchObject({ revoked: 1 });
    expect(await state()).toEqual(['revoked', null, 'none']);
  });

  it('waits for a core that goes away between being read and revoking', async () => {
    const putBack = standIn(world.deps.core, 'revoke', () => unavailable);
    expect(await prove()).toMatchObject({ revoking: 1 });
    expect(await state()).toEqual(['revoking', says(/did not revoke it: It does not answer/), null]);
    putBack();
    expect(await prove()).toMatchObject({ revoked: 1 });
  });

  it('has failed when the core answers and does not revoke; after a minute that is asked once a minute', async () => {
    let requested = 0;
    world.deps.core.revoke = async () => {
      requested += 1;
      throw new AppError('upstream', 'The core has not set the date');
    };
    for (let run = 0; run < 12; run++) {
      expect((await prove()).revocation_failed).toBe(1);
      world.later(5);
    }
    expect(await state()).toEqual(['revocation_failed', says(/has not set the date/), null]);
    expect(requested).toBe(12);
    for (let run = 0; run < 24; run++) {
      world.later(5);
      await prove();
    }
    expect(requested).toBe(14);
    expect(intents()).toHaveLength(14);
  });

  it('has a minute until the list holds it, and then has failed until it does', async () => {
    listed(({ serials }) => ({ serials: world.core.writesList ? [phone.serial] : serials }));
    world.core.writesList = false;
    await prove();
    expect(await state()).toEqual(['revoking', says(/does not contain the serial number 1/), 'none']);
    world.later(59);
    await prove();
    expect((await state())[0]).toBe('revoking');
    world.later(1);
    await prove();
    expect((await state())[0]).toBe('revocation_failed');
    expect(await kept()).toBe(true);
    world.core.writesList = true;
    await prove();
    expect(await state()).toEqual(['revoked', null, 'none']);
  });

  it('has failed at once when the list is not signed by the CA', async () => {
    listed(() => ({ ours: false }));
    await prove();
    expect(await state()).toEqual(['revocation_failed', says(/not signed by the CA/), 'none']);
  });

  it('is not proven by a list that is out of force', async () => {
    listed(() => ({ nextUpdate: world.iso() }));
    await prove();
    expect(await state()).toEqual(['revoking', says(/was valid until/), 'none']);
  });

  it('is open while the list cannot be read', async () => {
    world.deps.coreAuthority.revocationList = unavailable;
    world.later(600);
    await prove();
    expect(await state()).toEqual(['revoking', says(/list cannot be read: It does not answer/), 'none']);
  });

  it('of what is gone from the table of the core needs the list, and has failed without', async () => {
    world.core.certificates.length = 0;
    await prove();
    expect(await state()).toEqual(['revocation_failed', says(/table does not have .* docs\/certificates.md/), 'none']);
    listed(() => ({ serials: [phone.serial] }));
    await prove();
    expect(await state()).toEqual(['revoked', null, 'none']);
    expect(intents()).toEqual([]);
  });

  it('of what is gone is looked at once a minute after the first, and the others as ever', async () => {
    world.core.certificates.length = 0;
    const tablet = await world.made('jane');
    await world.note(tablet);
    listed(() => ({ serials: [] }));
    const looked = { [phone.hash]: 0, [tablet.hash]: 0 };
    standIn(world.deps.core, 'certificate', (real) => async (hash) => {
      looked[hash] = (looked[hash] ?? 0) + 1;
      return real(hash);
    });
    for (let run = 0; run < 13; run++) {
      await prove();
      world.later(5);
    }
    expect(looked).toEqual({ [phone.hash]: 13, [tablet.hash]: 13 });
    for (let run = 0; run < 24; run++) {
      await prove();
      world.later(5);
    }
    expect(looked).toEqual({ [phone.hash]: 15, [tablet.hash]: 37 });
    expect((await state())[1]).toEqual(says(/table does not have/));
    listed(() => ({ serials: [phone.serial, tablet.serial] }));
    world.later(60);
    expect(await prove()).toMatchObject({ revoked: 2 });
  });

  it('of what has ended needs neither list nor handshake nor canary, only the date', async () => {
    world.later(366 * 86_400);
    world.core.writesList = false;
    world.core.enforces = false;
    await world.canary({ ok: false, problem: 'x' });
    await prove();
    expect(await state()).toEqual(['revoked', null, 'none']);
    expect(phone.revokedAt).toBe(world.iso());
  });
});

describe('streams', () => {
  it('that live on are ended, and looked at again', async () => {
    world.core.online('JOHN');
    world.core.online('john-doe');
    await prove();
    expect(await state()).toEqual(['revoked', null, 'none']);
    expect(world.core.clients.map(({ username }) => username)).toEqual(['john-doe']);
  });

  it('that cannot be ended leave it open for a minute, then it has failed', async () => {
    world.core.online('john');
    world.deps.core.disconnect = async () => false;
    await prove();
    expect(await state()).toEqual(['revoking', says(/john is still connected after .*tls:1/), null]);
    world.later(60);
    await prove();
    expect((await state())[0]).toBe('revocation_failed');
  });

  it('say nothing, and are left alone, when the user has another certificate in force', async () => {
    const tablet = await world.made('john', 'tablet');
    world.core.online('john');
    await prove();
    expect(await state()).toEqual(['revoked', null, 'unverifiable']);
    expect(world.core.clients).toHaveLength(1);
    await world.note(tablet);
    await prove();
    expect(await state(tablet)).toEqual(['revoked', null, 'none']);
    expect(world.core.clients).toEqual([]);
  });

  it('are left alone when a phone has the other certificate in another case of the name', async () => {
    world.core.enrolledByDevice('John');
    world.core.online('John');
    await prove();
    expect(await state()).toEqual(['revoked', null, 'unverifiable']);
    expect(world.core.clients).toHaveLength(1);
  });

  it('are looked at for john although john-doe has a certificate in force, which stays', async () => {
    const other = await world.made('john-doe');
    world.core.online('john');
    await prove();
    expect(await state()).toEqual(['revoked', null, 'none']);
    expect(world.core.clients).toEqual([]);
    expect([other.revokedAt, await world.revocation(other), await kept(other)]).toEqual([null, undefined, true]);
  });

  it('that the core does not tell leave it open', async () => {
    world.deps.core.clients = unavailable;
    await prove();
    expect(await state()).toEqual(['revoking', says(/did not list its clients/), null]);
  });
});

describe('a handshake', () => {
  it('that is let in fails the revocation, and the key is kept to try again', async () => {
    world.core.enforces = false;
    await prove();
    expect(await state()).toEqual([
      'revocation_failed',
      says(/stream accepted a new .* API of the core accepted/),
      'none',
    ]);
    expect(await kept()).toBe(true);
    world.core.enforces = true;
    await prove();
    expect(await state()).toEqual(['revoked', null, 'none']);
    expect(await kept()).toBe(false);
  });

  it('says nothing when the port is away', async () => {
    world.deps.coreDevices.connect = unavailable;
    await prove();
    expect(await state()).toEqual(['revoking', says(/Couldn't test that it is refused/), 'none']);
  });

  it('is not tried without a key', async () => {
    const device = world.core.enrolledByDevice('jane');
    await world.note(device);
    world.core.enforces = false;
    await prove();
    expect((await state(device))[0]).toBe('revoked');
  });

  it('cannot be left out because the kept keys cannot be read', async () => {
    world.deps.clientKeys.kept = unavailable;
    await prove();
    expect(await state()).toEqual(['revoking', says(/stored keys cannot be read/), 'none']);
  });

  it('ends what it was let in with', async () => {
    world.core.enforces = false;
    const closed: string[] = [];
    world.deps.coreDevices.close = async (connection) => void closed.push(connection);
    await prove();
    expect(closed).toHaveLength(1);
  });

  it('whose key cannot be removed afterwards is proven all the same', async () => {
    world.deps.clientKeys.remove = unavailable;
    await prove();
    expect((await state())[0]).toBe('revoked');
    expect(world.deps.log.events).toContainEqual(expect.objectContaining({ event: 'certificate.key_not_removed' }));
  });
});

describe('the canary', () => {
  it('that has failed fails the revocation', async () => {
    world.later(1);
    await world.canary({ ok: false, problem: 'it still answers' });
    await prove();
    expect(await state()).toEqual(['revocation_failed', says(/last canary failed: it still answers/), 'none']);
  });

  it('of another process of the core proves nothing, whether it passed or failed', async () => {
    for (const ok of [true, false]) {
      world.later(1);
      await world.canary({ ok, coreStartedAt: '2020-01-01T00:00:00.000Z' });
      await prove();
      expect(await state()).toEqual(['revoking', says(/has restarted, and no canary has run since/), 'none']);
    }
    world.later(1);
    await world.canary();
    await prove();
    expect((await state())[0]).toBe('revoked');
  });

  it('is compared by its time, and not by its spelling', async () => {
    world.core.status = { ...world.core.status, startedAt: '2026-03-04T05:00:00Z' };
    await prove();
    expect((await state())[0]).toBe('revoked');
  });
});

describe('a run', () => {
  it('takes those that were not looked at for longest, so that what fails does not keep the others waiting', async () => {
    const certificates = Array.from({ length: 90 }, (_, at) => world.core.enrolledByDevice(`user-${at}`));
    for (const each of certificates) await world.note(each);
    world.deps.coreAuthority.revocationList = unavailable;
    for (let run = 0; run < 3; run++) {
      world.later(1);
      await prove();
    }
    expect((await world.revocations()).filter(({ checkedAt }) => checkedAt === null)).toEqual([]);
  });

  it('changes nothing more when it has lost its claim', async () => {
    expect(await proveOpenRevocations(world.deps, AbortSignal.abort())).toMatchObject({ revoking: 1 });
    expect([phone.revokedAt, await world.revocation(phone)]).toMatchObject([null, { checkedAt: null }]);
    const losing = new AbortController();
    standIn(world.deps.core, 'revoke', (real) => async (hash) => {
      losing.abort();
      return real(hash);
    });
    await proveOpenRevocations(world.deps, losing.signal);
    expect([await state(), await kept()]).toEqual([['revoking', null, null], true]);
  });

  it('revokes one after the other', async () => {
    for (let at = 0; at < 5; at++) await world.note(world.core.enrolledByDevice(`user-${at}`));
    const { coreLock } = world.deps;
    const locks: string[] = [];
    let [running, most] = [0, 0];
    const lock: typeof coreLock = async (key, work) => {
      locks.push(key);
      running += 1;
      most = Math.max(most, running);
      try {
        return await coreLock(key, work);
      } finally {
        running -= 1;
      }
    };
    await proveOpenRevocations({ ...world.deps, coreLock: lock }, never);
    expect([locks, most]).toEqual([Array(6).fill('revocation'), 1]);
  });

  it('says what has changed, once, and makes health look again', async () => {
    const forgotten: string[] = [];
    world.deps.health.forget = (module) => void forgotten.push(module);
    world.core.enforces = false;
    await prove();
    await prove();
    expect(forgotten).toEqual(['certificates']);
    const events = () =>
      world.deps.log.events.map(({ event }) => event).filter((each) => each.startsWith('revocation.'));
    expect(events()).toEqual(['revocation.failed']);
    world.core.enforces = true;
    await prove();
    expect([forgotten.length, events()]).toEqual([2, ['revocation.failed', 'revocation.proven']]);
  });
});
