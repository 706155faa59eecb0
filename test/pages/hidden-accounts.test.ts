// Accounts that USERS_HIDDEN_PREFIXES hides are nowhere in the portal, whoever looks and however they are asked for.

import { beforeEach, describe, expect, it } from 'vitest';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';
import { visit, type Visitor } from './page-session.ts';

let world: PeopleWorld;
let admin: Visitor;
let ids: Record<string, number>;
let hashes: string[];
beforeEach(async () => {
  world = await peopleWorld({ SERVER_ADDRESS: 'cot.example.org' });
  const { theCore } = world.deps;
  const named = ['adm_carla', 'svc_gate'];
  ids = {};
  for (const username of named)
    ids[username] = (await world.account({ username, name: `Name of ${username}`, groups: ['core_Blue'] })).id;
  hashes = named.map((username) => theCore.enrolledByDevice(username, `uid-${username}`).hash);
  for (const username of named) theCore.online(username, `uid-${username}`);
  admin = await visit({ deps: world.deps, around: world.around, face: 'portal' });
});

const fileOf = (hash: string): string => hash.replaceAll(':', '').toLowerCase();

describe('in the portal a hidden account', () => {
  it('is in no list and under no number', async () => {
    const group = await world.deps.identity.groups.named('core_Blue');
    const lists = ['/', '/people', '/people?search=carla', '/people?search=svc_&include=hidden&show=active', '/groups'];
    for (const path of [...lists, `/groups/${group?.id}`])
      expect([path, /carla|gate/.test((await admin.page(path)).replace(/value="[^"]*"|“[^”]*”|=carla/g, ''))]).toEqual([
        path,
        false,
      ]);
    for (const id of Object.values(ids))
      for (const path of [`/people/${id}`, `/people/${id}/enrollment`, `/people/${id}/enrollment/progress`])
        expect([path, (await admin.get(path)).status]).toEqual([path, 404]);
  });

  it('is changed by no form', async () => {
    const before = world.deps.audit.records.length;
    const changes = [
      'details',
      'expiry',
      'groups',
      'role',
      'password',
      'deactivate',
      'reactivate',
      'enrollment',
      'enrollment/withdraw',
    ];
    for (const id of Object.values(ids))
      for (const change of changes) {
        const answer = await admin.post(`/people/${id}/${change}`, {
          name: 'x',
          role: 'admin',
          make: '1',
          ends: 'never',
        });
        expect([change, answer.status]).toEqual([change, 404]);
      }
    expect(world.deps.audit.records.slice(before)).toEqual([]);
  });

  it('has no certificate', async () => {
    for (const hash of hashes) {
      expect((await admin.get(`/certificates/${fileOf(hash)}`)).status).toBe(404);
      expect((await admin.post(`/certificates/${fileOf(hash)}/revoke`)).status).toBe(404);
    }
    expect(world.deps.theCore.certificates.filter(({ revokedAt }) => revokedAt !== null)).toEqual([]);
  });
});
