// What somebody changes on a page stands in the audit log as it does when a program changes it through the API.

import { describe, expect, it } from 'vitest';
import type { AuditRecord } from '../../shared/audit/port.ts';
import { fakeTransport } from '../alerts/fake-alerts.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';
import { visit } from './page-session.ts';

const PASSWORD = 'four words make one';
const TOKEN = '00000000-0000-4000-8000-000000000001';

interface Seen extends PeopleWorld {
  ada: number;
  hash: string;
  group: string;
  service: number;
}

type Way = (world: Seen) => [path: string, body: Record<string, string | string[]>];
type Call = (world: Seen) => [method: string, path: string, body?: unknown];

const archiveIn = ({ backups }: Seen['deps']): string => backups.the.backups[0]?.name ?? '';

const CHANGES: Record<string, [page: Way, api: Call]> = {
  'a person made': [
    () => ['/people/new', { username: 'bob', name: 'Bob', ends: 'never', groups: ['core_Blue'] }],
    () => ['POST', '/api/users', { username: 'bob', name: 'Bob', email: '', groups: ['core_Blue'], expires_at: null }],
  ],
  'a name': [
    ({ ada }) => [`/people/${ada}/details`, { name: 'Ada L', email: '' }],
    ({ ada }) => ['PATCH', `/api/users/${ada}`, { name: 'Ada L', email: '' }],
  ],
  groups: [
    ({ ada }) => [`/people/${ada}/groups`, { groups: ['core_Blue'] }],
    ({ ada }) => ['PUT', `/api/users/${ada}/groups`, { groups: ['core_Blue'] }],
  ],
  'a role': [
    ({ ada }) => [`/people/${ada}/role`, { role: 'viewer' }],
    ({ ada }) => ['PATCH', `/api/users/${ada}`, { role: 'viewer' }],
  ],
  'a password': [
    ({ ada }) => [`/people/${ada}/password`, { password: PASSWORD, repeated: PASSWORD }],
    ({ ada }) => ['POST', `/api/users/${ada}/password`, { password: PASSWORD }],
  ],
  'somebody put out': [({ ada }) => [`/people/${ada}/deactivate`, {}], ({ ada }) => ['DELETE', `/api/users/${ada}`]],
  'an enrollment': [
    ({ ada }) => [`/people/${ada}/enrollment`, {}],
    ({ ada }) => ['POST', `/api/users/${ada}/enrollment`],
  ],
  'a certificate revoked': [
    ({ hash }) => [`/certificates/${hash}/revoke`, {}],
    ({ hash }) => ['POST', `/api/ops/certs/${hash}/revoke`],
  ],
  'a certificate issued': [
    () => ['/certificates/new', { username: 'ada', name: 'laptop' }],
    () => ['POST', '/api/ops/certs', { username: 'ada', name: 'laptop' }],
  ],
  'a group made': [() => ['/groups', { name: 'Red' }], () => ['POST', '/api/groups', { name: 'Red' }]],
  'a group deleted': [
    ({ group }) => [`/groups/${group}/delete`, {}],
    ({ group }) => ['DELETE', `/api/groups/${group}`],
  ],
  'a token revoked': [() => [`/tokens/${TOKEN}/revoke`, {}], () => ['DELETE', `/api/tokens/${TOKEN}`]],
  'a connection ended': [
    ({ deps }) => ['/devices/disconnect', { connection: deps.theCore.clients[0]?.connection ?? '' }],
    () => ['DELETE', '/api/clients/ANDROID-1'],
  ],
  'a plugin stopped': [() => ['/plugins', { name: 'Echo', change: 'stop' }], () => ['POST', '/api/plugins/Echo/stop']],
  'a service account made': [
    () => ['/service-accounts', { name: 'gate', kind: 'data', groups: ['core_Blue'] }],
    () => ['POST', '/api/service-accounts', { name: 'gate', kind: 'data', groups: ['core_Blue'] }],
  ],
  'a service account deleted': [
    ({ service }) => [`/service-accounts/${service}/delete`, {}],
    ({ service }) => ['DELETE', `/api/service-accounts/${service}`],
  ],
  'a test of alerts': [
    () => ['/alerts/test', { channel: 'email' }],
    () => ['POST', '/api/ops/alerts/test', { channel: 'email' }],
  ],
  'a vacuum': [
    () => ['/database/vacuum', { mode: 'standard' }],
    () => ['POST', '/api/ops/database/vacuum', { mode: 'standard' }],
  ],
  'a simulation': [
    () => ['/simulation', { clients: '4', minutes: '1', ramp: '1', every: '5' }],
    () => ['POST', '/api/ops/simulation', { clients: 4, minutes: 1, ramp: 1, every: 5 }],
  ],
  'a backup': [() => ['/backups', {}], () => ['POST', '/api/backups']],
  'a proof of a backup': [
    ({ deps }) => [`/backups/${archiveIn(deps)}/proof`, {}],
    ({ deps }) => ['POST', `/api/backups/${archiveIn(deps)}/proof`],
  ],
  'a backup that is kept': [
    ({ deps }) => [`/backups/${archiveIn(deps)}/permanent`, { permanent: 'true' }],
    ({ deps }) => ['PUT', `/api/backups/${archiveIn(deps)}/permanent`, { permanent: true }],
  ],
  'a form of somebody who may not': [
    () => ['/groups', { name: 'core_ROLE_ADMIN' }],
    () => ['POST', '/api/groups', { name: 'core_ROLE_ADMIN' }],
  ],
};

async function world(): Promise<Seen> {
  const made = await peopleWorld({
    SERVER_ADDRESS: 'cot.example.org',
    BACKUP_TARGET: '/mnt/backups',
    BACKUP_PASSPHRASE: 'open sesame of the station',
    CORE_DATABASE_OWNER_URL: 'postgres://o:p@127.0.0.1/cot',
  });
  const { deps } = made;
  const { id: ada } = await made.person('ada', ['core_Team']);
  await deps.identity.groups.create('core_Blue');
  const hash = deps.theCore.enrolledByDevice('ada').hash.replaceAll(':', '').toLowerCase();
  deps.theCore.online('ada', 'ANDROID-1');
  deps.theCore.plugins = [{ name: 'Echo', description: '', version: '1', enabled: true, started: true, error: null }];
  deps.notify = { email: fakeTransport(['duty@example.org']) };
  const { id: service } = (await (
    await made.ask('POST', '/api/service-accounts', { name: 'camera', kind: 'data' })
  ).json()) as { id: number };
  const epoch = await deps.signIns.epoch('webadmin');
  await deps.signIns.createToken({
    id: TOKEN,
    epoch,
    name: 'a',
    scope: 'read',
    owner: 'webadmin',
    expiresAt: '2030-01-01T00:00:00.000Z',
  });
  const group = (await deps.identity.groups.named('core_Team'))?.id ?? '';
  return { ...made, ada, hash, group, service };
}

/** What every world chooses anew is the same word here. */
function reported(records: readonly AuditRecord[]): unknown[] {
  return records.map(({ action, target, phase, result, detail, actor, address }) => [
    action,
    target.replaceAll(/[\da-f-]{36}/g, 'uuid'),
    phase,
    result,
    actor,
    address,
    detail.replaceAll(
      /enroll[\w-]+(?=")|[\da-f]{16}(?=[.]pem)|[\da-f-]{36}|[\dA-F:]{95}|[\da-f]{31,64}|holdfast-[\w-]+/g,
      'chosen',
    ),
  ]);
}

describe('the audit log', () => {
  it.each(Object.entries(CHANGES))(
    'tells of %s on a page what it tells of the same through the API',
    async (_, [page, api]) => {
      const [one, other] = [await world(), await world()];
      const { post } = await visit({ deps: one.deps, around: one.around });
      const [fromPage, fromApi] = [one.deps.audit.records.length, other.deps.audit.records.length];
      const answer = await post(...page(one));
      const called = await other.ask(...api(other));
      const [seen, wanted] = [one.deps.audit.records.slice(fromPage), other.deps.audit.records.slice(fromApi)];
      expect([answer.status >= 400, reported(seen)]).toEqual([called.status >= 400, reported(wanted)]);
      // A job answers its intent when it ends.
      const isJob = called.headers.get('location')?.startsWith('/api/ops/jobs/') === true;
      if (called.status < 400 && !isJob) expect(seen.map(({ result }) => result)).toContain('ok');
    },
  );
});
