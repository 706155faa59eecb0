import { describe, expect, it } from 'vitest';
import { createApp } from '../../functions/app.ts';
import type { AuditRecord, AuditSubject } from '../../shared/audit/port.ts';
import type { Bindings } from '../../shared/http/context.ts';
import { problemSchema } from '../../shared/http/route.ts';
import { fakeTransport } from '../alerts/fake-alerts.ts';
import { ADMIN, basic, fakeDeps, NOBODY, PASSWORD, READER, VIEWER } from '../http/fake-deps.ts';

const CONNECTION: Bindings = { requestId: 'request-1', clientAddress: '192.0.2.7', secure: false };

function started() {
  const deps = fakeDeps();
  const app = createApp(deps);
  const ask = async (
    path: string,
    headers: Record<string, string> = ADMIN,
    init: RequestInit = {},
  ): Promise<Response> => app.request(path, { ...init, headers }, CONNECTION);
  /** What was entered, without the sign-ins that the doors judge. */
  const entered = () =>
    deps.audit.records.map(({ actor, address, action, target, result, detail }) => ({
      actor,
      address,
      action,
      target,
      result,
      detail: JSON.parse(detail) as unknown,
    }));
  return { deps, app, ask, entered };
}

const about = (change: Partial<AuditSubject> = {}): AuditSubject => ({
  actor: { username: 'webadmin', address: '192.0.2.9', requestId: 'request-0' },
  action: 'user.create',
  target: 'vera',
  ...change,
});

interface Page {
  results: (Omit<AuditRecord, 'detail'> & { detail: unknown })[];
  count: number;
  page: number;
  page_size: number;
}

describe('GET /api/audit', () => {
  it('shows administrators a page, newest first, with everything that a record has', async () => {
    const { deps, ask } = started();
    const intent = await deps.audit.intend(about(), { groups: ['core_Red'] });
    await deps.audit.conclude(intent, about(), { result: 'ok' });
    const response = await ask('/api/audit');
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const shared = {
      at: deps.now().toISOString(),
      actor: 'webadmin',
      address: '192.0.2.9',
      action: 'user.create',
      target: 'vera',
      request_id: 'request-0',
      hash: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    };
    expect(await response.json()).toEqual({
      results: [
        { ...shared, seq: 2, phase: 'outcome', result: 'ok', detail: {}, intent: 1 },
        { ...shared, seq: 1, phase: 'intent', result: null, detail: { groups: ['core_Red'] }, intent: null },
      ],
      count: 2,
      page: 1,
      page_size: 50,
    });
  });

  it('shows a detail that somebody has changed as it is', async () => {
    const { deps, ask } = started();
    await deps.audit.intend(about());
    for (const detail of ['{"half', '[1]', 'null', '']) {
      Object.assign(deps.audit.records[0] ?? {}, { detail });
      expect(((await (await ask('/api/audit')).json()) as Page).results[0]?.detail).toEqual({ text: detail });
    }
  });

  it('has pages, filters, and empty pages beyond the last', async () => {
    const { deps, ask } = started();
    for (let n = 0; n < 55; n += 1) await deps.audit.intend(about({ target: `t${n % 5}` }));
    await deps.audit.intend(about({ action: 'user.password.set', target: 'x & y' }));
    const found = async (query: string) => {
      const { results, count, page, page_size } = (await (await ask(`/api/audit${query}`)).json()) as Page;
      return [results.length, count, page, page_size];
    };
    expect(await found('?page=2')).toEqual([6, 56, 2, 50]);
    expect(await found('?page=9&page_size=10')).toEqual([0, 56, 9, 10]);
    expect(await found('?target=t3')).toEqual([11, 11, 1, 50]);
    expect(await found('?target=x%20%26%20y')).toEqual([1, 1, 1, 50]);
    expect(await found('?action=user')).toEqual([50, 56, 1, 50]);
    expect(await found('?action=user.password')).toEqual([1, 1, 1, 50]);
    expect(await found('?actor=nobody')).toEqual([0, 0, 1, 50]);
    expect(await found('?since=2999-01-01')).toEqual([0, 0, 1, 50]);
    expect(await found('?until=1999-01-01')).toEqual([0, 0, 1, 50]);
  });

  it.each([
    ['page', ['0', 'x', '']],
    ['page_size', ['0', '201']],
    ['format', ['xml', '']],
    ['since', ['yesterday', '']],
    ['until', ['2026-13-01']],
    ['actor', ['', 'x'.repeat(301)]],
    ['action', ['']],
    ['target', ['']],
  ])('refuses nonsense for %s', async (name, values) => {
    const { ask } = started();
    for (const value of values) {
      const response = await ask(`/api/audit?${name}=${encodeURIComponent(value)}`);
      expect([value, response.status]).toEqual([value, 422]);
      expect(problemSchema.parse(await response.json()).errors?.map(({ path }) => path)).toEqual([name]);
    }
  });

  it('gives all that match as CSV, harmless in a spreadsheet, or one page of it', async () => {
    const { deps, ask } = started();
    const actor = { username: '=cmd|calc', address: '192.0.2.9', requestId: 'r' };
    for (let n = 0; n < 60; n += 1) await deps.audit.intend(about({ actor, target: 'a,b' }), { text: '"quoted"' });
    const response = await ask('/api/audit?format=csv&target=a%2Cb');
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(response.headers.get('content-disposition')).toBe('attachment; filename=audit.csv');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('x-total-count')).toBe('60');
    const lines = (await response.text()).split('\r\n');
    expect(lines).toHaveLength(62);
    expect(lines[0]).toBe('seq,at,actor,address,action,target,phase,result,detail,intent,request_id,hash');
    expect(lines[1]).toMatch(
      /^60,[^,]+,'=cmd\|calc,192\.0\.2\.9,user\.create,"a,b",intent,,"\{""text"":""\\""quoted\\""""\}",,r,/,
    );
    expect((await (await ask('/api/audit?format=csv&page=2')).text()).split('\r\n')).toHaveLength(12);
  });

  it('is for administrators only', async () => {
    const { ask } = started();
    for (const path of ['/api/audit', '/api/audit/verify']) {
      for (const headers of [READER, VIEWER, NOBODY]) expect((await ask(path, headers)).status).toBe(403);
      expect((await ask(path, {})).status).toBe(401);
    }
  });
});

describe('GET /api/audit/verify', () => {
  it('says what became of the records', async () => {
    const { deps, ask } = started();
    await deps.audit.intend(about());
    const whole = await ask('/api/audit/verify');
    expect([whole.status, whole.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(await whole.json()).toEqual({ ok: true, records: 1, first_broken: null });
    deps.audit.verify = async () => ({ ok: false, records: 7, first_broken: 7 });
    expect(await (await ask('/api/audit/verify')).json()).toEqual({ ok: false, records: 7, first_broken: 7 });
  });
});

describe('what is denied', () => {
  it('is entered with who, from where, what and why, without its query', async () => {
    const { ask, entered } = started();
    expect((await ask('/api/settings?token=secret', VIEWER)).status).toBe(403);
    expect((await ask('/api/ops/alerts/test', READER, { method: 'POST' })).status).toBe(403);
    expect(entered()).toEqual([
      {
        actor: 'vera',
        address: '192.0.2.7',
        action: 'request.denied',
        target: 'GET /api/settings',
        result: 'denied',
        detail: { reason: 'This requires the role admin.' },
      },
      expect.objectContaining({ actor: 'metrics', action: 'request.denied', target: 'POST /api/ops/alerts/test' }),
    ]);
  });

  it('is entered when a page of another site caused it', async () => {
    const { ask, entered } = started();
    const headers = { ...ADMIN, 'sec-fetch-site': 'cross-site' };
    expect((await ask('/api/ops/alerts/test', headers, { method: 'POST' })).status).toBe(403);
    expect(entered()).toMatchObject([{ actor: 'webadmin', action: 'request.denied' }]);
  });

  it.each([
    ['a token', { authorization: 'Bearer nonsense' }, 'token'],
    ['a token in another case', { authorization: 'bearer nonsense' }, 'token'],
    ['a session', { cookie: 'holdfast=nonsense' }, 'session'],
  ])('is entered as a sign-in for %s that is not good, without it', async (_, headers, by) => {
    const { ask, entered } = started();
    expect((await ask('/api/settings', headers)).status).toBe(401);
    expect(entered()).toEqual([
      {
        actor: '',
        address: '192.0.2.7',
        action: 'sign-in',
        target: 'GET /api/settings',
        result: 'denied',
        detail: { by },
      },
    ]);
  });

  it('is entered once for a wrong password, by its door', async () => {
    const { ask, entered } = started();
    expect((await ask('/api/settings', { authorization: basic('vera', `${PASSWORD}x`) })).status).toBe(401);
    expect(entered()).toMatchObject([{ actor: 'vera', result: 'denied' }]);
  });

  it.each([
    ['no credentials', {}],
    ['another cookie', { cookie: 'other=1' }],
    ['an empty session', { cookie: 'holdfast=' }],
    ['another scheme', { authorization: 'Digest x', cookie: 'holdfast=nonsense' }],
  ])('is not entered for %s', async (_, headers) => {
    const { ask, entered } = started();
    expect((await ask('/api/settings', headers)).status).toBe(401);
    expect(entered()).toEqual([]);
  });

  it('is not entered for other failures', async () => {
    const { ask, entered } = started();
    expect((await ask('/api/nothing')).status).toBe(404);
    expect((await ask('/api/audit?page=0')).status).toBe(422);
    expect(entered()).toEqual([]);
  });

  it('is answered only when the log has taken it, where that takes time', async () => {
    const { deps, ask } = started();
    let taken = false;
    deps.audit.note = async () => {
      await new Promise((tick) => setTimeout(tick, 5));
      taken = true;
    };
    await ask('/api/settings', VIEWER);
    expect(taken).toBe(true);
  });
});

describe('POST /api/ops/alerts/test', () => {
  const json = { ...ADMIN, 'content-type': 'application/json' };
  const request = { method: 'POST', body: '{"channel":"email"}' };

  it('is entered before and after, and not done while that is impossible', async () => {
    const { deps, ask, entered } = started();
    const transport = fakeTransport(['duty@example.org']);
    deps.notify.email = transport;
    expect((await ask('/api/ops/alerts/test', json, request)).status).toBe(200);
    const shared = { actor: 'webadmin', address: '192.0.2.7', action: 'alert.test', target: 'email', detail: {} };
    expect(entered()).toEqual([
      { ...shared, result: null },
      { ...shared, result: 'ok' },
    ]);
    deps.audit.mood = 'away';
    expect((await ask('/api/ops/alerts/test', json, request)).status).toBe(503);
    expect(transport.sent).toHaveLength(1);
  });
});
