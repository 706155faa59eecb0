// What takes long at the core has a lock of its own: changes of people do not wait for it, nor it for them.

import { beforeEach, expect, it } from 'vitest';
import { run as finishIntents } from '../../jobs/finish-intents.ts';
import { run as keepServiceCertificates } from '../../jobs/keep-service-certificates.ts';
import { diagnoseEnrollment } from '../../shared/devices/enrollment/diagnose.ts';
import type { Account } from '../../shared/identity/port.ts';
import { ACTOR, peopleWorld, type PeopleWorld } from './fake-people.ts';

type Lock = 'peopleLock' | 'deviceLock' | 'coreLock';

let world: PeopleWorld;
let ada: Account;
/** Each lock that was taken, after those that were held then. */
let taken: Set<string>;
beforeEach(async () => {
  world = await peopleWorld({ SERVER_ADDRESS: 'cot.example.org' });
  ada = await world.person('ada', ['core_a']);
  taken = new Set();
  const held: Lock[] = [];
  for (const name of ['peopleLock', 'deviceLock', 'coreLock'] as const) {
    const lock = world.deps[name];
    world.deps[name] = (key, work) =>
      lock(key, async () => {
        held.push(name);
        taken.add(held.join(' > '));
        try {
          return await work();
        } finally {
          held.splice(held.lastIndexOf(name), 1);
        }
      });
  }
});

async function request(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const answer = await world.ask(method, path, body);
  const text = await answer.text();
  expect([answer.status < 300, text]).toEqual([true, text]);
  return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
}
const locks = (): string[] => [...taken].toSorted();

it('certificates and enrollments are made under the lock of devices', async () => {
  await request('POST', '/api/ops/certs', { username: 'ada', name: 'phone' });
  await request('POST', `/api/users/${ada.id}/enrollment`);
  await diagnoseEnrollment(world.deps, ada);
  await request('DELETE', `/api/users/${ada.id}/enrollment`);
  expect(locks()).toEqual(['deviceLock']);
});

it('service accounts are made, kept and deleted under the lock of devices, and revoke inside it', async () => {
  for (const username of ['svc_nodered', 'svc_probe']) await world.account({ username, kind: 'service' });
  await keepServiceCertificates(world.deps);
  const { id } = await request('POST', '/api/service-accounts', { name: 'backup', kind: 'admin' });
  await request('DELETE', `/api/service-accounts/${String(id)}`);
  expect(locks()).toEqual(['deviceLock', 'deviceLock > coreLock']);
});

it('people are changed under the lock of people, and lose what they have inside it, without the lock of devices', async () => {
  await request('POST', '/api/ops/certs', { username: 'ada', name: 'phone' });
  taken.clear();
  await request('PATCH', `/api/users/${ada.id}`, { role: 'admin', is_active: false });
  await request('PUT', `/api/users/${ada.id}/groups`, { groups: [] });
  await request('POST', `/api/users/${ada.id}/password`, { password: 'another right password' });
  expect(locks()).toEqual(['peopleLock', 'peopleLock > coreLock']);
});

it('retention is changed under the lock of devices, for it waits for the core', async () => {
  world.deps.settings = { ...world.deps.settings, CORE_RETENTION_UNIT: 'days' };
  await request('PUT', '/api/retention', { policy: { cot: 30 } });
  expect(locks()).toEqual(['deviceLock']);
});

it('what was broken off is finished under the lock of its kind', async () => {
  const { deps, around } = world;
  const intend = (
    action: string,
    target: string,
    detail: Record<string, string | number | boolean | null | string[]>,
  ) => deps.audit.intend({ actor: ACTOR, action, target }, detail);
  await intend('enrollment.issue', 'ada', { id: ada.id, identifier: 'x' });
  await intend('service_account.certificate', 'svc_probe', { username: 'svc_probe', client_uid: 'svc_probe' });
  around.now = new Date(around.now.getTime() + 180_000);
  await finishIntents(deps, around.now, new AbortController().signal);
  expect(locks()).toEqual(['deviceLock']);
});
