import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { REGISTERED } from '../../jobs/finish-intents.ts';
import { finishIntent } from '../../shared/audit/interrupted-work.ts';
import { issueCertificate } from '../../shared/devices/certificates/issue.ts';
import { NOBODY, VIEWER } from '../http/fake-deps.ts';
import { ACTOR, dyingAt, peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
  await world.account({ username: 'ada' });
});

interface Answer {
  status: number;
  body: Record<string, unknown>;
}
async function ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> {
  const response = await world.ask(method, path, body, headers);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}
const issue = async (username: string, name: string, headers?: Record<string, string>): Promise<Answer> =>
  ask('POST', '/api/ops/certs', { username, name }, headers);
const faultsOf = ({ status, body }: Answer): unknown[] => [
  status,
  ...((body['errors'] ?? []) as { path: string }[]).map(({ path }) => path),
];
const wait = (days: number): void => {
  world.around.now = new Date(world.around.now.getTime() + days * 86_400_000);
};

async function token(scope: 'read' | 'users' | 'admin'): Promise<Record<string, string>> {
  const expiresAt = '2030-01-01T00:00:00.000Z';
  const { text } = await world.deps.signIns.createToken({ name: scope, scope, owner: 'webadmin', expiresAt });
  return { authorization: `Bearer ${text}` };
}

describe('POST /api/ops/certs', () => {
  it('issues a certificate under a name, keeps its key, and writes who did it', async () => {
    const { status, body } = await issue('ADA', 'phone');
    const [certificate] = world.deps.theCore.certificates;
    expect([status, body]).toEqual([
      201,
      {
        file: 'ada~phone.p12',
        username: 'ada',
        name: 'phone',
        serial: certificate?.serial,
        fingerprint: certificate?.hash,
        issued_at: certificate?.issuedAt,
        expires_at: certificate?.expiresAt,
        effective_until: certificate?.expiresAt,
        days_left: 365,
        state: 'active',
        revoked_at: null,
        downloadable: true,
        client_uid: 'holdfast-phone',
      },
    ]);
    expect(await world.deps.clientKeys.kept([String(certificate?.hash)])).toHaveLength(1);
    const shown = await ask('GET', '/api/ops/certs/ada~phone.p12', undefined, VIEWER);
    expect(shown.body).toEqual(body);
    expect(
      world.deps.audit.records.map(({ action, target, phase, result, detail }) => [
        action,
        target,
        phase,
        result,
        detail,
      ]),
    ).toEqual([
      ['certificate.issue', 'ada', 'intent', null, '{"username":"ada","name":"phone","client_uid":"holdfast-phone"}'],
      ['certificate.issue', 'ada', 'outcome', 'ok', '{}'],
    ]);
    expect(await world.deps.identity.appPasswords.list('ada')).toEqual([]);
  });

  describe('answers', () => {
    beforeEach(() => {
      const port = world.deps.coreEnrollment;
      const issuedAt = new Date(world.around.now.getTime() + 7).toISOString();
      world.deps.coreEnrollment = { ...port, enroll: async (order) => ({ ...(await port.enroll(order)), issuedAt }) };
    });

    it('with the certificate as the core has recorded it, as it is shown from then on', async () => {
      const { status, body } = await issue('ada', 'phone');
      expect([status, body['issued_at']]).toEqual([201, world.deps.theCore.certificates[0]?.issuedAt]);
      expect((await ask('GET', '/api/ops/certs/ada~phone.p12')).body).toEqual(body);
    });

    it('with the certificate as it was made when the core does not say, which is no error', async () => {
      world.deps.core = {
        ...world.deps.core,
        certificate: () => Promise.reject(new AppError('unavailable', 'The core does not answer')),
      };
      const { status, body } = await issue('ada', 'phone');
      expect([status, body['state']]).toEqual([201, 'active']);
      const [made] = await world.deps.certificateStore.made(['ada']);
      expect([body['fingerprint'], body['issued_at']]).toEqual([made?.hash, made?.issuedAt]);
      expect(await world.deps.certificateStore.revocations()).toEqual([]);
    });
  });

  it('issues a name once, until its certificate is revoked, is to be revoked, or has ended', async () => {
    expect((await issue('ada', 'phone')).status).toBe(201);
    const again = await issue('ada', 'phone');
    expect([again.status, again.body['detail']]).toEqual([409, expect.stringContaining('ada~phone.p12')]);
    expect((await issue('ada', 'Phone')).status).toBe(201);
    const [first] = world.deps.theCore.certificates;
    await world.deps.certificateStore.wantRevoked(
      await world.deps.certificateStore.made(['ada']),
      '2026-03-04T05:06:07Z',
    );
    expect((await issue('ada', 'phone')).status).toBe(201);
    expect((await issue('ada', 'phone')).status).toBe(409);
    expect((await ask('GET', `/api/ops/certs/${first?.hash}`)).body).toMatchObject({ state: 'revoking' });
    expect((await ask('GET', '/api/ops/certs/ada~phone.p12')).body).toMatchObject({ state: 'active' });
    wait(366);
    expect((await issue('ada', 'phone')).status).toBe(201);
    expect((await issue('ada', 'phone')).status).toBe(409);
    await world.deps.core.revoke(world.deps.theCore.certificates.at(-1)?.hash ?? '');
    expect((await issue('ada', 'phone')).status).toBe(201);
  });

  it('issues one of two that are asked for at once', async () => {
    const both = await Promise.all([issue('ada', 'phone'), issue('Ada', 'phone')]);
    expect(new Set(both.map(({ status }) => status))).toEqual(new Set([201, 409]));
    expect(world.deps.theCore.certificates).toHaveLength(1);
  });

  it.each(['', 'a~b', '%2f', 'a/b', 'ü', 'x'.repeat(65), 'a b', 'a\n', '\u0000'])(
    'refuses the name %j',
    async (name) => {
      expect(faultsOf(await issue('ada', name))).toEqual([422, 'name']);
      expect(world.deps.theCore.certificates).toEqual([]);
    },
  );

  it.each(['.', '..', '-', 'x'.repeat(64), 'a.p12'])('takes the name %j, which leads nowhere else', async (name) => {
    expect((await issue('ada', name)).status).toBe(201);
    const found = await ask('GET', `/api/ops/certs/${encodeURIComponent(`ada~${name}.p12`)}`);
    expect([found.status, found.body['name']]).toEqual([200, name]);
  });

  it('refuses whom it does not know, and whoever is no person', async () => {
    await world.account({ username: 'svc_radio', kind: 'service' });
    await world.account({ username: 'robot', kind: 'service' });
    await world.account({ username: 'adm_boss' });
    await world.account({ username: 'eve@example.org' });
    for (const username of ['nobody', 'robot', 'adm_boss', 'eve@example.org', '', 'a/../ada'])
      expect(faultsOf(await issue(username, 'phone'))).toEqual([422, 'username']);
    const service = await issue('SVC_radio', 'phone');
    expect([service.status, service.body['detail']]).toEqual([422, expect.stringContaining('/api/service-accounts')]);
    expect(world.deps.theCore.certificates).toEqual([]);
  });

  it('refuses whoever is inactive or has expired', async () => {
    const { id } = await world.named('ada');
    await world.deps.identity.accounts.changeAttributes(id, { app_expires: world.around.now.getTime() / 1000 + 60 });
    const soon = await issue('ada', 'soon');
    expect([soon.status, soon.body['days_left']]).toEqual([201, 0]);
    world.around.now = new Date(world.around.now.getTime() + 61_000);
    const expired = await issue('ada', 'phone');
    expect([expired.status, expired.body['detail']]).toEqual([409, expect.stringContaining('has expired')]);
    await world.deps.identity.accounts.changeAttributes(id, { app_expires: null });
    await world.deps.identity.accounts.change(id, { isActive: false });
    const inactive = await issue('ada', 'phone');
    expect([inactive.status, inactive.body['detail']]).toEqual([409, expect.stringContaining('is inactive')]);
    expect(world.deps.theCore.certificates).toHaveLength(1);
  });

  it('is not for viewers, tokens that read, nor for administrators with a token of the scope users', async () => {
    for (const headers of [VIEWER, NOBODY, await token('read')])
      expect((await issue('ada', 'phone', headers)).status).toBe(403);
    expect((await issue('webadmin', 'phone', await token('users'))).status).toBe(403);
    expect(world.deps.theCore.certificates).toEqual([]);
    expect((await issue('ada', 'phone', await token('users'))).status).toBe(201);
    expect((await issue('webadmin', 'phone', await token('admin'))).status).toBe(201);
  });

  it('revokes what was signed while the user was closed', async () => {
    const { id } = await world.named('ada');
    const port = world.deps.coreEnrollment;
    world.deps.coreEnrollment = {
      ...port,
      async enroll(order) {
        const enrolled = await port.enroll(order);
        await world.deps.identity.accounts.change(id, { isActive: false });
        return enrolled;
      },
    };
    expect((await issue('ada', 'phone')).status).toBe(409);
    const [certificate] = world.deps.theCore.certificates;
    const { hash = '' } = certificate ?? {};
    expect(await world.deps.certificateStore.revocations()).toMatchObject([{ hash, state: 'revoking' }]);
    expect(await world.deps.clientKeys.kept([hash])).toEqual([]);
    expect(world.deps.audit.records.at(-1)).toMatchObject({ phase: 'outcome', result: 'failed' });
  });

  it('leaves its intent open when the core may still have signed, and says so', async () => {
    world.deps.theCore.mood = 'down';
    expect((await issue('ada', 'phone')).status).toBe(503);
    expect(world.deps.audit.records).toEqual([]);
    world.deps.theCore.mood = 'up';
    const port = world.deps.coreEnrollment;
    world.deps.coreEnrollment = {
      ...port,
      async enroll(order) {
        await port.enroll(order);
        throw new AppError('unavailable', 'The answer was lost');
      },
    };
    const lost = await issue('ada', 'phone');
    expect([lost.status, lost.body['detail']]).toEqual([503, expect.stringContaining('may still have signed')]);
    expect(world.deps.audit.records.map(({ phase }) => phase)).toEqual(['intent']);
    expect(await world.deps.certificateStore.made()).toEqual([]);
    const [intent] = await world.deps.audit.unfinished('2030-01-01T00:00:00Z', 1);
    expect(intent && (await finishIntent(world.deps, REGISTERED, intent))).toBe('failed');
    const { hash = '' } = world.deps.theCore.certificates[0] ?? {};
    expect(await world.deps.certificateStore.revocations()).toMatchObject([{ hash, state: 'revoking' }]);
  });

  it('needs its intent in the audit log', async () => {
    world.deps.audit.mood = 'away';
    expect((await issue('ada', 'phone')).status).toBe(503);
    expect(world.deps.theCore.certificates).toEqual([]);
  });

  it('hands the bundle out once, and keeps nothing, where keys are not kept', async () => {
    world = await peopleWorld({ KEEP_CLIENT_KEYS: 'false' });
    await world.account({ username: 'ada' });
    const { status, body } = await issue('ada', 'phone');
    expect([status, body['downloadable'], typeof body['p12_base64']]).toEqual([201, false, 'string']);
    expect(atob(String(body['p12_base64']))).toContain('"friendlyName":"ada"');
    expect(await world.deps.clientKeys.kept([String(body['fingerprint'])])).toEqual([]);
    expect(JSON.stringify(world.deps.audit.records)).not.toContain(body['p12_base64']);
    const shown = await ask('GET', '/api/ops/certs/ada~phone.p12');
    expect([shown.body['p12_base64'], shown.body['downloadable']]).toEqual([undefined, false]);
    const download = await ask('GET', '/api/ops/certs/ada~phone.p12/download');
    expect([download.status, download.body['detail']]).toEqual([409, expect.stringContaining('KEEP_CLIENT_KEYS')]);
  });

  it('has left nothing, a complete certificate, or one whose key nobody has, at whatever call it dies', async () => {
    const seen = new Set<string>();
    for (const when of ['before', 'after'] as const)
      for (let nth = 1; nth < 20; nth++) {
        world = await peopleWorld();
        await world.account({ username: 'ada' });
        const dying = dyingAt(world.deps, nth, when);
        const wanted = { username: 'ada', name: 'phone' };
        const died = await issueCertificate({ deps: dying, actor: ACTOR }, wanted).then(
          () => false,
          () => true,
        );
        const { theCore, certificateStore, clientKeys, audit } = world.deps;
        const hashes = theCore.certificates.map(({ hash }) => hash);
        const made = (await certificateStore.made()).map(({ hash }) => hash);
        const kept = await clientKeys.kept(hashes);
        const revoked = (await certificateStore.revocations()).map(({ hash }) => hash);
        const open = audit.records.length === 1;
        const [hash] = hashes;
        if (!died) seen.add('done');
        else if (hash === undefined) seen.add('nothing');
        else if (revoked.includes(hash)) seen.add('revoked');
        else if (made.includes(hash) && kept.includes(hash)) seen.add('complete');
        else seen.add(open && kept.length === 0 ? 'to be found' : `wrong: ${when} ${nth}`);
      }
    expect([...seen].toSorted()).toEqual(['done', 'nothing', 'revoked', 'to be found']);
  });
});
