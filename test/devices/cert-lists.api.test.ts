import { beforeEach, describe, expect, it } from 'vitest';
import { VIEWER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

let world: PeopleWorld;
beforeEach(async () => {
  world = await peopleWorld();
  await world.account({ username: 'ada' });
});

interface View {
  file: string;
  effective_until: string;
}
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
const filesOf = ({ body }: Answer): string[] => (body['results'] as View[]).map(({ file }) => file);
const faultsOf = ({ status, body }: Answer): unknown[] => [
  status,
  ...((body['errors'] ?? []) as { path: string }[]).map(({ path }) => path),
];
const wait = (days: number): void => {
  world.around.now = new Date(world.around.now.getTime() + days * 86_400_000);
};

describe('GET /api/ops/certs', () => {
  beforeEach(async () => {
    for (const username of ['john', 'john-doe', 'Zed']) await world.account({ username });
    await issue('john', 'doe');
    wait(1);
    await issue('john-doe', 'x');
    await issue('john', 'tablet');
    await issue('Zed', 'phone');
  });

  it('lists by user and newest first, with certificates that devices enrolled', async () => {
    const device = world.deps.theCore.enrolledByDevice('ada');
    const page = await ask('GET', '/api/ops/certs', undefined, VIEWER);
    expect([page.status, page.body['count'], page.body['page'], page.body['page_size']]).toEqual([200, 5, 1, 50]);
    expect(filesOf(page)).toEqual([
      `${device.hash.replaceAll(':', '').slice(0, 16).toLowerCase()}.pem`,
      'john~tablet.p12',
      'john~doe.p12',
      'john-doe~x.p12',
      'Zed~phone.p12',
    ]);
  });

  it('says in words of its own that a text is too long or empty', async () => {
    const long = 'a'.repeat(1001);
    const messagesOf = async (answer: Promise<Answer>): Promise<unknown> => (await answer).body['detail'];
    expect(await messagesOf(ask('GET', `/api/ops/certs/${long}`))).toBe('file: must have at most 200 characters');
    expect(await messagesOf(ask('GET', '/api/ops/certs?username='))).toBe('username: must not be empty');
    expect(await messagesOf(issue('ada', long))).toBe('name: must have at most 1000 characters');
  });

  it("shows john only john's, and john-doe only john-doe's", async () => {
    expect(filesOf(await ask('GET', '/api/ops/certs?username=john'))).toEqual(['john~tablet.p12', 'john~doe.p12']);
    expect(filesOf(await ask('GET', '/api/ops/certs?username=JOHN-DOE'))).toEqual(['john-doe~x.p12']);
    expect(filesOf(await ask('GET', '/api/ops/certs?username=joh'))).toEqual([]);
  });

  it('lists by state, where revoked is also what is about to be', async () => {
    const [doe, x, tablet] = world.deps.theCore.certificates;
    await world.deps.core.revoke(String(doe?.hash));
    await world.deps.certificateStore.wantRevoked(
      await world.deps.certificateStore.made(['john-doe']),
      '2026-03-04T05:06:07Z',
    );
    expect(filesOf(await ask('GET', '/api/ops/certs?status=revoked'))).toEqual(['john~doe.p12', 'john-doe~x.p12']);
    expect(filesOf(await ask('GET', '/api/ops/certs?status=active'))).toEqual(['john~tablet.p12', 'Zed~phone.p12']);
    expect(filesOf(await ask('GET', '/api/ops/certs?status=expired'))).toEqual([]);
    for (const state of ['revoked', 'revocation_failed'] as const) {
      await world.deps.certificateStore.settle(String(x?.hash), {
        state,
        checkedAt: '2026-03-04T05:06:07Z',
        problem: null,
        streams: null,
      });
      expect(filesOf(await ask('GET', '/api/ops/certs?status=revoked&username=john-doe'))).toHaveLength(1);
    }
    expect(tablet?.revokedAt).toBeNull();
    wait(366);
    expect(filesOf(await ask('GET', '/api/ops/certs?status=expired,active'))).toEqual([
      'john~tablet.p12',
      'Zed~phone.p12',
    ]);
    expect((await ask('GET', '/api/ops/certs?status=expired,active,revoked')).body['count']).toBe(4);
  });

  it('gives pages, and an empty one beyond the last', async () => {
    expect(filesOf(await ask('GET', '/api/ops/certs?page=2&page_size=3'))).toEqual(['Zed~phone.p12']);
    const beyond = await ask('GET', '/api/ops/certs?page=9&page_size=3');
    expect([beyond.status, beyond.body]).toEqual([200, { results: [], count: 4, page: 9, page_size: 3 }]);
  });

  it('asks the identity provider for the owners of the page alone', async () => {
    const requests: string[] = [];
    const { accounts } = world.deps.identity;
    world.deps.identity.accounts = {
      ...accounts,
      async named(username) {
        requests.push(username);
        return accounts.named(username);
      },
    };
    const { id } = await world.named('john-doe');
    const end = world.around.now.getTime() / 1000 + 3600;
    await world.deps.identity.accounts.changeAttributes(id, { app_expires: end });
    requests.length = 0;
    const page = await ask('GET', '/api/ops/certs?page=2&page_size=2');
    expect([filesOf(page), requests]).toEqual([
      ['john-doe~x.p12', 'Zed~phone.p12'],
      ['john-doe', 'Zed'],
    ]);
    expect((page.body['results'] as View[])[0]?.effective_until).toBe(new Date(end * 1000).toISOString());
  });

  it('shows those of the canary only to who asks for them', async () => {
    world.deps.theCore.enrolledByDevice('svc_canary');
    world.deps.theCore.enrolledByDevice('svc_api', 'svc_api');
    expect(filesOf(await ask('GET', '/api/ops/certs'))).toHaveLength(5);
    expect(filesOf(await ask('GET', '/api/ops/certs?username=svc_canary'))).toHaveLength(1);
    expect(filesOf(await ask('GET', '/api/ops/certs?username=svc_api'))).toEqual(['svc_api.p12']);
  });

  it.each(['status=dead', 'status=', 'page=0', 'page_size=201', 'username='])('refuses %s', async (query) => {
    expect(faultsOf(await ask('GET', `/api/ops/certs?${query}`))[0]).toBe(422);
  });

  it('says that the core does not answer, and shows what was written down here', async () => {
    await issue('ada', 'phone');
    world.deps.theCore.enrolledByDevice('ada', 'ANDROID-1');
    world.deps.theCore.mood = 'down';
    const answer = await ask('GET', '/api/ops/certs?username=ada');
    expect([answer.status, answer.body]).toEqual([
      200,
      expect.objectContaining({
        count: 1,
        results: [expect.objectContaining({ file: 'ada~phone.p12', state: 'active' })],
        certs_error: 'The core does not answer',
      }),
    ]);
    expect((await ask('GET', '/api/ops/certs/ada~phone.p12')).body).toMatchObject({
      file: 'ada~phone.p12',
      certs_error: 'The core does not answer',
    });
    const device = String(world.deps.theCore.certificates.at(-1)?.hash);
    const unknown = await ask('GET', `/api/ops/certs/${device}`);
    expect([unknown.status, unknown.body['detail']]).toEqual([503, 'The core does not answer']);
  });
});

describe('GET /api/ops/certs/{file}', () => {
  it('finds it by file and by hash, in whatever form', async () => {
    await issue('ada', 'phone');
    const hash = String(world.deps.theCore.certificates[0]?.hash);
    const bare = hash.replaceAll(':', '');
    for (const file of [
      'ada~phone.p12',
      'ADA~phone.p12',
      hash,
      hash.toLowerCase(),
      bare,
      `${bare.slice(0, 16).toLowerCase()}.pem`,
    ])
      expect((await ask('GET', `/api/ops/certs/${encodeURIComponent(file)}`, undefined, VIEWER)).status).toBe(200);
  });

  it.each([
    'ada~tablet.p12',
    'ada.p12',
    'ada',
    '..',
    'a%2fb.p12',
    '%2e%2e%2fetc',
    'ada~phone',
    '%C3%BC.p12',
    'f'.repeat(64),
    '%00',
  ])('is 404 for %s', async (file) => {
    await issue('ada', 'phone');
    expect((await world.ask('GET', `/api/ops/certs/${file}`)).status).toBe(404);
  });

  it('names what was asked for when there is none', async () => {
    expect((await ask('GET', '/api/ops/certs/ada~tablet.p12')).body['detail']).toBe(
      'There is no certificate with the file or hash "ada~tablet.p12"; GET /api/ops/certs lists them.',
    );
  });

  it('tells the CA and its revocation list', async () => {
    const ca = await ask('GET', '/api/ops/certs/ca', undefined, VIEWER);
    expect(ca.body).toEqual({
      pem: expect.stringMatching(/^-----BEGIN CERTIFICATE-----\n.*\n-----END CERTIFICATE-----\n$/),
      fingerprint: 'CA:01',
      expires_at: '2036-01-01T00:00:00.000Z',
    });
    await issue('ada', 'phone');
    const [certificate] = world.deps.theCore.certificates;
    await world.deps.core.revoke(String(certificate?.hash));
    const list = await ask('GET', '/api/ops/certs/crl', undefined, VIEWER);
    expect([list.status, Object.keys(list.body).toSorted(), list.body['serials']]).toEqual([
      200,
      ['next_update', 'pem', 'serials', 'this_update'],
      [certificate?.serial],
    ]);
  });
});
