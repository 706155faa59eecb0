import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { makeCertificate } from '../../shared/devices/certificates/make.ts';
import type { Account } from '../../shared/identity/port.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

let world: PeopleWorld;
let radio: Account;
beforeEach(async () => {
  world = await peopleWorld();
  radio = await world.account({ username: 'svc_radio', kind: 'service' });
});

const ORDER = { name: '', clientUid: 'svc_radio', keep: true };
const unavailable = (): Promise<never> => Promise.reject(new AppError('unavailable', 'It is away'));

describe('a certificate that is made', () => {
  it('is enrolled with a one-off app password, kept, and written into the book', async () => {
    const { made, key } = await makeCertificate(world.deps, radio, ORDER);
    const [certificate] = world.deps.theCore.certificates;
    expect(made).toEqual({
      hash: certificate?.hash,
      serial: certificate?.serial,
      username: 'svc_radio',
      name: '',
      clientUid: 'svc_radio',
      issuedAt: certificate?.issuedAt,
      expiresAt: certificate?.expiresAt,
    });
    expect(await world.deps.certificateStore.made(['svc_radio'])).toEqual([made]);
    expect(await world.deps.clientKeys.read(made.hash)).toEqual(key);
    expect(Object.keys(key).toSorted()).toEqual(['certificatePem', 'chainPem', 'keyPem']);
    expect(await world.deps.identity.appPasswords.list('svc_radio')).toEqual([]);
  });

  it('is not kept when keys are not', async () => {
    const { made, key } = await makeCertificate(world.deps, radio, { ...ORDER, keep: false });
    expect([await world.deps.clientKeys.read(made.hash), key.keyPem]).toEqual([
      undefined,
      expect.stringContaining('PRIVATE KEY'),
    ]);
    expect(await world.deps.certificateStore.made()).toEqual([made]);
  });

  it('is to be revoked, without a key anywhere, when it cannot be kept', async () => {
    world.deps.clientKeys = { ...world.deps.clientKeys, keep: unavailable };
    await expect(makeCertificate(world.deps, radio, ORDER)).rejects.toThrow('It is away');
    const [certificate] = world.deps.theCore.certificates;
    const { hash = '' } = certificate ?? {};
    expect(await world.deps.certificateStore.made()).toEqual([]);
    expect(await world.deps.certificateStore.revocations()).toMatchObject([{ hash, state: 'revoking' }]);
    expect(await world.deps.clientKeys.kept([hash])).toEqual([]);
  });

  it('keeps its key when nothing could be written down: it may be in the book all the same', async () => {
    const store = world.deps.certificateStore;
    world.deps.certificateStore = { ...store, remember: unavailable, wantRevoked: unavailable };
    await expect(makeCertificate(world.deps, radio, ORDER)).rejects.toThrow('It is away');
    const hashes = world.deps.theCore.certificates.map(({ hash }) => hash);
    expect(await world.deps.clientKeys.kept(hashes)).toEqual(hashes);
  });
});
