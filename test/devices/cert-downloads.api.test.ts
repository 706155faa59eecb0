import { strFromU8, unzipSync } from 'fflate';
import { beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { dispositionOf } from '../../shared/http/answers.ts';
import { ADMIN, basic, PASSWORD, VIEWER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
  await world.person('ada');
  await world.ask('POST', '/api/ops/certs', { username: 'ada', name: 'phone' });
  world.deps.audit.records.length = 0;
});

const ADA = { authorization: basic('ada', PASSWORD) };
const PLACE = '/api/ops/certs/ada~phone.p12';
const download = async (query = '', headers?: Record<string, string>): Promise<Response> =>
  world.ask('GET', `${PLACE}/download${query}`, undefined, headers);
const detailOf = async (answer: Response): Promise<unknown> => ((await answer.json()) as { detail: string }).detail;
const bundleIn = (text: string): unknown => JSON.parse(text);
const lastDetail = (): unknown => JSON.parse(world.deps.audit.records[0]?.detail ?? '');

async function token(scope: 'read' | 'users' | 'admin', owner = 'webadmin'): Promise<Record<string, string>> {
  const expiresAt = '2030-01-01T00:00:00.000Z';
  const { text } = await world.deps.signIns.createToken({ name: scope, scope, owner, expiresAt });
  return { authorization: `Bearer ${text}` };
}

describe('GET /api/ops/certs/{file}/download', () => {
  it('gives PKCS#12 under the name of the user, as a file that nothing keeps', async () => {
    const answer = await download();
    expect([answer.status, Object.fromEntries(answer.headers)]).toEqual([
      200,
      expect.objectContaining({
        'content-type': 'application/x-pkcs12',
        'content-disposition': `attachment; filename="ada_phone.p12"; filename*=UTF-8''ada~phone.p12`,
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      }),
    ]);
    const [certificate] = world.deps.theCore.certificates;
    expect(bundleIn(await answer.text())).toEqual({
      certificatePem: certificate?.pem,
      friendlyName: 'ada',
      legacy: false,
    });
    expect(bundleIn(await (await download('?compat=legacy')).text())).toMatchObject({ legacy: true });
  });

  it('gives PEM: key, certificate and chain', async () => {
    const answer = await download('?format=pem');
    expect(answer.headers.get('content-disposition')).toContain('filename="ada_phone.pem"');
    expect((await answer.text()).match(/(?<=-----BEGIN )[A-Z ]+(?=-----)/g)).toEqual([
      'PRIVATE KEY',
      'CERTIFICATE',
      'CERTIFICATE',
    ]);
  });

  it('gives a data package for ATAK, or iTAK, with truststore, bundle and connection', async () => {
    world = await peopleWorld({
      SERVER_ADDRESS: 'cot.example.org',
      CORE_STREAMING_URL: 'tls://takserver:18089',
      CORE_API_URL: 'https://takserver:18443',
    });
    world.deps.place = { name: 'cot.example.org', url: '' };
    await world.person('ada');
    await world.ask('POST', '/api/ops/certs', { username: 'ada', name: 'phone' });
    const answer = await download('?format=data-package&compat=legacy');
    expect([answer.headers.get('content-type'), answer.headers.get('content-disposition')]).toEqual([
      'application/zip',
      `attachment; filename="ada_phone-atak.zip"; filename*=UTF-8''ada~phone-atak.zip`,
    ]);
    const files = unzipSync(new Uint8Array(await answer.arrayBuffer()));
    expect(Object.keys(files)).toEqual([
      'MANIFEST/manifest.xml',
      'certs/config.pref',
      'certs/truststore.p12',
      'certs/ada_phone.p12',
    ]);
    const text = (name: string): string => strFromU8(files[name] ?? new Uint8Array());
    expect(text('certs/config.pref')).toContain('>cot.example.org:18089:ssl<');
    expect(text('certs/config.pref')).toContain('"apiSecureServerPort" class="class java.lang.String">18443<');
    expect(bundleIn(text('certs/ada_phone.p12'))).toMatchObject({ friendlyName: 'ada', legacy: true });
    expect(bundleIn(text('certs/truststore.p12'))).toMatchObject({ chainPem: [expect.any(String)] });
    const flat = await download('?format=data-package&app=itak');
    expect(flat.headers.get('content-disposition')).toContain('filename="ada_phone-itak.zip"');
    expect(Object.keys(unzipSync(new Uint8Array(await flat.arrayBuffer())))).toEqual([
      'config.pref',
      'truststore.p12',
      'ada_phone.p12',
    ]);
  });

  it.each([
    'format=jks',
    'format=',
    'app=wintak&format=data-package',
    'compat=old',
    'app=atak',
    'compat=legacy&format=pem',
  ])('refuses %s', async (query) => {
    expect((await download(`?${query}`)).status).toBe(422);
    expect(world.deps.audit.records).toEqual([]);
  });

  it('is in the audit log before and after, with whether the revocation list was read, and without the key', async () => {
    await download('?format=data-package&app=itak');
    const { hash } = world.deps.theCore.certificates[0] ?? {};
    expect(world.deps.audit.records).toMatchObject([
      { action: 'certificate.download', target: 'ada', actor: 'webadmin', phase: 'intent' },
      { action: 'certificate.download', target: 'ada', phase: 'outcome', result: 'ok' },
    ]);
    expect(lastDetail()).toEqual({
      file: 'ada~phone.p12',
      fingerprint: hash,
      format: 'data-package',
      app: 'itak',
      legacy: false,
      revocation_list: 'not on it',
    });
    world.deps.audit.mood = 'away';
    expect((await download()).status).toBe(503);
  });

  it('refuses one that is revoked, about to be, or whose revocation failed, and notes who tried', async () => {
    const { certificateStore } = world.deps;
    const [made] = await certificateStore.made(['ada']);
    await certificateStore.wantRevoked(made === undefined ? [] : [made], '2026-03-04T05:06:07Z');
    for (const state of ['revoking', 'revocation_failed', 'revoked'] as const) {
      await certificateStore.settle(made?.hash ?? '', {
        state,
        checkedAt: '2026-03-04T05:06:07Z',
        problem: null,
        streams: null,
      });
      expect((await download()).status).toBe(403);
    }
    const noted = world.deps.audit.records.filter(({ action }) => action === 'certificate.download');
    expect(noted).toMatchObject(
      Array.from({ length: 3 }, () => ({ actor: 'webadmin', target: 'ada', phase: 'outcome', result: 'denied' })),
    );
    expect(noted[0]?.detail).toContain('ada~phone.p12');
  });

  it('refuses one that was revoked at the core itself, or is on its revocation list', async () => {
    const { core, coreAuthority, theCore } = world.deps;
    const [certificate] = theCore.certificates;
    const list = await coreAuthority.revocationList();
    world.deps.coreAuthority = {
      ...coreAuthority,
      revocationList: async () => ({ ...list, serials: [String(certificate?.serial)] }),
    };
    expect((await download()).status).toBe(403);
    world.deps.coreAuthority = coreAuthority;
    expect((await download()).status).toBe(200);
    theCore.writesList = false;
    await core.revoke(String(certificate?.hash));
    expect((await download()).status).toBe(403);
  });

  it('is allowed while the revocation list cannot be read or is not that of the CA, and audited as such', async () => {
    const { coreAuthority, theCore } = world.deps;
    const list = await coreAuthority.revocationList();
    const serials = [String(theCore.certificates[0]?.serial)];
    const unavailable = new AppError('unavailable', '/core/certs/files/ca.crl is missing.');
    for (const [revocationList, message] of [
      [() => Promise.reject(unavailable), 'allowed unchecked: /core/certs/files/ca.crl is missing.'],
      [
        async () => ({ ...list, serials, ours: false }),
        'allowed unchecked: the list is not signed by the CA of the core',
      ],
    ] as const) {
      world.deps.coreAuthority = { ...coreAuthority, revocationList };
      world.deps.audit.records.length = 0;
      expect((await download()).status).toBe(200);
      expect(lastDetail()).toMatchObject({ revocation_list: message });
    }
  });

  it('is 409 with the remedy where there is no key, or the certificate has ended', async () => {
    const { clientKeys, theCore } = world.deps;
    const device = theCore.enrolledByDevice('ada');
    const file = `${device.hash.replaceAll(':', '').slice(0, 16).toLowerCase()}.pem`;
    const foreign = await world.ask('GET', `/api/ops/certs/${file}/download`);
    expect([foreign.status, await detailOf(foreign)]).toEqual([409, expect.stringContaining('was not made here')]);
    world.around.now = new Date(world.around.now.getTime() + 366 * 86_400_000);
    const ended = await download();
    expect([ended.status, await detailOf(ended)]).toEqual([409, expect.stringContaining('Issue another certificate')]);
    world.around.now = new Date(world.around.now.getTime() - 366 * 86_400_000);
    await clientKeys.remove(String(theCore.certificates[0]?.hash));
    const lost = await download();
    expect([lost.status, await detailOf(lost)]).toEqual([409, expect.stringContaining('Revoke it and issue another')]);
  });

  it('says where the key of the certificate is that Holdfast itself uses', async () => {
    world.deps.theCore.enrolledByDevice('svc_api', 'svc_api');
    const answer = await world.ask('GET', '/api/ops/certs/svc_api.p12/download');
    expect([answer.status, await detailOf(answer)]).toEqual([
      409,
      "Holdfast itself uses the certificate svc_api.p12 for the core, so it can't be downloaded here. Its file is svc_api.p12 in certs/files below CORE_DATA_DIR. For your own program, create a service account (POST /api/service-accounts).",
    ]);
  });

  it('is for administrators, and for tokens of the scope users only where they may change the owner', async () => {
    expect((await download('', VIEWER)).status).toBe(403);
    expect((await download('', await token('read'))).status).toBe(403);
    expect((await download('', await token('users'))).status).toBe(200);
    await world.ask('POST', '/api/ops/certs', { username: 'webadmin', name: 'phone' });
    await world.account({ username: 'svc_radio', kind: 'service' });
    const radio = world.deps.theCore.enrolledByDevice('svc_radio');
    for (const file of ['webadmin~phone.p12', radio.hash])
      expect((await world.ask('GET', `/api/ops/certs/${file}/download`, undefined, await token('users'))).status).toBe(
        403,
      );
    const asAdmin = await world.ask(
      'GET',
      '/api/ops/certs/webadmin~phone.p12/download',
      undefined,
      await token('admin'),
    );
    expect(asAdmin.status).toBe(200);
  });
});

describe('/api/me/certs', () => {
  beforeEach(async () => {
    await world.person('ada-doe');
    await world.ask('POST', '/api/ops/certs', { username: 'ada-doe', name: 'phone' });
  });
  const mine = async (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = ADA,
  ): Promise<Response> => world.ask(method, `/api/me/certs${path}`, body, headers);
  const files = async (answer: Response): Promise<string[]> =>
    ((await answer.json()) as { results: { file: string }[] }).results.map(({ file }) => file);

  it("lists one's own, by the record, and nobody else's", async () => {
    expect(await files(await mine('GET', ''))).toEqual(['ada~phone.p12']);
    expect(await files(await mine('GET', '?status=revoked'))).toEqual([]);
    expect(await files(await mine('GET', '?username=ada-doe'))).toEqual(['ada~phone.p12']);
  });

  it('issues one to oneself', async () => {
    const answer = await mine('POST', '', { name: 'tablet' });
    expect([answer.status, await answer.json()]).toMatchObject([201, { file: 'ada~tablet.p12', downloadable: true }]);
    expect((await mine('POST', '', { name: 'tablet' })).status).toBe(409);
    expect((await mine('POST', '', { name: 'a~b' })).status).toBe(422);
    expect((await mine('POST', '', { name: 'x', username: 'ada-doe' })).status).toBe(422);
    expect(world.deps.audit.records).toContainEqual(
      expect.objectContaining({ actor: 'ada', action: 'certificate.issue', target: 'ada' }),
    );
  });

  it('issues one to somebody whom user management hides, none to a program, none without an account', async () => {
    await world.person('adm_boss');
    expect((await mine('POST', '', { name: 'x' }, { authorization: basic('adm_boss', PASSWORD) })).status).toBe(201);
    world.deps.directory.addPerson('svc_radio', PASSWORD);
    expect((await mine('POST', '', { name: 'x' }, { authorization: basic('svc_radio', PASSWORD) })).status).toBe(409);
    world.deps.directory.addPerson('ghost', PASSWORD);
    expect((await mine('POST', '', { name: 'x' }, { authorization: basic('ghost', PASSWORD) })).status).toBe(409);
  });

  it('issues one no more than 20 in force, also when they are asked for at once; revoking makes room', async () => {
    for (let device = 0; device < 21; device++) world.deps.theCore.enrolledByDevice('ada');
    const names = Array.from({ length: 21 }, (_, at) => `n${at}`);
    const answers = await Promise.all(names.map((name) => mine('POST', '', { name })));
    const refused = answers.filter(({ status }) => status !== 201);
    expect(refused.map(({ status }) => status)).toEqual([409, 409]);
    expect(await detailOf(refused[0] as Response)).toMatch(
      /^ada has 20 valid certificates made here.* is 20\. Revoke one .*, or ask an administrator/,
    );
    expect((await mine('POST', '/ada~phone.p12/revoke')).ok).toBe(true);
    expect((await mine('POST', '', { name: 'x' })).status).toBe(201);
    expect((await mine('POST', '', { name: 'y' })).status).toBe(409);
    const given = await world.ask('POST', '/api/ops/certs', { username: 'ada', name: 'y' });
    expect([given.status, (await mine('POST', '', { name: 'z' })).status]).toEqual([201, 409]);
  });

  it('issues an administrator as many as are asked for', async () => {
    for (let nth = 0; nth < 21; nth++)
      expect([nth, (await mine('POST', '', { name: `n${nth}` }, ADMIN)).status]).toEqual([nth, 201]);
  });

  it("downloads one's own; another's is not there, by whatever name", async () => {
    const own = await mine('GET', '/ada~phone.p12/download?format=pem');
    expect([own.status, await own.text()]).toEqual([200, expect.stringContaining('PRIVATE KEY')]);
    const [, other] = world.deps.theCore.certificates;
    const bare = String(other?.hash).replaceAll(':', '');
    for (const file of [
      'ada-doe~phone.p12',
      String(other?.hash),
      bare,
      `${bare.slice(0, 16).toLowerCase()}.pem`,
      'nothing',
    ]) {
      const answer = await mine('GET', `/${file}/download`);
      // The same words whether it is another's or nobody's.
      expect([answer.status, await detailOf(answer)]).toEqual([
        404,
        `You have no certificate with the file or hash "${file}"; GET /api/me/certs lists yours.`,
      ]);
    }
  });

  it("does not tell another's from one that nobody has, nor asks the core about anybody else", async () => {
    const [, other] = world.deps.theCore.certificates;
    const hash = String(other?.hash);
    const requests: (string | undefined)[] = [];
    const { core } = world.deps;
    world.deps.core = {
      ...core,
      certificates: async (username) => {
        requests.push(username);
        return core.certificates(username);
      },
      certificate: async (of) => {
        requests.push(of);
        return core.certificate(of);
      },
    };
    const withoutFile = async (answer: Response, file: string): Promise<string> =>
      String(await detailOf(answer)).replace(file, 'FILE');
    const nobodys = await withoutFile(await mine('GET', '/nobody~phone.p12/download'), 'nobody~phone.p12');
    for (const file of ['ada-doe~phone.p12', hash, `${hash.replaceAll(':', '').slice(0, 16).toLowerCase()}.pem`])
      for (const [method, verb] of [
        ['GET', 'download'],
        ['POST', 'revoke'],
      ] as const) {
        const answer = await mine(method, `/${file}/${verb}`);
        expect([file, answer.status, await withoutFile(answer, file)]).toEqual([file, 404, nobodys]);
      }
    expect(new Set(requests)).toEqual(new Set(['ada']));
  });

  it("finds one's own by its hash too, and by the start of it when a device enrolled it", async () => {
    const { hash } = world.deps.theCore.enrolledByDevice('ada');
    const start = `${hash.replaceAll(':', '').slice(0, 16).toLowerCase()}.pem`;
    expect((await mine('GET', `/${start}/download`)).status).toBe(409);
    expect([200, 202]).toContain((await mine('POST', `/${hash}/revoke`)).status);
  });

  it("revokes one's own; another's is not there", async () => {
    expect((await mine('POST', '/ada-doe~phone.p12/revoke')).status).toBe(404);
    expect(world.deps.theCore.certificates.map(({ revokedAt }) => revokedAt)).toEqual([null, null]);
    const answer = await mine('POST', '/ada~phone.p12/revoke');
    expect([200, 202]).toContain(answer.status);
    expect(await answer.json()).toMatchObject({ file: 'ada~phone.p12', revoked_at: expect.any(String) });
    expect(world.deps.theCore.certificates.map(({ revokedAt }) => revokedAt === null)).toEqual([false, true]);
    expect((await mine('GET', '/ada~phone.p12/download')).status).toBe(403);
    expect((await mine('POST', '', { name: 'phone' })).status).toBe(201);
  });

  it('hands no key to a token that may only read', async () => {
    const headers = await token('read', 'ada');
    expect((await mine('GET', '/ada~phone.p12/download', undefined, headers)).status).toBe(403);
    expect((await mine('POST', '', { name: 'x' }, headers)).status).toBe(403);
    expect(await files(await mine('GET', '', undefined, headers))).toEqual(['ada~phone.p12']);
  });
});

describe('the name of an attachment', () => {
  it('is plain, and exact for who reads RFC 6266', () => {
    expect(dispositionOf('ada.p12')).toBe('attachment; filename="ada.p12"');
    expect(dispositionOf(`a"b\r\nX: y/ü'(1).p12`)).toBe(
      `attachment; filename="a_b__X__y____1_.p12"; filename*=UTF-8''a%22b%0D%0AX%3A%20y%2F%C3%BC%27%281%29.p12`,
    );
  });
});
