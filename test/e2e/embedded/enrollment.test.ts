// Enrollment on a running stack: what is issued opens 8446 for as long as it should, and the
// diagnosis says what is the matter.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unzipSync } from 'fflate';
import { beforeAll, describe, expect, it } from 'vitest';
import { DAY_MS } from '@holdfast/kit/time';
import { basic } from '../../http/fake-deps.ts';
import { coreOf, enroll, workDirectory } from './core-client.ts';
import { newStack, query, secretsOf, type TestStack } from './embedded.ts';
import { RUN, stands } from './running-stack.ts';

const PASSWORD = 'a password of hers 7';
/** Two days: beyond the day that the provider gives app passwords. */
const TTL_MINUTES = 2880;
const [ADA, TEAM] = [`ada${RUN}`, `Team${RUN}`];

let stack: TestStack;
let id: number;

interface Issued {
  url: string;
  expires_at: string;
  ca_fingerprint: string;
}
interface Diagnosis {
  state: string;
  stage: string | null;
  reason: string | null;
  remedy: string | null;
  checks: { stage: string; ok: boolean; detail: string }[];
  notes: string[];
  attempts: { client_uid: string; result: string; reason: string; address: string }[] | null;
}

async function ask(method: string, path: string, body?: unknown, authorization?: string): Promise<Response> {
  const { username, password } = stack.file().webadmin;
  const headers = {
    authorization: authorization ?? basic(username, password),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  return fetch(`${stack.file().api}${path}`, { method, headers, ...sent });
}
async function json<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await ask(method, path, body);
  const text = await answer.text();
  expect([method, path, answer.ok, answer.ok ? '' : text]).toEqual([method, path, true, '']);
  return JSON.parse(text) as T;
}
const issue = (): Promise<Issued> => json('POST', `/api/users/${id}/enrollment`);
const diagnose = (): Promise<Diagnosis> => json('GET', `/api/users/${id}/enrollment`);
const keyOf = ({ url }: Issued): string => new URL(url).searchParams.get('token') ?? '';

describe('enrollment on a running stack', () => {
  beforeAll(async () => {
    stack = await newStack();
    const { code, output } = await stack.start([], { env: { ENROLLMENT_TTL_MINUTES: String(TTL_MINUTES) } });
    expect([code, output]).toEqual([0, expect.anything()]);
    await json('POST', '/api/groups', { name: TEAM });
    ({ id } = await json<{ id: number }>('POST', '/api/users', { username: ADA, name: 'Ada', groups: [TEAM] }));
    expect((await ask('POST', `/api/users/${id}/password`, { password: PASSWORD })).status).toBe(204);
  });

  // The diagnosis asks the DNS of the world, which not every stack of the tests has.
  it.skipIf(stands)('says that there is none before one is issued', async () => {
    expect(await diagnose()).toMatchObject({ state: 'none', stage: 'token', attempts: [] });
  });

  it('lives longer than a day where the settings say so: the ceiling of the account is raised first', async () => {
    const { expires_at } = await issue();
    const lifetime = Date.parse(expires_at) - Date.now();
    expect(lifetime).toBeGreaterThan(2 * DAY_MS - 60_000);
    expect(lifetime).toBeLessThanOrEqual(2 * DAY_MS);
    const answer = await fetch(`http://127.0.0.1:${9000 + stack.offset}/api/v3/core/users/${id}/`, {
      headers: { authorization: `Bearer ${secretsOf(stack)['IDENTITY_TOKEN']}` },
    });
    const { attributes } = (await answer.json()) as { attributes: Record<string, string> };
    const raised = /^minutes=(\d+)$/.exec(attributes['goauthentik.io/user/token-maximum-lifetime'] ?? '');
    expect(Number(raised?.[1])).toBeGreaterThanOrEqual(TTL_MINUTES);
  });

  it.skipIf(stands)(
    'would work now, says the diagnosis, and a phone enrolls with it; both attempts are told',
    async () => {
      const issued = await issue();
      const core = coreOf(stack);
      const before = await diagnose();
      expect([before.stage, before.reason, before.state]).toEqual([null, null, 'valid']);
      expect(before.checks.every(({ ok }) => ok)).toBe(true);
      const note = expect.stringMatching(`port ${8446 + stack.offset} .*can.t contain a port`) as unknown;
      if (!stands) expect(before.notes).toEqual(expect.arrayContaining([note]));
      const place = workDirectory(stack);
      await enroll(core, place, ADA, keyOf(issued));
      await expect(enroll(core, place, ADA, 'something else')).rejects.toThrow();
      const { attempts } = await diagnose();
      expect(attempts?.map(({ result, reason }) => [result, reason])).toEqual([
        ['refused', expect.stringMatching(/refused the username or password/)],
        ['signed', ''],
      ]);
    },
  );

  it('opens no page and no API of ours', async () => {
    const own = basic(ADA, keyOf(await issue()));
    expect((await ask('GET', '/api/me', undefined, own)).status).toBe(401);
  });

  it.skipIf(stands)('is stale when the CA has changed, and is issued anew in one call', async () => {
    const old = await issue();
    await query(stack.file().state_database, "UPDATE enrollment_token SET ca_fingerprint = 'AA:BB'");
    expect(await diagnose()).toMatchObject({ state: 'stale', stage: 'token', remedy: expect.stringMatching(/POST/) });
    const fresh = await issue();
    expect([fresh.ca_fingerprint, keyOf(fresh) === keyOf(old)]).toEqual([old.ca_fingerprint, false]);
    expect(await diagnose()).toMatchObject({ state: 'valid', stage: null });
    const core = coreOf(stack);
    const place = workDirectory(stack);
    await expect(enroll(core, place, ADA, keyOf(old))).rejects.toThrow();
    await enroll(core, place, ADA, keyOf(fresh));
  });

  it('brings the CA of this core in the data package', async () => {
    for (const app of ['atak', 'itak']) {
      const answer = await ask(
        'GET',
        `/api/users/${id}/enrollment/package?app=${app}`,
        undefined,
        basic(ADA, PASSWORD),
      );
      expect(answer.status).toBe(200);
      const files = unzipSync(new Uint8Array(await answer.arrayBuffer()));
      const name = Object.keys(files).find((each) => each.endsWith('truststore.p12')) ?? '';
      const file = join(workDirectory(stack), `${app}.p12`);
      writeFileSync(file, files[name] ?? '');
      const options = ['pkcs12', '-legacy', '-in', file, '-passin', 'pass:atakatak', '-nokeys'];
      const shown = execFileSync('openssl', options, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
      const pem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/.exec(shown)?.[0] ?? '';
      const fingerprint = execFileSync('openssl', ['x509', '-noout', '-fingerprint', '-sha256'], {
        encoding: 'utf8',
        input: pem,
      });
      expect(fingerprint).toContain((await issue()).ca_fingerprint);
    }
  });

  it('ends with the user', async () => {
    const issued = await issue();
    expect((await ask('DELETE', `/api/users/${id}`)).status).toBe(200);
    expect((await ask('POST', `/api/users/${id}/enrollment`)).status).toBe(409);
    expect(await diagnose()).toMatchObject({ stage: 'account', reason: expect.stringMatching(/not active/) });
    const attempt = enroll(coreOf(stack), workDirectory(stack), ADA, keyOf(issued));
    await expect(attempt).rejects.toThrow();
  });
});
