// Service accounts by the API: made, listed, deleted and brought back, each with its one certificate.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { run as finishIntents } from '../../jobs/finish-intents.ts';
import type { Account } from '../../shared/identity/port.ts';
import { VIEWER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from './fake-people.ts';

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
});
afterEach(() => {
  vi.useRealTimers();
});

type Answer = [status: number, body: Record<string, unknown>];

async function ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> {
  const response = await world.ask(method, `/api/service-accounts${path}`, body, headers);
  return [response.status, (await response.json()) as Record<string, unknown>];
}
const make = (name: string, more: object = {}): Promise<Answer> => ask('POST', '', { name, kind: 'data', ...more });
const named = async (username: string): Promise<Account | undefined> => world.deps.identity.accounts.named(username);
const certificateOf = ([, body]: Answer): Record<string, unknown> => body['certificate'] as Record<string, unknown>;
const listed = async (query = ''): Promise<unknown[]> => {
  const [, page] = await ask('GET', query, undefined, VIEWER);
  return (page['results'] as { username: string }[]).map(({ username }) => username);
};
const count = async (): Promise<number> => (await world.deps.identity.accounts.list({ page: 1, pageSize: 200 })).count;

/** What revocation does to the certificates of a deactivated account. */
async function revokeAllOf(username: string): Promise<void> {
  const { certificateStore, core, now } = world.deps;
  await certificateStore.wantRevoked(await core.certificates(username), now().toISOString());
}

async function tokenOf(scope: 'users' | 'admin'): Promise<Record<string, string>> {
  const { signIns } = world.deps;
  const { text } = await signIns.createToken({
    name: scope,
    scope,
    owner: 'webadmin',
    expiresAt: '2099-01-01T00:00:00.000Z',
  });
  return { authorization: `Bearer ${text}` };
}

describe('POST /api/service-accounts', () => {
  it('makes an account with its channels and its one certificate, whose key is kept', async () => {
    await world.deps.identity.groups.create('core_Blue');
    const [status, body] = await make('backup', { groups: ['blue'] });
    const account = await named('svc_backup');
    expect([status, body]).toEqual([
      201,
      {
        id: account?.id,
        username: 'svc_backup',
        kind: 'data',
        groups: ['core_Blue'],
        is_active: true,
        certificate: expect.objectContaining({
          file: 'svc_backup.p12',
          username: 'svc_backup',
          name: 'svc_backup',
          client_uid: 'svc_backup',
          state: 'active',
          downloadable: true,
        }),
      },
    ]);
    expect(account).toMatchObject({ kind: 'service', attributes: { holdfast_kind: 'data' } });
    expect(world.deps.theCore.certificates).toHaveLength(1);
    expect(world.deps.theCore.admins.size).toBe(0);
    expect(await world.deps.identity.appPasswords.list('svc_backup')).toEqual([]);
    const created = { action: 'service_account.create', target: 'svc_backup', actor: 'webadmin' };
    expect(world.deps.audit.records).toMatchObject([created, { ...created, result: 'ok' }]);
  });

  it('is answered before the core gives the right, and is finished by the job', async () => {
    const { coreDevices, theCore } = world.deps;
    const roles = coreDevices.roles.bind(coreDevices);
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    coreDevices.roles = async () => ['ROLE_ANONYMOUS'];
    const making = make('ops', { kind: 'admin' });
    await vi.advanceTimersByTimeAsync(8_000);
    expect(await making).toMatchObject([201, { username: 'svc_ops', admin_right: 'pending' }]);
    const outcome = () => world.deps.audit.records.filter(({ phase }) => phase === 'outcome');
    expect(outcome()).toEqual([]);
    coreDevices.roles = roles;
    vi.useRealTimers();
    world.around.now = new Date(world.around.now.getTime() + 600_000);
    await finishIntents(world.deps, world.around.now, new AbortController().signal);
    expect(outcome()).toMatchObject([{ action: 'service_account.create', result: 'ok' }]);
    expect(theCore.admins.size).toBe(1);
  });

  it('says what keeps it from seeing the right, and gives the certificate its times as the core has them', async () => {
    world = await peopleWorld({ KEEP_CLIENT_KEYS: 'false' });
    const { theCore, coreDevices, coreEnrollment } = world.deps;
    const enroll = coreEnrollment.enroll.bind(coreEnrollment);
    coreEnrollment.enroll = async (order) => ({ ...(await enroll(order)), issuedAt: '2020-01-01T00:00:00.000Z' });
    expect(certificateOf(await make('backup'))['issued_at']).toBe(theCore.certificates[0]?.issuedAt);
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    coreDevices.roles = async () => {
      throw new AppError('unavailable', 'Port 8443 is closed.');
    };
    const making = make('ops', { kind: 'admin' });
    await vi.advanceTimersByTimeAsync(30_000);
    expect((await making)[1]['detail']).toMatch(/within 25 s: Port 8443 is closed\. Nothing was created\.$/);
  });

  it('shows the same afterwards, by its id and in the list', async () => {
    const [, made] = await make('backup');
    expect(await ask('GET', `/${String(made['id'])}`, undefined, VIEWER)).toEqual([200, made]);
    expect((await ask('GET', ''))[1]).toEqual({ results: [made], count: 1, page: 1, page_size: 50 });
  });

  it('adds the prefix when it is missing, in its usual case, and keeps the case of the rest', async () => {
    expect((await make('SVC_Back.up-1'))[1]).toMatchObject({ username: 'svc_Back.up-1' });
  });

  it('gives a certificate of the kind admin the right of the admin API', async () => {
    const made = await make('ops', { kind: 'admin' });
    expect([made[0], made[1]['kind'], made[1]['admin_right']]).toEqual([201, 'admin', 'given']);
    expect(await world.deps.coreDevices.roles(String(certificateOf(made)['fingerprint']))).toEqual(['ROLE_ADMIN']);
  });

  it.each(['backup', 'svc_backup', 'BACKUP'])(
    'is 409 for %s when svc_backup is there, and changes nothing',
    async (name) => {
      const [, before] = await make('backup');
      const records = world.deps.audit.records.length;
      expect((await make(name, { kind: 'admin' }))[0]).toBe(409);
      expect(await ask('GET', `/${String(before['id'])}`)).toEqual([200, before]);
      expect(world.deps.audit.records).toHaveLength(records);
      expect(world.deps.theCore.certificates).toHaveLength(1);
    },
  );

  it('is 409 for a person of that name, and for the accounts of the stack, made yet or not', async () => {
    await world.account({ username: 'svc_person' });
    for (const name of ['person', 'api', 'nodered', 'Probe', 'canary']) expect((await make(name))[0]).toBe(409);
    expect(world.deps.theCore.certificates).toEqual([]);
  });

  it.each(['', 'svc_', 'a b', 'ä', 'a/b', 'a~b', 'x'.repeat(61)])('is 422 for the name %j', async (name) => {
    const [status, problem] = await make(name);
    expect([status, problem['errors']]).toEqual([422, [expect.objectContaining({ path: 'name' })]]);
  });

  it('is 422 for unknown groups, naming them, and makes nothing', async () => {
    const before = await count();
    const [status, problem] = await make('backup', { groups: ['nothing', 'ROLE_ADMIN'] });
    expect([status, (problem['errors'] as { path: string }[]).map(({ path }) => path)]).toEqual([
      422,
      ['groups.0', 'groups.1'],
    ]);
    expect([await count(), world.deps.audit.records]).toEqual([before, []]);
  });

  it.each([{ name: 'x' }, { kind: 'data' }, { name: 'x', kind: 'root' }, { name: 'x', kind: 'data', role: 'admin' }])(
    'is 422 for %j',
    async (body) => {
      expect((await ask('POST', '', body))[0]).toBe(422);
    },
  );

  it('lets a token of the scope users make the kind data, and neither make nor delete the kind admin', async () => {
    const [users, admin] = [await tokenOf('users'), await tokenOf('admin')];
    const body = (name: string, kind: string): object => ({ name, kind });
    expect((await ask('POST', '', body('a', 'data'), users))[0]).toBe(201);
    expect((await ask('POST', '', body('b', 'admin'), users))[0]).toBe(403);
    expect(await named('svc_b')).toBeUndefined();
    const [status, made] = await ask('POST', '', body('b', 'admin'), admin);
    expect(status).toBe(201);
    expect((await ask('DELETE', `/${String(made['id'])}`, undefined, users))[0]).toBe(403);
    expect((await named('svc_b'))?.isActive).toBe(true);
  });

  it('makes nothing when the core does not answer, and can be tried again', async () => {
    const before = await count();
    world.deps.theCore.mood = 'down';
    expect((await make('backup'))[0]).toBe(503);
    expect(await count()).toBe(before);
    world.deps.theCore.mood = 'up';
    expect((await make('backup'))[0]).toBe(201);
  });

  it('takes the account away again when the core refuses to sign', async () => {
    const before = await count();
    world.deps.coreEnrollment.enroll = async () => {
      throw new AppError('upstream', 'The core signs nothing');
    };
    const [status, problem] = await make('backup', { kind: 'admin' });
    expect([status, problem['detail']]).toEqual([502, 'The core signs nothing. Nothing was created.']);
    expect(await count()).toBe(before);
    expect(world.deps.audit.records.at(-1)).toMatchObject({ phase: 'outcome', result: 'unknown' });
  });

  it('says that account and certificate exist when the right cannot be asked for', async () => {
    world.deps.adminGrants.give = async () => {
      throw new AppError('unavailable', 'The spool is not writable.');
    };
    const detail = expect.stringMatching(/^The spool is not writable\. The account and its certificate exist/);
    expect(await make('ops', { kind: 'admin' })).toMatchObject([503, { detail }]);
    expect((await named('svc_ops'))?.isActive).toBe(true);
    expect(await world.deps.audit.unfinished('2100', 10)).toMatchObject([{ action: 'service_account.create' }]);
  });
});

describe('where keys are not kept', () => {
  beforeEach(async () => {
    world = await peopleWorld({ KEEP_CLIENT_KEYS: 'false' });
  });

  it.each(['data', 'admin'])('the answer has the only copy of the key, also of the kind %s', async (kind) => {
    const [status, body] = await make('backup', { kind });
    const { p12_base64: bundle, certificate } = body as { p12_base64: string; certificate: Record<string, unknown> };
    expect([status, certificate['downloadable']]).toEqual([201, false]);
    expect(JSON.parse(Buffer.from(bundle, 'base64').toString())).toMatchObject({ friendlyName: 'svc_backup' });
    expect(await world.deps.clientKeys.kept([String(certificate['fingerprint'])])).toEqual([]);
    expect((await ask('GET', `/${String(body['id'])}`))[1]).not.toHaveProperty('p12_base64');
  });

  it('makes nothing when the right is not given: nobody would have the key', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    world.deps.adminGrants.give = async () => undefined;
    const making = make('ops', { kind: 'admin' });
    await vi.advanceTimersByTimeAsync(30_000);
    const [status, problem] = await making;
    expect([status, problem['detail']]).toEqual([502, expect.stringContaining('Nothing was created')]);
    expect(await named('svc_ops')).toBeUndefined();
    expect(await world.deps.clientKeys.kept(world.deps.theCore.certificates.map(({ hash }) => hash))).toEqual([]);
  });
});

describe('GET /api/service-accounts', () => {
  it("shows the stack's own with their certificates, and leaves out the canary and whoever is none", async () => {
    for (const username of ['svc_api', 'svc_nodered', 'svc_probe', 'svc_canary', 'adm_ldapservice', 'x_svc_y'])
      await world.account({ username, kind: 'service' });
    await world.account({ username: 'svc_person' });
    world.deps.theCore.enrolledByDevice('svc_api', 'svc_api');
    world.deps.theCore.enrolledByDevice('svc_nodered', 'ANDROID');
    const [, page] = await ask('GET', '');
    const results = page['results'] as { username: string; kind: string; certificate: { file: string } | null }[];
    expect(results.map(({ username, kind, certificate }) => [username, kind, certificate?.file])).toEqual([
      ['svc_api', 'admin', 'svc_api.p12'],
      ['svc_nodered', 'data', undefined],
      ['svc_probe', 'data', undefined],
    ]);
    expect(page['count']).toBe(3);
  });

  it('gives pages, asking the core for those of the page alone', async () => {
    for (const name of ['a', 'b', 'c']) await make(name);
    world.deps.theCore.calls = 0;
    expect(await listed('?page=2&page_size=2')).toEqual(['svc_c']);
    expect(world.deps.theCore.calls).toBe(1);
    expect(await listed('?page=7')).toEqual([]);
  });

  it('shows while the core is away what is written down here, and why; deleting does as well', async () => {
    const [, { id }] = await make('backup');
    world.deps.theCore.mood = 'down';
    const certificate = { file: 'svc_backup.p12', state: 'active' };
    const certs_error = 'The core does not answer';
    expect(await ask('GET', '')).toMatchObject([200, { count: 1, results: [{ id, certificate }], certs_error }]);
    expect(await ask('GET', `/${String(id)}`)).toMatchObject([200, { id, certificate, certs_error }]);
    expect(await ask('DELETE', `/${String(id)}`)).toMatchObject([
      200,
      { is_active: false, certificate: { file: 'svc_backup.p12', state: 'revoking' } },
    ]);
  });

  it('is 404 by the id of a person, of the canary and of nobody', async () => {
    const canary = await world.account({ username: 'svc_canary', kind: 'service' });
    const person = await world.account({ username: 'ada' });
    for (const id of [canary.id, person.id, 4711, 'x', '0'])
      expect((await ask('GET', `/${id}`, undefined, VIEWER))[0]).toBe(404);
  });

  it('shows the certificate that stands, not a newer one that was revoked or that a device enrolled', async () => {
    const made = await make('backup');
    const { theCore, around } = { theCore: world.deps.theCore, around: world.around };
    around.now = new Date(around.now.getTime() + 1000);
    theCore.enrolledByDevice('svc_backup');
    const [, shown] = await ask('GET', `/${String(made[1]['id'])}`);
    expect(shown['certificate']).toMatchObject({ fingerprint: certificateOf(made)['fingerprint'] });
  });
});

describe('DELETE /api/service-accounts/{id}', () => {
  it('deactivates the account and keeps its record', async () => {
    const [, made] = await make('backup');
    const [status, body] = await ask('DELETE', `/${String(made['id'])}`);
    expect([status, body]).toMatchObject([200, { id: made['id'], username: 'svc_backup', is_active: false }]);
    expect((await named('svc_backup'))?.isActive).toBe(false);
    expect(await listed()).toEqual(['svc_backup']);
    expect(world.deps.audit.records.filter(({ action }) => action === 'service_account.delete')).toMatchObject([
      { target: 'svc_backup', phase: 'intent', actor: 'webadmin' },
      { target: 'svc_backup', phase: 'outcome', result: 'ok' },
    ]);
  });

  it('takes the right of the kind admin', async () => {
    const [, made] = await make('ops', { kind: 'admin' });
    await ask('DELETE', `/${String(made['id'])}`);
    expect(world.deps.theCore.admins.size).toBe(0);
  });

  it('deletes app passwords', async () => {
    const [, made] = await make('backup');
    const accountId = Number(made['id']);
    await world.deps.identity.appPasswords.create({ identifier: 'x', accountId, description: '', expiresAt: null });
    await ask('DELETE', `/${accountId}`);
    expect(await world.deps.identity.appPasswords.list('svc_backup')).toEqual([]);
  });

  it('is 409 for the four of the stack', async () => {
    for (const username of ['svc_api', 'svc_nodered', 'svc_probe', 'svc_canary']) {
      const { id } = await world.account({ username, kind: 'service' });
      expect((await ask('DELETE', `/${id}`))[0]).toBe(409);
      expect((await named(username))?.isActive).toBe(true);
    }
  });

  it('is 404 for people, other programs and nobody', async () => {
    const person = await world.account({ username: 'ada' });
    const other = await world.account({ username: 'adm_x', kind: 'service' });
    for (const id of [person.id, other.id, 4711]) expect((await ask('DELETE', `/${id}`))[0]).toBe(404);
  });
});

describe('a service account that was deleted', () => {
  it('is brought back under its name: the same record, other channels, another certificate', async () => {
    for (const name of ['core_a', 'core_b']) await world.deps.identity.groups.create(name);
    const first = await make('Backup', { groups: ['a'] });
    await ask('DELETE', `/${String(first[1]['id'])}`);
    await revokeAllOf('svc_Backup');
    world.around.now = new Date(world.around.now.getTime() + 1000);
    const second = await make('backup', { kind: 'admin', groups: ['b'] });
    expect([second[0], second[1]]).toMatchObject([
      201,
      { id: first[1]['id'], username: 'svc_Backup', kind: 'admin', groups: ['core_b'], is_active: true },
    ]);
    expect(certificateOf(second)['fingerprint']).not.toBe(certificateOf(first)['fingerprint']);
    expect((await ask('GET', `/${String(first[1]['id'])}`))[1]['certificate']).toEqual(second[1]['certificate']);
  });

  it('is 409 as long as a certificate of its name stands that nobody has revoked', async () => {
    const [, first] = await make('backup');
    await ask('DELETE', `/${String(first['id'])}`);
    await revokeAllOf('svc_backup');
    const { hash } = world.deps.theCore.enrolledByDevice('svc_backup');
    const [status, problem] = await make('backup');
    const file = `${hash.replaceAll(':', '').slice(0, 16).toLowerCase()}.pem`;
    expect([status, problem['detail']]).toEqual([409, expect.stringContaining(file)]);
    expect((await named('svc_backup'))?.isActive).toBe(false);
  });

  it.each(['core_ROLE_ADMIN', 'stack_admin', 'authentik Admins'])(
    'is neither brought back nor deleted by a token of the scope users while it is in %s',
    async (name) => {
      const users = await tokenOf('users');
      const [, made] = await make('backup');
      const groups = world.deps.identity.groups;
      const group = (await groups.named(name)) ?? (await groups.create(name));
      await groups.addMember(group.id, Number(made['id']));
      expect((await ask('DELETE', `/${String(made['id'])}`, undefined, users))[0]).toBe(403);
      expect((await ask('DELETE', `/${String(made['id'])}`))[0]).toBe(200);
      await revokeAllOf('svc_backup');
      const again = { name: 'backup', kind: 'data' };
      expect((await ask('POST', '', again, users))[0]).toBe(403);
      expect((await named('svc_backup'))?.isActive).toBe(false);
      expect((await ask('POST', '', again))[0]).toBe(201);
    },
  );

  it('stays the matter of the scope admin when it was of the kind admin', async () => {
    const [, made] = await make('ops', { kind: 'admin' });
    await ask('DELETE', `/${String(made['id'])}`);
    await revokeAllOf('svc_ops');
    expect((await ask('POST', '', { name: 'ops', kind: 'data' }, await tokenOf('users')))[0]).toBe(403);
    expect((await named('svc_ops'))?.isActive).toBe(false);
  });

  it('stays deactivated when it cannot be brought back', async () => {
    const [, first] = await make('backup');
    await ask('DELETE', `/${String(first['id'])}`);
    await revokeAllOf('svc_backup');

    world.deps.coreEnrollment.enroll = async () => {
      throw new AppError('unavailable', 'The core does not answer');
    };
    expect((await make('backup'))[0]).toBe(503);
    expect(await named('svc_backup')).toMatchObject({ id: first['id'], isActive: false });
  });
});
