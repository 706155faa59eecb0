// The same requests and jobs on Node and in workerd (npm run dev:workerd), beside one running stack: the same answers.

import { isDeepStrictEqual } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { HEALTH_MODULES } from '../../shared/health/modules/index.ts';
import { type MailSink, mailSink } from '../alerts/fake-mail-sink.ts';
import { eventually, lives, query } from '../e2e/embedded/embedded.ts';
import { basic } from '../http/fake-deps.ts';
import { childrenOf, listeningPorts } from '../runtime/child-processes.ts';
import { READER, twoHosts } from '../runtime/two-hosts.ts';
import { parseOpenMetrics } from './fake-open-metrics-parser.ts';

const MODULES = HEALTH_MODULES.map(({ name }) => name);

let sink: MailSink;
const { stack, apis, worker, startWorker, endWorker, admin, ask, both, measured } = twoHosts(async () => {
  sink = await mailSink();
  return { SMTP_URL: `smtp://127.0.0.1:${sink.port}`, ALERT_EMAIL_TO: 'duty@example.org' };
});
afterAll(() => sink.close());

describe('Node and workerd give the same answer', () => {
  it.each([
    ['GET', '/api/ping', 200],
    ['HEAD', '/api/ping', 200],
    ['GET', '/api/health', 401],
    ['GET', '/api/nothing', 401],
    ['POST', '/api/health', 401],
    ['GET', '/metrics', 401],
    ['GET', '/nothing', 404],
    ['GET', '/', 303],
    ['GET', '/sign-in?return_to=/api/docs', 200],
    ['GET', '/sign-in/style.css', 200],
    ['POST', '/sign-in', 401],
    ['POST', '/sign-out', 303],
  ])('to nobody: %s %s is %d', async (method, path, status) =>
    expect((await both(path, { method })).status).toBe(status),
  );

  it.each([
    ['a wrong password', basic('webadmin', 'wrong'), 401],
    ['a wrong token', 'Bearer wrong', 401],
    ['no Base64', 'Basic %%%', 400],
  ])('to %s', async (_, authorization, status) =>
    expect((await both('/api/health', { headers: { authorization } })).status).toBe(status),
  );

  it.each([
    ['/api/health', 200],
    ['/api/health?view=status', 200],
    ['/api/health?view=all', 422],
    ['/api/health/nothing', 404],
    ['/api/health__proto__', 404],
    ['/api/openapi.json', 403],
    ['/api/docs', 403],
    ['/auth/verify', 403],
    ['/auth/verify?base=core', 200],
    ['/auth/verify?role=root', 400],
    ['/metrics', 200],
    ['/api/alerts', 200],
    ['/api/alerts?state=sent&page=2&page_size=1', 200],
    ['/api/alerts?format=csv', 200],
    ['/api/alerts?level=ok', 422],
    ['/api/settings', 403],
    ['/api/audit', 403],
    ['/api/audit/verify', 403],
    ['/api/users', 403],
    ['/api/groups', 403],
    ['/api/me', 403],
    ['/api/logs', 403],
    ...MODULES.map((module): [string, number] => [`/api/health/${module}`, 200]),
  ])('to a reader: %s is %d', async (path, status) =>
    expect((await both(path, { headers: READER })).status).toBe(status),
  );

  it.each([
    ['/api/openapi.json', 200],
    ['/api/docs', 200],
    ['/api/docs/swagger-ui.css', 200],
    ['/api/docs/start.js', 200],
    ['/api/docs/../../package.json', 404],
    ['/auth/verify?role=admin', 200],
    ['/api/lockouts', 200],
    ['/api/me', 200],
    ['/api/sessions', 200],
    ['/api/tokens', 200],
    ['/api/users', 200],
    ['/api/users?include=hidden&page=2&page_size=2', 200],
    ['/api/users?search=web', 200],
    ['/api/users?page=0', 422],
    ['/api/users/abc', 404],
    ['/api/groups', 200],
    ['/api/groups/abc', 404],
    ['/api/settings', 200],
    ['/api/logs', 200],
    ['/api/logs?name=database&tail=1', 200],
    ['/api/logs?name=nothing', 404],
    ['/api/audit?target=nothing', 200],
    ['/api/audit?page=0', 422],
    ['/api/logs?name=database&tail=0', 422],
  ])('to an administrator: %s is %d', async (path, status) =>
    expect((await both(path, { headers: admin() })).status).toBe(status),
  );

  it.each([
    ['a test of a channel that is set up', {}, '{"channel":"email"}', 200],
    ['a test of one that is not', {}, '{"channel":"sms"}', 409],
    ['a channel that does not exist', {}, '{"channel":"pigeon"}', 422],
    ['no JSON', {}, '{"channel"', 400],
    ['another type', { 'content-type': 'text/plain' }, '{"channel":"email"}', 415],
    ['another site', { origin: 'https://evil.example' }, '{"channel":"email"}', 403],
    ['too much', {}, JSON.stringify({ channel: 'x'.repeat(1_100_000) }), 413],
  ])('to %s', async (_, headers, body, status) => {
    const all = { 'content-type': 'application/json', ...admin(), ...headers };
    expect((await both('/api/ops/alerts/test', { method: 'POST', headers: all, body })).status).toBe(status);
  });

  it('to a wish for a token of the core', async () => {
    const { username, password } = stack().file().webadmin;
    const request = async (api: string, init: RequestInit): Promise<unknown> => {
      const { status, headers, text } = await fetch(`${api}/oauth/token`, { method: 'POST', ...init }).then(
        async (answer) => ({ status: answer.status, headers: answer.headers, text: await answer.text() }),
      );
      const cookie = headers.get('set-cookie')?.replace(/=[^;]+/, '=…');
      const members = JSON.parse(text) as Record<string, unknown>;
      return [status, members['error'] ?? Object.keys(members).toSorted(), cookie, headers.get('content-type')];
    };
    for (const [form, headers, status] of [
      [{ grant_type: 'password', username, password }, {}, 200],
      [{ grant_type: 'password', username, password: 'wrong' }, {}, 401],
      [{ grant_type: 'refresh_token', username, password }, {}, 400],
      [{ username, password }, {}, 400],
      [{ grant_type: 'password', username, password }, { origin: 'https://evil.example' }, 403],
    ] as const) {
      const init = { headers, body: new URLSearchParams(form) };
      const [node, workerd] = await Promise.all(apis().map((api) => request(api, init)));
      expect(workerd).toEqual(node);
      expect(node).toEqual([
        status,
        expect.anything(),
        status === 200 ? expect.anything() : undefined,
        expect.anything(),
      ]);
    }
  });

  it('and both send it, one by the other', () => expect(sink.taken).toHaveLength(2));

  it('to what is done to people and channels, each at its own', async () => {
    const tell = async (api: string, name: string): Promise<unknown[]> => {
      const answers: unknown[] = [];
      const step = async (method: string, path: string, body?: unknown): Promise<{ id: string }> => {
        const headers = { 'content-type': 'application/json', ...admin() };
        const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
        const { status, body: answer } = await ask(api, path, init);
        answers.push([method, status, answer]);
        return answer as { id: string };
      };
      const { id: channel } = await step('POST', '/api/groups', { name: `${name}-blue` });
      const { id } = await step('POST', '/api/users', { username: name, name: 'Ada', groups: [`${name}-blue`] });
      await step('POST', '/api/users', { username: name.toUpperCase(), name: 'Other' });
      await step('POST', '/api/users', { username: 'svc_x', groups: ['gone'] });
      await step('PATCH', `/api/users/${id}`, { role: 'viewer', expires_at: '2031-01-01T00:00:00+02:00' });
      await step('POST', `/api/users/${id}/password`, { password: 'a password of its own' });
      await step('PUT', `/api/users/${id}/groups`, { groups: [] });
      await step('GET', `/api/groups/${channel}`);
      await step('DELETE', `/api/groups/${channel}`);
      await step('DELETE', `/api/users/${id}`);
      await step('PATCH', `/api/users/${(await step('GET', '/api/me')).id}`, { role: 'none' });
      await step('POST', '/api/me/password', { current_password: 'wrong', password: 'a password of its own' });
      return answers;
    };
    const [node, workerd] = await Promise.all(apis().map((api, at) => tell(api, ['on-node', 'on-workerd'][at] ?? '')));
    const same = (reported: unknown, name: string): string =>
      JSON.stringify(reported)
        .replaceAll(new RegExp(name, 'gi'), 'NAME')
        .replaceAll(/"(id|created_at)":("[^"]*"|\d+)/g, '"$1"');
    expect(same(workerd, 'on-workerd')).toBe(same(node, 'on-node'));
    expect(node?.map((each) => (each as unknown[])[1])).toEqual([
      201, 201, 409, 422, 200, 204, 200, 200, 204, 200, 200, 409, 401,
    ]);
  });

  it('to the entity tag of what is known: 304 without a body', async () => {
    for (const api of apis())
      for (const path of ['/api/health', '/api/health/dns']) {
        const etag = (await fetch(`${api}${path}`, { headers: READER })).headers.get('etag') ?? '';
        const again = await fetch(`${api}${path}`, { headers: { ...READER, 'if-none-match': etag } });
        expect([path, again.status, await again.text()]).toEqual([path, 304, '']);
      }
  });

  it('about a table with 1,000 dead rows and 1,000 live ones', async () => {
    await query(
      stack().file().database,
      `CREATE TABLE rows_dead (n int) WITH (autovacuum_vacuum_threshold = 1000000000, autovacuum_vacuum_insert_threshold = -1);
       INSERT INTO rows_dead SELECT generate_series(1, 2000)`,
    );
    await query(stack().file().database, 'DELETE FROM rows_dead WHERE n > 1000');
    const { body } = await both('/api/health/autovacuum', { headers: READER });
    const tables = expect.arrayContaining([expect.objectContaining({ table: 'rows_dead', dead_pct: 50 })]);
    expect(body).toMatchObject({ status: 'critical', tables });
    await query(stack().file().database, 'DROP TABLE rows_dead');
  });
});

describe('a sign-in at one of them', () => {
  it('counts at the other, until it ends at either', async () => {
    const [node, workerApi] = apis();
    const body = new URLSearchParams(stack().file().webadmin);
    const entered = await fetch(`${workerApi}/sign-in`, { method: 'POST', body, redirect: 'manual' });
    const cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? '';
    expect([entered.status, cookie]).toEqual([303, expect.stringMatching(/^holdfast=./)]);
    // The overview of each shows what was measured there.
    expect((await both('/more', { headers: { cookie } })).status).toBe(200);
    const headers = { cookie, 'content-type': 'application/json' };
    const wanted = { name: 'parity', scope: 'admin', expires_at: new Date(Date.now() + 3_600_000).toISOString() };
    const made = await fetch(`${workerApi}/api/tokens`, { method: 'POST', headers, body: JSON.stringify(wanted) });
    const { id, token } = (await made.json()) as { id: string; token: string };
    const bearer = { authorization: `Bearer ${token}` };
    for (const path of ['/api/tokens', '/api/logs'])
      expect([path, (await both(path, { headers: bearer })).status]).toEqual([path, 200]);

    const statusOf = async (api: string, path: string, proof: Record<string, string>): Promise<number> =>
      (await fetch(api + path, { headers: proof })).status;
    expect((await fetch(`${node}/api/tokens/${id}`, { method: 'DELETE', headers: { cookie } })).status).toBe(204);
    expect(await statusOf(node, '/api/logs', bearer)).toBe(401);
    await expect.poll(() => statusOf(workerApi, '/api/logs', bearer)).toBe(401);
    expect((await fetch(`${workerApi}/api/sessions`, { method: 'DELETE', headers: { cookie } })).status).toBe(204);
    expect(await statusOf(workerApi, '/api/sessions', { cookie })).toBe(401);
    await expect.poll(() => statusOf(node, '/api/sessions', { cookie })).toBe(401);
  });
});

describe('the worker', () => {
  it('runs the jobs: every module was measured by its cron', async () => {
    expect(await measured()).toEqual(MODULES.map(() => true));
  });

  it('counts its jobs and its requests, as its host remembers them', async () => {
    const scrape = async (): Promise<ReturnType<typeof parseOpenMetrics>> =>
      parseOpenMetrics(await (await fetch(`${apis()[1]}/metrics`, { headers: READER })).text());
    await scrape();
    const metrics = await scrape();
    const value = (family: string, labels: object): number =>
      metrics.get(family)?.samples.find((each) => isDeepStrictEqual(each.labels, labels))?.value ?? 0;
    expect(value('holdfast_job_runs', { name: 'poll-health' })).toBeGreaterThan(0);
    expect(value('holdfast_job_interval_seconds', { name: 'poll-health' })).toBe(60);
    expect(value('holdfast_job_interval_seconds', { name: 'keep-service-certificates' })).toBe(300);
    expect(value('holdfast_job_interval_seconds', { name: 'prune-job-runs' })).toBe(3600);
    expect(value('holdfast_job_last_seen_timestamp_seconds', { name: 'prune-job-runs' })).toBeGreaterThan(1e9);
    expect(value('holdfast_http_requests', { method: 'GET', status: '200' })).toBeGreaterThan(0);
    expect(value('process_resident_memory_bytes', {})).toBeGreaterThan(20e6);
  });

  it('claims a job by a row, as a runner of its own', async () => {
    const rows = async (text: string): Promise<{ runner: string }[]> => query(stack().file().state_database, text);
    const one = "SELECT runner FROM job_run WHERE name = 'prune-job-runs'";
    const [{ runner: node } = { runner: '' }] = await rows(one);
    let runner = node;
    for (let tries = 0; tries < 4 && runner === node; tries++) {
      await endWorker();
      await rows('DELETE FROM job_run');
      await startWorker();
      await eventually(
        'somebody ran it',
        async () => (await rows(`${one} AND finished_at IS NOT NULL`)).length === 1,
        60_000,
      );
      runner = (await rows(one))[0]?.runner ?? '';
    }
    expect(runner).not.toBe(node);
  });

  it('takes no request that does not come by its host, whatever it claims', async () => {
    const ports = listeningPorts(worker().pid ?? 0);
    expect(ports.length).toBeGreaterThan(0);
    for (const port of ports) {
      const connection = JSON.stringify({ requestId: 'x', clientAddress: '127.0.0.1', secure: true });
      const forged = { ...admin(), 'x-holdfast-host': 'guess', 'x-holdfast-connection': connection };
      const answer = await fetch(`http://127.0.0.1:${port}/api/settings`, { headers: forged }).catch(() => undefined);
      expect([port, answer?.ok ?? false]).toEqual([port, false]);
    }
  });

  it('says the same as Node while the database is away, and recovers with it', async () => {
    process.kill(stack().pid('supervisor'), 'SIGSTOP');
    try {
      process.kill(stack().pid('database'), 'SIGINT');
      await eventually('it is away', async () => !lives(stack().pid('database')), 10_000);
      for (const module of ['database', 'autovacuum', 'time']) {
        const { body } = await both(`/api/health/${module}`, { headers: READER });
        expect(body).toMatchObject({ status: 'critical' });
      }
    } finally {
      process.kill(stack().pid('supervisor'), 'SIGCONT');
    }
    await eventually(
      'both are well',
      async () => {
        const answers = await Promise.all(
          apis().map(
            async (api) =>
              ((await (await fetch(`${api}/api/health/database`, { headers: READER })).json()) as { status: string })
                .status,
          ),
        );
        return answers.every((status) => status === 'ok');
      },
      60_000,
    );
  });

  it('leaves no process behind when its host is killed', async () => {
    const children = childrenOf(worker().pid ?? 0);
    expect(children.length).toBeGreaterThan(0);
    await endWorker('SIGKILL');
    await eventually('they are gone', () => children.every((pid) => !lives(pid)));
  });
});
