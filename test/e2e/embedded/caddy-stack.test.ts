// The real Caddy in front of a real stack: a phone enrolls through 8446 with the public CA alone,
// the lockout counts clients by their own addresses, the doors let in whom the directory knows.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { basic } from '../../http/fake-deps.ts';
import { ADDRESS, behindCaddy, type BehindCaddy, issued, proxyMissing } from './behind-caddy.ts';
import { coreOf, keptCertificate, newPerson, signingRequest, verdictOf, workDirectory } from './core-client.ts';
import { newDataDirectory, newStack, stop, type TestStack } from './embedded.ts';

const PASSWORD = 'a password of fifteen';
const FORM = 'Content-Type: application/x-www-form-urlencoded';
const CONFIG = 'GET /Marti/api/tls/config';

let stack: TestStack;
let proxy: BehindCaddy;

const signed = (username: string, password: string): string[] => [`Authorization: ${basic(username, password)}`];
const token = (password: string): string =>
  new URLSearchParams({ grant_type: 'password', username: 'ada', password }).toString();

describe.skipIf(proxyMissing !== undefined)(proxyMissing ?? 'a stack behind Caddy', () => {
  beforeAll(async () => {
    stack = await newStack();
    const env = { SERVER_ADDRESS: ADDRESS, TRUSTED_PROXIES: '127.0.0.1', UPDATES_URL: 'off' };
    expect(await stack.start([], { env })).toMatchObject({ code: 0 });
    await newPerson(stack, 'ada', PASSWORD);
    // As the core of the containers has them there.
    const certificates = join(stack.data, '..', 'certificates');
    mkdirSync(certificates);
    const files = join(stack.data, 'core/certs/files');
    writeFileSync(join(certificates, 'ca.pem'), readFileSync(join(files, 'ca.pem')));
    writeFileSync(join(certificates, 'tls.caddy'), 'tls /certificate/server-1.pem /certificate/server-1.key\n');
    const { api, portal, core } = stack.file();
    const upstreams = {
      MANAGEMENT: new URL(api).host,
      PORTAL: new URL(portal).host,
      CORE: new URL(core.enrollment).host,
      CORE_NAME: 'localhost',
    };
    proxy = await behindCaddy({ env: upstreams, certificateDirectory: certificates });
    await issued(proxy);
  });
  afterAll(async () => {
    await proxy?.end();
    await stop(stack.data);
  });

  it('enrolls a device at 8446 and at takserver, which trusts the public CA alone', async () => {
    const directory = workDirectory(stack);
    for (const endpoint of [{ enrollment: true }, { name: `takserver.${ADDRESS}` }]) {
      const { requestFile } = await signingRequest(directory, 'ada');
      const answer = await proxy.ask({
        ...endpoint,
        line: 'POST /Marti/api/tls/signClient/v2?clientUid=phone&version=3',
        headers: [...signed('ada', PASSWORD), 'Accept: application/json'],
        body: readFileSync(requestFile, 'utf8'),
      });
      expect(answer.status).toBe(200);
      const { certificateFile } = await keptCertificate(directory, 'ada', answer.body);
      expect(await verdictOf(coreOf(stack), certificateFile)).toBe('OK');
      const profile = await proxy.ask({
        ...endpoint,
        line: 'GET /Marti/api/tls/profile/enrollment',
        headers: signed('ada', PASSWORD),
      });
      expect(profile.status).toBe(200);
    }
  });

  it('leaves the refusal of a request without credentials to the core, which names no realm', async () => {
    for (const entry of [{ enrollment: true }, { name: `takserver.${ADDRESS}` }]) {
      const answer = await proxy.ask({ ...entry, line: CONFIG });
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, undefined]);
    }
  });

  it('gives a token of the core for a password, which opens the core by header and by cookie', async () => {
    const answer = await proxy.ask({
      enrollment: true,
      line: 'POST /oauth/token',
      headers: [FORM],
      body: token(PASSWORD),
    });
    expect(answer.status).toBe(200);
    const { access_token: given } = JSON.parse(answer.body) as { access_token: string };
    for (const headers of [[`Authorization: Bearer ${given}`], [`Cookie: holdfast=x; access_token_0=${given}`]])
      expect((await proxy.ask({ enrollment: true, line: CONFIG, headers })).status).toBe(200);
    const wrong = await proxy.ask({ enrollment: true, line: CONFIG, headers: ['Authorization: Bearer of-nobody'] });
    expect(wrong.status).toBe(401);
  });

  it('locks a client out of every door by its own address, and nobody else, whatever it writes into X-Forwarded-For', async () => {
    const [from, neighbour] = ['127.0.0.21', '127.0.0.22'];
    const lie = (count: number): string[] => [
      `X-Forwarded-For: 192.0.2.${count}, 127.0.0.${count + 100}`,
      'Forwarded: for=192.0.2.1',
    ];
    const statuses: number[] = [];
    for (let count = 1; count <= 5; count++) {
      const basicAttempt = { headers: [...signed('ada', `guess ${count}`), ...lie(count)], line: CONFIG };
      statuses.push((await proxy.ask({ enrollment: true, from, ...basicAttempt })).status);
      const formAttempt = { headers: [FORM, ...lie(count)], line: 'POST /oauth/token', body: token(`guess ${count}`) };
      statuses.push((await proxy.ask({ name: `takserver.${ADDRESS}`, from, ...formAttempt })).status);
    }
    expect(statuses).toEqual(Array.from({ length: 10 }, () => 401));
    const right = signed('ada', PASSWORD);
    const authenticator = [
      { enrollment: true, line: CONFIG, headers: [...right, ...lie(99)] },
      { name: `takserver.${ADDRESS}`, line: CONFIG, headers: right },
      { enrollment: true, line: 'POST /oauth/token', headers: [FORM], body: token(PASSWORD) },
      { name: `monitor.${ADDRESS}`, line: 'GET /api/health', headers: right },
      { name: `nodered.${ADDRESS}`, headers: right },
    ];
    for (const door of authenticator) {
      expect((await proxy.ask({ ...door, from })).status).toBe(429);
      expect((await proxy.ask({ ...door, from: neighbour })).status).not.toBe(429);
    }
    const { username, password } = stack.file().webadmin;
    const lockouts = await proxy.ask({ line: 'GET /api/lockouts', headers: signed(username, password) });
    expect(
      (JSON.parse(lockouts.body) as { results: { address: string }[] }).results.map(({ address }) => address),
    ).toEqual([from]);
    expect((await proxy.ask({ enrollment: true, from, line: CONFIG })).status).toBe(401);
  });

  it('opens the flow engine to administrators by name, and to nobody else', async () => {
    const { username, password } = stack.file().webadmin;
    const door = { name: `nodered.${ADDRESS}`, line: 'GET /flows' };
    expect((await proxy.ask({ ...door, headers: signed('ada', PASSWORD) })).status).toBe(403);
    expect((await proxy.ask(door)).status).toBe(401);
    const before = proxy.flows.arrived.length;
    expect((await proxy.ask({ ...door, headers: signed(username, password) })).status).toBe(200);
    expect(proxy.flows.arrived.length).toBe(before + 1);
    const headers = new Map(proxy.flows.arrived.at(-1)?.headers);
    expect(headers.get('remote-user')).toBe('webadmin');
    expect(headers.get('remote-groups')?.split(',')).toContain('core_ROLE_ADMIN');
  });

  it('has a session with a cookie for its host alone, which the core never sees', async () => {
    const { username, password } = stack.file().webadmin;
    const own = `https://${ADDRESS}:${proxy.caddy.ports.https}`;
    const body = new URLSearchParams({ username, password }).toString();
    const entered = await proxy.ask({ line: 'POST /sign-in', headers: [FORM, `Origin: ${own}`], body });
    const cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? '';
    expect(cookie).toMatch(/^__Host-holdfast=./);
    expect((await proxy.ask({ line: 'GET /api/health', headers: [`Cookie: ${cookie}`] })).status).toBe(200);
    expect((await proxy.ask({ enrollment: true, line: CONFIG, headers: [`Cookie: ${cookie}`] })).status).toBe(401);
  });

  it('is not reached when the core shows a certificate of another CA, or of another name', async () => {
    const { core } = stack.file();
    const another = newDataDirectory();
    for (const [place, env] of [
      [another, { CORE_NAME: 'localhost' }],
      [join(stack.data, '..', 'certificates'), { CORE_NAME: 'elsewhere' }],
    ] as const) {
      mkdirSync(place, { recursive: true });
      if (place === another) {
        writeFileSync(join(place, 'ca.pem'), proxy.ca);
        writeFileSync(join(place, 'tls.caddy'), 'tls /a.pem /a.key\n');
      }
      const wary = await behindCaddy({
        env: { CORE: new URL(core.enrollment).host, ...env },
        certificateDirectory: place,
      });
      try {
        await issued(wary);
        expect((await wary.ask({ enrollment: true, line: CONFIG })).status).toBe(502);
        await expect.poll(() => wary.caddy.log()).toMatch(/tls: failed to verify certificate/);
      } finally {
        await wary.end();
      }
    }
  });
});
