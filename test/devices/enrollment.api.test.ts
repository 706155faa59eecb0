// /api/users/{id}/enrollment and /api/me/enrollment: what is given out, to whom, and that it is stored nowhere.

import { strFromU8, unzipSync } from 'fflate';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Account } from '../../shared/identity/port.ts';
import { basic, PASSWORD, VIEWER } from '../http/fake-deps.ts';
import { peopleWorld, type PeopleWorld } from '../people/fake-people.ts';

let world: PeopleWorld;
let ada: Account;
beforeEach(async () => {
  world = await peopleWorld({
    SERVER_ADDRESS: 'cot.example.org',
    CORE_STREAMING_URL: 'tls://127.0.0.1:18089',
    CORE_ENROLLMENT_PORT: '18446',
    CORE_API_URL: 'https://127.0.0.1:18443',
  });
  ada = await world.person('ada', ['core_Team']);
});

interface Issued {
  url: string;
  expires_at: string;
  ca_fingerprint: string;
  ca_certificate: string;
  qr_svg: string;
  formats: Record<'atak' | 'itak' | 'takaware' | 'package', string>;
  qr: Record<'atak' | 'itak' | 'takaware', string>;
}

const ADA = { authorization: basic('ada', PASSWORD) };
const PATH = (): string => `/api/users/${ada.id}/enrollment`;
const issue = async (path = PATH(), headers?: Record<string, string>): Promise<Issued> => {
  const answer = await world.ask('POST', path, undefined, headers);
  expect([answer.status, answer.headers.get('cache-control')]).toEqual([201, 'no-store']);
  return (await answer.json()) as Issued;
};
const statusOf = async (method: string, path: string, headers?: Record<string, string>): Promise<number> =>
  (await world.ask(method, path, undefined, headers)).status;
const keyOf = ({ url }: Issued): string => new URL(url).searchParams.get('token') ?? '';

describe('POST /api/users/{id}/enrollment', () => {
  it('gives link, codes, texts and CA, all of one token', async () => {
    const given = await issue();
    const key = keyOf(given);
    expect(given).toEqual({
      url: `tak://com.atakmap.app/enroll?host=cot.example.org&username=ada&token=${key}`,
      expires_at: '2026-03-04T05:21:07.000Z',
      ca_fingerprint: 'CA:01',
      ca_certificate: expect.stringMatching(/^-----BEGIN CERTIFICATE-----\n/),
      qr_svg: given.qr.atak,
      formats: {
        atak: given.url,
        itak: 'cot.example.org,cot.example.org,18089,SSL',
        takaware: expect.any(String),
        package: `${PATH()}/package`,
      },
      qr: { atak: expect.stringMatching(/^<svg /), itak: expect.any(String), takaware: expect.any(String) },
    });
    expect(new Set(Object.values(given.qr)).size).toBe(3);
    expect(JSON.parse(given.formats.takaware)).toMatchObject({
      userCredentials: { username: 'ada', password: key, registrationId: expect.stringMatching(/^[0-9a-f-]{36}$/) },
    });
    expect(world.deps.identity.accepts('ada', key)).toBe(true);
  });

  it('gives exactly the same again while it is good', async () => {
    expect(await issue()).toEqual(await issue());
  });

  it('is 409 for somebody who is not active, 404 for hidden accounts, services and nobody', async () => {
    await world.deps.identity.accounts.change(ada.id, { isActive: false });
    expect(await statusOf('POST', PATH())).toBe(409);
    const hidden = await world.account({ username: 'svc_probe', kind: 'service' });
    for (const method of ['POST', 'GET', 'DELETE'])
      for (const id of [hidden.id, 999_999, 'x'])
        expect(await statusOf(method, `/api/users/${id}/enrollment`)).toBe(404);
    expect(await statusOf('GET', `/api/users/${hidden.id}/enrollment/package`)).toBe(404);
  });

  it('is 503 without SERVER_ADDRESS, and nothing is made', async () => {
    world.deps.settings = { ...world.deps.settings, SERVER_ADDRESS: undefined };
    expect(await statusOf('POST', PATH())).toBe(503);
    expect(await world.deps.identity.appPasswords.list('ada')).toEqual([]);
  });

  it('writes the password nowhere', async () => {
    const key = keyOf(await issue());
    await world.ask('GET', PATH());
    expect(JSON.stringify([world.deps.log.events, world.deps.audit.records])).not.toContain(key);
  });
});

describe('GET /api/users/{id}/enrollment', () => {
  it('is the diagnosis, for viewers too, and never has the password', async () => {
    const key = keyOf(await issue());
    const answer = await world.ask('GET', PATH(), undefined, VIEWER);
    const text = await answer.text();
    expect([answer.status, answer.headers.get('cache-control'), text.includes(key)]).toEqual([200, 'no-store', false]);
    const { state, checks } = JSON.parse(text) as { state: string; checks: { stage: string }[] };
    expect([state, checks.length]).toEqual(['valid', 8]);
  });
});

describe('DELETE /api/users/{id}/enrollment', () => {
  it('is 204, twice, and the password opens nothing any more', async () => {
    const key = keyOf(await issue());
    expect([await statusOf('DELETE', PATH()), await statusOf('DELETE', PATH())]).toEqual([204, 204]);
    expect(world.deps.identity.accepts('ada', key)).toBe(false);
    const { state } = (await (await world.ask('GET', PATH())).json()) as { state: string };
    expect(state).toBe('none');
  });
});

describe('/api/me/enrollment', () => {
  it('is the same for oneself: the token, the diagnosis, its end', async () => {
    const own = await issue('/api/me/enrollment', ADA);
    expect(own).toEqual(await issue());
    expect(own.formats.package).toBe(`${PATH()}/package`);
    expect(await statusOf('GET', '/api/me/enrollment', ADA)).toBe(200);
    expect(await statusOf('DELETE', '/api/me/enrollment', ADA)).toBe(204);
    expect(world.deps.identity.accepts('ada', keyOf(own))).toBe(false);
  });

  it('names as remedy a call that people may make themselves', async () => {
    world.around.addresses['cot.example.org'] = ['127.0.0.1'];
    const shown = { reachable: true, trusted: true, error: undefined, subject: '', issuer: '', expires_at: undefined };
    world.deps.monitored.tls.inspect = async () => shown;
    const remedy = async (path: string, headers?: Record<string, string>): Promise<unknown> =>
      ((await (await world.ask('GET', path, undefined, headers)).json()) as { remedy: string }).remedy;
    expect(await remedy('/api/me/enrollment', ADA)).toContain('POST /api/me/enrollment,');
    expect(await remedy(PATH())).toContain(`POST ${PATH()},`);
  });

  it('is 404 for a hidden account that signs in', async () => {
    await world.person('svc_bot');
    const headers = { authorization: basic('svc_bot', PASSWORD) };
    for (const method of ['POST', 'GET', 'DELETE'])
      expect(await statusOf(method, '/api/me/enrollment', headers)).toBe(404);
  });
});

describe('GET /api/users/{id}/enrollment/package', () => {
  it('brings a phone the CA and the connection, and no secret', async () => {
    const key = keyOf(await issue());
    for (const [query, app, pref] of [
      ['', 'atak', 'certs/config.pref'],
      ['?app=atak', 'atak', 'certs/config.pref'],
      ['?app=itak', 'itak', 'config.pref'],
    ] as const) {
      const answer = await world.ask('GET', `${PATH()}/package${query}`);
      expect([
        answer.status,
        ...['content-type', 'content-disposition', 'cache-control'].map((name) => answer.headers.get(name)),
      ]).toEqual([200, 'application/zip', `attachment; filename="cot.example.org-${app}.zip"`, 'no-store']);
      const files = unzipSync(new Uint8Array(await answer.arrayBuffer()));
      const text = strFromU8(files[pref] ?? new Uint8Array());
      expect(text).toContain('cot.example.org:18089:ssl');
      expect(text).toMatch(/apiCertEnrollmentPort"[^>]*>18446</);
      expect(text).not.toContain(key);
      const trust = Object.keys(files).find((name) => name.endsWith('truststore.p12')) ?? '';
      expect(JSON.parse(strFromU8(files[trust] ?? new Uint8Array()))).toMatchObject({ chainPem: [expect.any(String)] });
    }
  });

  it('is 422 for another app', async () => {
    for (const app of ['wintak', 'ATAK', '']) expect(await statusOf('GET', `${PATH()}/package?app=${app}`)).toBe(422);
  });

  it('is for administrators and that person: to others 403, whether or not there is such a user', async () => {
    expect(await statusOf('GET', `${PATH()}/package`, ADA)).toBe(200);
    const webadmin = await world.named('webadmin');
    for (const headers of [ADA, VIEWER])
      for (const id of [webadmin.id, 999_999, 'x'])
        expect(await statusOf('GET', `/api/users/${id}/enrollment/package`, headers)).toBe(403);
  });
});
