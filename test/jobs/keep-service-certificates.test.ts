// The certificates of the stack's own service accounts: made once, renewed in time, and never two of them.

import { beforeEach, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { run as finishIntents } from '../../jobs/finish-intents.ts';
import { run } from '../../jobs/keep-service-certificates.ts';
import type { MadeCertificate } from '../../shared/devices/port.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

const DAY = 86_400_000;
const BOTH = ['svc_nodered', 'svc_probe'];

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld({ KEEP_CLIENT_KEYS: 'false' });
  for (const username of [...BOTH, 'svc_api']) await world.account({ username, kind: 'service' });
});

async function keep(days = 0): Promise<string[]> {
  world.around.now = new Date(world.around.now.getTime() + days * DAY);
  return (await run(world.deps)).made;
}
/** Those that nobody wants revoked. */
async function status(username: string): Promise<MadeCertificate[]> {
  const { certificateStore } = world.deps;
  const unwanted = (await certificateStore.revocations([username])).map(({ hash }) => hash);
  return (await certificateStore.made([username])).filter(({ hash }) => !unwanted.includes(hash));
}
async function theOne(username: string): Promise<MadeCertificate> {
  const all = await status(username);
  expect(all).toHaveLength(1);
  return all[0] as MadeCertificate;
}

it('each gets one with its key, whatever KEEP_CLIENT_KEYS says, and keeps it', async () => {
  expect(await keep()).toEqual(BOTH);
  for (const username of BOTH) {
    const { hash, name, clientUid } = await theOne(username);
    expect([name, clientUid, await world.deps.clientKeys.kept([hash])]).toEqual(['', username, [hash]]);
  }
  expect([await keep(), await keep(300)]).toEqual([[], []]);
  expect(world.deps.theCore.certificates).toHaveLength(2);
  expect(world.deps.audit.records.map(({ action, target, actor, phase }) => [action, target, actor, phase])).toEqual(
    BOTH.flatMap((username) =>
      ['intent', 'outcome'].map((phase) => [
        'service_account.certificate',
        username,
        'keep-service-certificates',
        phase,
      ]),
    ),
  );
});

it('has health look again at what a new one changes, and at nothing when there is none', async () => {
  const forgotten: string[] = [];
  world.deps.health.forget = async (module) => void forgotten.push(module);
  await keep();
  expect(forgotten.toSorted()).toEqual(['certificates', 'probe']);
  await keep();
  expect(forgotten).toHaveLength(2);
});

it('is renewed when it has no more than 31 days left, and the former one is revoked', async () => {
  await keep();
  const former = await theOne('svc_probe');
  expect(await keep(333)).toEqual([]);
  expect(await keep(1)).toEqual(BOTH);
  const latter = await theOne('svc_probe');
  expect(latter.hash).not.toBe(former.hash);
  expect(await world.deps.certificateStore.revocations(['svc_probe'])).toMatchObject([
    { hash: former.hash, state: 'revoking' },
  ]);
});

it.each([30, 31, 3])('of %i days is renewed when a third of them is left, and not before', async (days) => {
  world.deps.theCore.validityDays = days;
  expect(await keep()).toEqual(BOTH);
  expect([await keep(), await keep((days * 2) / 3 - 0.01), await keep(0.02)]).toEqual([[], [], BOTH]);
});

it('that ends with the CA is kept to its end, because a new one would end no later', async () => {
  const { theCore } = world.deps;
  theCore.caEnds = new Date(world.around.now.getTime() + 340 * DAY).toISOString();
  expect([await keep(), await keep(320), await keep(19)]).toEqual([BOTH, [], []]);
});

it('that ends more than a day before the CA is renewed once more', async () => {
  const { theCore } = world.deps;
  theCore.caEnds = new Date(world.around.now.getTime() + 367 * DAY).toISOString();
  expect([await keep(), await keep(350), await keep(), await keep(16)]).toEqual([BOTH, BOTH, [], []]);
});

it('is made anew when it is revoked, unknown to the core, without its key, or of a former CA', async () => {
  const { core, clientKeys, theCore } = world.deps;
  await keep();
  await core.revoke((await theOne('svc_probe')).hash);
  expect(await keep()).toEqual(['svc_probe']);
  const [, { hash: lost }] = (await status('svc_probe')) as [unknown, MadeCertificate];
  await clientKeys.remove(lost);
  expect(await keep()).toEqual(['svc_probe']);
  theCore.certificates.splice(
    theCore.certificates.findIndex(({ username }) => username === 'svc_nodered'),
    1,
  );
  expect(await keep()).toEqual(['svc_nodered']);
  theCore.ca = 'CA:02';
  expect(await keep()).toEqual(BOTH);
  expect(await keep()).toEqual([]);
});

it('is kept when its issuer is any certificate of the CA file, and made anew when it is none of them', async () => {
  const { theCore } = world.deps;
  await keep();
  [theCore.ca, theCore.further] = ['CA:02', ['CA:03', 'CA:01']];
  expect(await keep()).toEqual([]);
  theCore.further = ['CA:03'];
  expect(await keep()).toEqual(BOTH);
});

it('has exactly one again after a crash between the new one and the end of the former one', async () => {
  const { certificateStore } = world.deps;
  await keep();
  const want = certificateStore.wantRevoked.bind(certificateStore);
  certificateStore.wantRevoked = async () => {
    throw new AppError('unavailable', 'Our own database does not answer');
  };
  await expect(keep(340)).rejects.toThrow('does not answer');
  certificateStore.wantRevoked = want;
  expect(await keep()).toEqual([]);
  for (const username of BOTH) await theOne(username);
});

it('leaves alone what else is enrolled under the name, and the certificate of svc_api', async () => {
  const device = world.deps.theCore.enrolledByDevice('svc_probe');
  const api = world.deps.theCore.enrolledByDevice('svc_api', 'svc_api');
  await keep();
  await keep(340);
  const wanted = (await world.deps.certificateStore.revocations()).map(({ hash }) => hash);
  expect([wanted.includes(device.hash), wanted.includes(api.hash)]).toEqual([false, false]);
});

it('makes none for an account that is not there or not active, and goes on with the other', async () => {
  const { accounts } = world.deps.identity;
  await accounts.change((await world.named('svc_nodered')).id, { isActive: false });
  expect(await keep()).toEqual(['svc_probe']);
  await accounts.delete((await world.named('svc_probe')).id);
  expect(await keep(340)).toEqual([]);
});

it('one that fails does not hold up the other, and the run has failed', async () => {
  const { coreEnrollment } = world.deps;
  const enroll = coreEnrollment.enroll.bind(coreEnrollment);
  coreEnrollment.enroll = async (order) => {
    if (order.username === 'svc_nodered') throw new AppError('upstream', 'The core signs nothing');
    return enroll(order);
  };
  await expect(keep()).rejects.toThrow('The core signs nothing');
  await theOne('svc_probe');
});

it('that was signed without its key coming to be kept is revoked, and another is made', async () => {
  const { deps, around } = world;
  const { appPasswords } = deps.identity;
  const remove = appPasswords.delete.bind(appPasswords);
  appPasswords.delete = async () => {
    throw new AppError('unavailable', 'The identity provider does not answer');
  };
  await expect(keep()).rejects.toThrow(/does not answer.*The core may still have signed it/);
  appPasswords.delete = remove;
  const lost = deps.theCore.certificates.map(({ hash }) => hash);
  expect(lost).toHaveLength(2);
  around.now = new Date(around.now.getTime() + 180_000);
  await finishIntents(deps, around.now, new AbortController().signal);
  expect((await deps.certificateStore.revocations(BOTH)).map(({ hash }) => hash).toSorted()).toEqual(lost.toSorted());
  expect(await keep()).toEqual(BOTH);
});
