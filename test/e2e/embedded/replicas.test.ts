// Two management processes over the same data and databases, behind the real Caddy: what holds in
// both, and what is left when one is killed in the middle of its work.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AuditVerdict } from '../../../shared/audit/port.ts';
import type { CertificateView } from '../../../shared/devices/certificates/view.ts';
import { type MailSink, mailSink, parseMail } from '../../alerts/fake-mail-sink.ts';
import { type TestPki, testPki } from '../../core/fake-test-pki.ts';
import { basic } from '../../http/fake-deps.ts';
import { type Caddy, caddyMissing, newCaddy } from './caddy.ts';
import { newPerson } from './core-client.ts';
import { asAdministrator } from './devices-api.ts';
import { eventually, newStack, query, type TestStack } from './embedded.ts';
import { askFrom, type AskOptions, type RequestOrigin } from './from-address.ts';
import { ask as askRaw } from './raw-request.ts';
import { type SecondManagement, startSecondManagement } from './second-management.ts';
import { addStoppedTable, isFullInTheMiddle, stopped } from './stopped-table.ts';

const LONG = { timeout: 120_000 };

let stack: TestStack;
let second: SecondManagement;
let sink: MailSink;
let pki: TestPki;
let caddy: Caddy;

const { ask, askAt, json, newUser } = asAdministrator(() => stack);
const state = <T extends object>(text: string): Promise<T[]> => query<T>(stack.file().state_database, text);
const apis = (): [string, string] => [stack.file().api, second.api];
const authorization = (): string => basic('webadmin', stack.file().webadmin.password);

const at = (api: string, path: string, options: AskOptions = {}, from = '127.0.0.1'): Promise<RequestOrigin> =>
  askFrom(from, `${api}${path}`, options);
const asAdmin = (api: string, path: string): Promise<RequestOrigin> =>
  at(api, path, { headers: { authorization: authorization() } });

interface Shown {
  status: string;
  message: string;
  updated_at: string;
}

async function healthAt(api: string): Promise<Record<string, Shown>> {
  const { text } = await asAdmin(api, '/api/health');
  return (JSON.parse(text) as { modules: Record<string, Shown> }).modules;
}

const mailsOf = (module: string): number =>
  sink.taken.filter(({ raw }) => parseMail(raw).headers.get('subject')?.includes(module)).length;

const viaCaddy = async (line: string, headers: string[] = []): Promise<number> =>
  (
    await askRaw({
      port: caddy.ports.https,
      ca: pki.ca.certificate,
      name: '',
      host: `127.0.0.1:${caddy.ports.https}`,
      line,
      headers: [`Authorization: ${authorization()}`, 'Cookie: holdfast_face=console', ...headers],
    })
  ).status;

async function startCaddy(): Promise<void> {
  pki = await testPki();
  const places = (urls: readonly string[]): string => urls.map((url) => new URL(url).host).join(' ');
  const env = {
    REPLICAS: 'several',
    MANAGEMENT: places(apis()),
    PORTAL: places([stack.file().portal, second.portal]),
    CORE: new URL(stack.file().core.enrollment).host,
  };
  caddy = await newCaddy({ mode: 'direct', serverAddress: '127.0.0.1', env });
  writeFileSync(join(caddy.certificates, 'ca.pem'), pki.ca.certificate);
  const { certificateFile, keyFile } = await pki.server('server-1', ['127.0.0.1']);
  writeFileSync(join(caddy.certificates, 'tls.caddy'), `tls ${certificateFile} ${keyFile}\n`);
  await caddy.start();
  await caddy.healthy();
}

describe.skipIf(caddyMissing !== undefined)(caddyMissing ?? 'two management processes', () => {
  beforeAll(async () => {
    sink = await mailSink();
    stack = await newStack();
    const env = {
      SMTP_URL: `smtp://127.0.0.1:${sink.port}`,
      ALERT_EMAIL_TO: 'duty@example.org',
      TRUSTED_PROXIES: '127.0.0.1',
      UPDATES_URL: 'off',
      MON_DISK_INTERVAL: '2',
      MON_DISK_WARNING: '100',
      MON_DISK_CRITICAL: '100',
      MON_AUTOVACUUM_INTERVAL: '1',
      MON_AUTOVACUUM_ALERT_AFTER_POLLS: '1',
      MON_USER_EXPIRY_CHECK_INTERVAL: '1',
    };
    expect(await stack.start([], { env })).toMatchObject({ code: 0 });
    await addStoppedTable(stack.file().database);
    second = await startSecondManagement(stack);
    await startCaddy();
  }, 120_000);
  afterAll(async () => {
    await caddy?.end();
    await sink?.close();
    if (pki !== undefined) rmSync(pki.directory, { recursive: true, force: true });
  });

  it('share sessions: one begins where it is used and ended elsewhere', async () => {
    const [one, two] = apis();
    const { username, password } = stack.file().webadmin;
    for (const [begun, other] of [
      [one, two],
      [two, one],
    ] as const) {
      const form = { username, password };
      const entered = await at(begun, '/sign-in', { method: 'POST', headers: { origin: begun }, form });
      const cookie = entered.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
      const statusAt = async (api: string): Promise<number> =>
        (await at(api, '/api/health', { headers: { cookie } })).status;
      expect([await statusAt(other), await statusAt(begun)]).toEqual([200, 200]);
      const out = await at(other, '/sign-out', { method: 'POST', headers: { cookie, origin: other }, form: {} });
      expect([out.status, await statusAt(other)]).toEqual([303, 401]);
      await eventually('it has ended where it began', async () => (await statusAt(begun)) === 401);
    }
  });

  it('deactivate a person for both', async () => {
    const [one, two] = apis();
    const password = 'a password of fifteen';
    const id = await newPerson(stack, 'rita', password);
    const statusAt = async (api: string): Promise<number> =>
      (await at(api, '/auth/verify', { headers: { authorization: basic('rita', password) } })).status;
    for (const api of [one, two])
      await eventually('she can sign in', async () => (await statusAt(api)) !== 401, 10_000);
    expect(await json('DELETE', `/api/users/${id}`)).toMatchObject({ is_active: false });
    for (const api of [one, two]) await eventually('she is out', async () => (await statusAt(api)) === 401);
  });

  it('count wrong passwords together, and release an address together', async () => {
    const [one, two] = apis();
    const from = '127.0.0.31';
    const tried = async (api: string, password: string): Promise<number> =>
      (await at(api, '/api/health', { headers: { authorization: basic('webadmin', password) } }, from)).status;
    const right = stack.file().webadmin.password;
    for (let count = 0; count < 5; count++)
      expect([await tried(one, `guess a${count}`), await tried(two, `guess b${count}`)]).toEqual([401, 401]);
    for (const api of [one, two]) await eventually('it is locked', async () => (await tried(api, right)) === 429);
    expect(
      (await at(two, `/api/lockouts/${from}`, { method: 'DELETE', headers: { authorization: authorization() } }))
        .status,
    ).toBe(204);
    for (const api of [one, two]) await eventually('it is free', async () => (await tried(api, right)) === 200);
  });

  it('run each due job once, one run of a job at a time', async () => {
    const due = `name = 'expire-users' AND finished_at IS NOT NULL`;
    const countOf = async (): Promise<number> => (await state<object>(`SELECT FROM job_run WHERE ${due}`)).length;
    const before = await countOf();
    await eventually('ten more runs', async () => (await countOf()) >= before + 10, 60_000);
    const wrong = await state(
      `SELECT a.name, a.due_at FROM job_run a
       WHERE a.attempt > 1 OR EXISTS (
         SELECT FROM job_run b WHERE b.name = a.name AND b.due_at <> a.due_at
           AND b.claimed_at < coalesce(a.finished_at, now()) AND a.claimed_at < coalesce(b.finished_at, now()))`,
    );
    expect(wrong).toEqual([]);
  });

  it('show the same health, and tell of a problem once', async () => {
    const [one, two] = apis();
    await query(
      stack.file().database,
      `CREATE TABLE rows_dead (n int) WITH (autovacuum_vacuum_threshold = 1000000000, autovacuum_vacuum_insert_threshold = -1);
       INSERT INTO rows_dead SELECT generate_series(1, 20000);
       DELETE FROM rows_dead WHERE n <= 2000`,
    );
    await eventually('the mail', () => mailsOf('autovacuum') > 0, 60_000);
    for (const api of [one, two])
      await eventually('both show it', async () => (await healthAt(api))['autovacuum']?.status === 'warning', 10_000);
    for (let polls = 0; polls < 3; polls++) {
      const last = (await healthAt(two))['autovacuum']?.updated_at;
      await eventually(
        'another measurement',
        async () => (await healthAt(two))['autovacuum']?.updated_at !== last,
        30_000,
      );
    }
    expect(mailsOf('autovacuum')).toBe(1);
    // Both look at the same measurements, each when it gets round to it.
    // The disk is each one's own, and what is measured each second may not be caught twice.
    const names = Object.keys(await healthAt(one)).filter((name) => !['autovacuum', 'disk'].includes(name));
    for (const name of names) {
      const [here, there] = [new Set<string>(), new Set<string>()];
      const isShared = async (): Promise<boolean> => {
        here.add(String((await healthAt(one))[name]?.updated_at));
        there.add(String((await healthAt(two))[name]?.updated_at));
        return [...here].some((each) => there.has(each));
      };
      await eventually(`a measurement of ${name} is shown by both`, isShared, 90_000);
    }
  });

  it('lose and repeat nothing when one is killed in the middle of a vacuum, and fail no GET', LONG, async () => {
    const { database } = stack.file();
    const { letGo } = await stopped(database);
    const own = stack.pid('management');
    // So that the other one runs the job.
    process.kill(own, 'SIGSTOP');
    let id: string;
    try {
      const order = { mode: 'full', tables: ['stopped'] };
      const { status, text } = await at(second.api, '/api/ops/database/vacuum', {
        method: 'POST',
        headers: { authorization: authorization() },
        json: order,
      });
      expect([status, text]).toEqual([202, expect.any(String)]);
      ({ id } = JSON.parse(text) as { id: string });
      await eventually('FULL is in the middle', () => isFullInTheMiddle(database), 30_000);
    } finally {
      process.kill(own, 'SIGCONT');
    }
    expect(await json('GET', `/api/ops/jobs/${id}`)).toMatchObject({ state: 'running' });
    await eventually('both are in use', async () => (await viaCaddy('GET /api/ping')) === 200, 10_000);

    const statuses: number[] = [];
    let isOver = false;
    const browse = async (): Promise<void> => {
      while (!isOver)
        for (const path of ['/sign-in', '/api/health', `/api/ops/jobs/${id}`])
          statuses.push(await viaCaddy(`GET ${path}`));
    };
    const browsers = Array.from({ length: 4 }, browse);
    await eventually('some requests', () => statuses.length >= 20, 20_000);
    await second.kill();
    const killedAt = statuses.length;
    await eventually('many more requests', () => statuses.length >= killedAt + 60, 20_000);
    isOver = true;
    await Promise.all(browsers);
    expect(statuses.filter((status) => status !== 200)).toEqual([]);

    await letGo();
    interface Job {
      state: string;
      log: string[];
      result: unknown;
    }
    let job: Job | undefined;
    await eventually(
      'the job has ended',
      async () => {
        job = await json<Job>('GET', `/api/ops/jobs/${id}`);
        return job.state !== 'running';
      },
      60_000,
    );
    expect(job).toMatchObject({ state: 'succeeded', result: { tables: [{ table: 'stopped', state: 'done' }] } });
    expect(job?.log.filter((line) => line.includes('VACUUM FULL started'))).toHaveLength(1);
    const path = `/api/audit?action=database.vacuum&target=${id}`;
    const rows = async (): Promise<unknown[]> => (await json<{ results: { phase: string }[] }>('GET', path)).results;
    await eventually('its intent is answered', async () => (await rows()).length > 1, 20_000);
    expect(await rows()).toMatchObject([{ phase: 'outcome', result: 'ok' }, { phase: 'intent' }]);
    expect(await query(database, 'SELECT count(*)::int AS count FROM stopped')).toEqual([{ count: 100 }]);
  });

  it('issue and revoke each certificate once when one is killed in the middle', LONG, async () => {
    second = await startSecondManagement(stack);
    const { id } = await newUser('carla');
    const names = Array.from({ length: 24 }, (_, count) => `phone-${count}`);
    const issued: string[] = [];
    let killed: Promise<void> | undefined;
    await Promise.allSettled(
      names.map(async (name, count) => {
        const response = await askAt(apis()[count % 2]!, 'POST', '/api/ops/certs', { username: 'carla', name });
        if (response.status === 201 && issued.push(name) === 6) killed = second.kill();
      }),
    );
    await killed;
    expect(issued.length).toBeLessThan(names.length);
    const known = async (): Promise<CertificateView[]> =>
      (await json<{ results: CertificateView[] }>('GET', '/api/ops/certs?username=carla&page_size=100')).results;
    expect((await known()).map(({ name }) => name)).toEqual(expect.arrayContaining(issued));
    for (const name of names) {
      const { status } = await ask('POST', '/api/ops/certs', { username: 'carla', name });
      expect([201, 409]).toContain(status);
      expect(issued.includes(name) ? status : 409).toBe(409);
    }
    expect(await known()).toHaveLength(names.length);
    expect((await known()).map(({ name }) => name)).toEqual(expect.arrayContaining(names));

    second = await startSecondManagement(stack);
    const deactivated = askAt(second.api, 'DELETE', `/api/users/${id}`).catch(() => undefined);
    const isRevoking = async (): Promise<boolean> => (await known()).some(({ state }) => state !== 'active');
    await eventually('the first is being revoked', isRevoking, 20_000);
    await second.kill();
    await deactivated;
    await eventually('all are revoked', async () => (await known()).every((each) => each.state === 'revoked'), 60_000);
    const { serials } = await json<{ serials: string[] }>('GET', '/api/ops/certs/crl');
    expect(serials).toEqual(expect.arrayContaining((await known()).map(({ serial }) => serial)));
    expect(new Set(serials).size).toBe(serials.length);
  });

  it('write one unbroken audit log together', async () => {
    second = await startSecondManagement(stack);
    await Promise.all(
      Array.from({ length: 20 }, (_, count) =>
        at(apis()[count % 2] ?? '', '/api/users', {
          method: 'POST',
          headers: { authorization: authorization() },
          json: { username: `both-${count}`, name: `both-${count}` },
        }),
      ),
    );
    for (const api of apis()) {
      const { text } = await asAdmin(api, '/api/audit/verify');
      expect(JSON.parse(text) as AuditVerdict).toMatchObject({ ok: true, first_broken: null });
    }
    const { results } = await json<{ results: { phase: string }[] }>(
      'GET',
      '/api/audit?action=user.create&page_size=100',
    );
    expect(results.filter(({ phase }) => phase === 'outcome').length).toBeGreaterThanOrEqual(20);
  });

  it('both show a full disk of one, send one mail, and recover when that one is gone', LONG, async () => {
    await second.kill();
    second = await startSecondManagement(stack, { MON_DISK_WARNING: '1', MON_DISK_CRITICAL: '1' });
    const diskAt = async (api: string): Promise<string> => (await healthAt(api))['disk']?.message ?? '';
    for (const api of apis())
      await eventually(
        'the full disk',
        async () => (await diskAt(api)).startsWith(`${hostname()} (process 2): /`),
        30_000,
      );
    await eventually('the mail', () => mailsOf('disk') > 0, 20_000);
    for (const end = Date.now() + 6_000; Date.now() < end;)
      for (const api of apis()) expect((await healthAt(api))['disk']).toMatchObject({ status: 'critical' });
    expect(await json('GET', '/api/alerts?module=disk')).toMatchObject({ count: 1 });
    await second.kill();
    const [left] = apis();
    await eventually('it recovers', async () => (await healthAt(left))['disk']?.status === 'ok', 60_000);
    expect(await diskAt(left)).not.toContain(hostname());
    expect(mailsOf('disk')).toBe(1);
    const recovered = /"event":"alert.recovered".*"module":"disk"/;
    const log = join(stack.data, 'logs/management.log');
    await eventually('it is logged', () => recovered.test(readFileSync(log, 'utf8')), 10_000);
  });
});
