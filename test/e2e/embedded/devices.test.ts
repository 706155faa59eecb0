// Enrollment on a running stack: the link lets a phone in, the diagnosis says why it does not, and
// the probe goes the same way.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { strFromU8, unzipSync } from 'fflate';
import { beforeAll, describe, expect, it } from 'vitest';
import { asDevice, coreOf, type CorePlace, enroll, sendRequest, signingRequest, workDirectory } from './core-client.ts';
import { asAdministrator, type User } from './devices-api.ts';
import { eventually, newStack, outcomeOf, run, secretsOf, stop, type TestStack } from './embedded.ts';
import { RUN, stands } from './running-stack.ts';
import { letIn } from './stream-device.ts';

/** Longer than the provider allows of itself: the ceiling of the account is raised first. */
const SETTINGS = { ENROLLMENT_TTL_MINUTES: '2880', UPDATES_URL: 'off', MON_PROBE_INTERVAL: '2' };

interface Enrollment {
  url: string;
  expires_at: string;
  ca_fingerprint: string;
  ca_certificate: string;
  qr_svg: string;
  formats: { atak: string; itak: string; takaware: string; package: string };
}

interface Diagnosis {
  state: string;
  reason: string | null;
  remedy: string | null;
  stage: string | null;
  checks: { stage: string; ok: boolean | null; detail: string }[];
  attempts: { address: string; client_uid: string; result: string; reason: string }[];
}

interface ProbeHealth {
  status: string;
  message: string;
  stages: { stage: string; ok: boolean }[];
}

/** One of this name, in this run. */
const one = (name: string): string => `${name}${RUN}`;
const GATEWAY = `svc_${one('gateway')}`;
let stack: TestStack;
let core: CorePlace;
let work: string;
const { ask, json, newUser, revoked } = asAdministrator(() => stack);
const enrollmentOf = ({ id }: Pick<User, 'id'>): string => `/api/users/${id}/enrollment`;
const tokenOf = ({ url }: Enrollment): string => new URL(url).searchParams.get('token') ?? '';
const diagnosisOf = (user: User): Promise<Diagnosis> => json<Diagnosis>('GET', enrollmentOf(user));

/** What the identity provider itself is told, past Holdfast. */
async function provider(method: string, path: string, body?: object): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${9000 + stack.offset}/api/v3${path}`, {
    method,
    headers: { authorization: `Bearer ${secretsOf(stack)['IDENTITY_TOKEN']}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  expect([path, answer.ok, answer.ok ? '' : text]).toEqual([path, true, '']);
  return text === '' ? undefined : JSON.parse(text);
}

beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start([], { env: SETTINGS })).code).toBe(0);
  core = coreOf(stack);
  work = workDirectory(stack);
});

describe('an enrollment', () => {
  it('lets a phone in with the token of its link, for as long as was set, and opens nothing of Holdfast', async () => {
    await json('POST', '/api/groups', { name: one('blue') });
    const ada = await newUser(one('ada'), { groups: [one('blue')] });
    const made = await json<Enrollment>('POST', enrollmentOf(ada));
    const link = new URL(made.url);
    expect([link.protocol, link.host, link.pathname]).toEqual(['tak:', 'com.atakmap.app', '/enroll']);
    expect([...link.searchParams.keys()]).toEqual(['host', 'username', 'token']);
    const minutes = (Date.parse(made.expires_at) - Date.now()) / 60_000;
    expect([minutes > 2870, minutes < 2881]).toEqual([true, true]);
    expect(made.ca_certificate).toContain(readFileSync(stack.file().ca_certificate, 'utf8').split('\n')[1]);
    expect(made.qr_svg).toMatch(/^<svg /);
    expect((await json<Enrollment>('POST', enrollmentOf(ada))).url).toBe(made.url);

    const device = await enroll(core, work, one('ada'), tokenOf(made), `ANDROID-${one('ada')}`);
    expect((await asDevice(core, device, '/Marti/api/version')).status).toBe(200);
    const onStream = await letIn(core, device, one('Ada'));
    await onStream.isUpToDate();
    const clients = await json<{ results: { username: string }[] }>('GET', '/api/clients');
    expect(clients.results.filter(({ username }) => username === ada.username)).toMatchObject([
      { groups: [`core_${one('blue')}`] },
    ]);
    onStream.leave();
    const basic = `Basic ${Buffer.from(`${ada.username}:${tokenOf(made)}`).toString('base64')}`;
    expect((await ask('GET', '/api/me', undefined, basic)).status).toBe(401);
    expect(await diagnosisOf(ada)).toMatchObject({
      state: 'valid',
      // Where the tests have no DNS, the name of the stack is what is wrong.
      ...(stands ? {} : { reason: null }),
      attempts: [{ client_uid: `ANDROID-${one('ada')}`, result: 'signed' }],
    });
  });

  it('brings the CA and the address to the phone in a package, for ATAK and flat for iTAK', async () => {
    const bob = await newUser(one('bob'));
    const packageOf = async (app: string): Promise<string[]> => {
      const answer = await ask('GET', `${enrollmentOf(bob)}/package?app=${app}`);
      expect(answer.status).toBe(200);
      const files = unzipSync(new Uint8Array(await answer.arrayBuffer()));
      const preferences = Object.entries(files).find(([name]) => name.endsWith('.pref'))?.[1] ?? new Uint8Array();
      const place = stands ? />[^<>:]+:\d+:ssl</ : `127.0.0.1:${8089 + stack.offset}:ssl`;
      expect(strFromU8(preferences)).toMatch(place);
      return Object.keys(files);
    };
    expect(await packageOf('atak')).toContain('MANIFEST/manifest.xml');
    expect((await packageOf('itak')).filter((name) => name.includes('/'))).toEqual([]);
    expect((await ask('GET', `${enrollmentOf(bob)}/package?app=winamp`)).status).toBe(422);
  });

  it.skipIf(stands)(
    'that was taken back, is not there, or belongs to somebody deactivated says so in one sentence with its remedy',
    async () => {
      const carl = await newUser(one('carl'));
      expect(await diagnosisOf(carl)).toMatchObject({ state: 'none', stage: 'token' });
      const made = await json<Enrollment>('POST', enrollmentOf(carl));
      expect((await ask('DELETE', enrollmentOf(carl))).status).toBe(204);
      expect(await diagnosisOf(carl)).toMatchObject({ state: 'none', stage: 'token' });
      const { requestFile } = await signingRequest(work, one('carl'));
      expect((await sendRequest(core, one('carl'), tokenOf(made), requestFile, 'ANDROID-carl')).status).toBe(401);
      const refused = await diagnosisOf(carl);
      expect(refused.attempts).toMatchObject([{ result: 'refused', reason: expect.stringMatching(/\w/) }]);
      expect([typeof refused.reason, typeof refused.remedy]).toEqual(['string', 'string']);
      await json('DELETE', `/api/users/${carl.id}`);
      expect(await diagnosisOf(carl)).toMatchObject({ stage: 'account' });
      expect((await ask('POST', enrollmentOf(carl))).status).toBe(409);
    },
  );

  it('stops to work with its user: the certificate that came of it is revoked as well', async () => {
    const dora = await newUser(one('dora'));
    const made = await json<Enrollment>('POST', enrollmentOf(dora));
    const device = await enroll(core, work, one('dora'), tokenOf(made), `ANDROID-${one('dora')}`);
    await json('DELETE', `/api/users/${dora.id}`);
    await revoked(device.hash);
    expect((await asDevice(core, device, '/Marti/api/version')).status).toBe(0);
    const { requestFile } = await signingRequest(work, one('dora'), 'dora-again');
    expect((await sendRequest(core, one('dora'), tokenOf(made), requestFile, 'ANDROID-dora')).status).toBe(401);
  });
});

describe('a service account', () => {
  it('of the kind admin administers the core by its certificate, and stops to with it', async () => {
    const made = await json<{ id: number; username: string; certificate: { file: string } }>(
      'POST',
      '/api/service-accounts',
      { name: one('gateway'), kind: 'admin' },
    );
    expect([made.username, made.certificate.file]).toEqual([GATEWAY, `${GATEWAY}.p12`]);
    const bytes = await ask('GET', `/api/ops/certs/${GATEWAY}.p12/download?format=pem`);
    const file = join(work, 'gateway.pem');
    writeFileSync(file, Buffer.from(await bytes.arrayBuffer()), { mode: 0o600 });
    const own = { certificateFile: file, keyFile: file };
    expect((await asDevice(core, own, '/Marti/api/certadmin/cert')).status).toBe(200);
    expect(await json('DELETE', `/api/service-accounts/${made.id}`)).toMatchObject({ username: GATEWAY });
    await revoked(`${GATEWAY}.p12`);
    expect((await asDevice(core, own, '/Marti/api/version')).status).toBe(0);
  });

  it('of the stack itself has its certificate and cannot be taken away', async () => {
    interface Own {
      id: number;
      username: string;
      certificate: { state: string } | null;
    }
    const listed = async (): Promise<Own[]> =>
      (await json<{ results: Own[] }>('GET', '/api/service-accounts?page_size=200')).results.filter(({ username }) =>
        ['svc_api', 'svc_nodered', 'svc_probe'].includes(username),
      );
    const states = async () => (await listed()).map(({ username, certificate }) => [username, certificate?.state]);
    // A start does not wait for a slow core.
    await expect.poll(states, { timeout: 20_000 }).toEqual([
      ['svc_api', 'active'],
      ['svc_nodered', 'active'],
      ['svc_probe', 'active'],
    ]);
    for (const { id } of await listed()) expect((await ask('DELETE', `/api/service-accounts/${id}`)).status).toBe(409);
  });
});

describe('the probe', () => {
  const probe = (): Promise<ProbeHealth> => json<ProbeHealth>('GET', '/api/health/probe');

  it.skipIf(stands)(
    'goes the whole way, and turns critical when the directory loses its groups though every port answers',
    async () => {
      await eventually('the probe is well', async () => (await probe()).status === 'ok', 30_000);
      const { results } = (await provider('GET', '/core/groups/?name=core_holdfast_probe')) as {
        results: { pk: string }[];
      };
      await provider('DELETE', `/core/groups/${results[0]?.pk}/`);
      await eventually('the probe is critical', async () => (await probe()).status === 'critical', 30_000);
      expect(await probe()).toMatchObject({ message: expect.stringMatching(/^groups: .*shows no groups/) });
      expect(await json('GET', '/api/health/core')).toMatchObject({ status: 'ok' });
    },
  );
});

describe.skipIf(stands)('after a new CA', () => {
  it('outstanding tokens are stale, say so, and are made anew in one call', async () => {
    const fred = await newUser(one('fred'));
    const before = await json<Enrollment>('POST', enrollmentOf(fred));
    await stop(stack.data);
    expect((await outcomeOf(run('renew-ca.sh', ['--data', stack.data, '--new-key']))).code).toBe(0);
    expect((await stack.start([], { env: SETTINGS })).code).toBe(0);
    expect(await diagnosisOf(fred)).toMatchObject({ state: 'stale', stage: 'token' });
    const after = await json<Enrollment>('POST', enrollmentOf(fred));
    expect([after.url === before.url, after.ca_fingerprint === before.ca_fingerprint]).toEqual([false, false]);
    expect(await diagnosisOf(fred)).toMatchObject({ state: 'valid', reason: null });
    expect((await enroll(core, work, one('fred'), tokenOf(after))).hash).toMatch(/^[0-9A-F:]+$/);
    await eventually(
      'the probe is well with the new CA',
      async () => {
        return (await json<ProbeHealth>('GET', '/api/health/probe')).status === 'ok';
      },
      30_000,
    );
  });
});
