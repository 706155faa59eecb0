import { describe, expect, it } from 'vitest';
import { createApp } from '../../functions/app.ts';
import type { Bindings } from '../../shared/http/context.ts';
import { problemSchema } from '../../shared/http/route.ts';
import { actionsOf } from '../audit/fake-audit.ts';
import { world } from '../health/fake-monitored.ts';
import { ADMIN, fakeDeps, NOBODY, READER } from '../http/fake-deps.ts';

const CONNECTION: Bindings = { requestId: 'request-1', clientAddress: '192.0.2.7', secure: false };

interface View {
  id: string;
  current: boolean;
}

function started() {
  const around = world();
  const deps = fakeDeps({}, around);
  const app = createApp(deps);
  const ask = async (method: string, path: string, headers: Record<string, string>) =>
    app.request(path, { method, headers }, CONNECTION);
  const open = async (username: string, userAgent = 'Browser/1') => {
    const expiresAt = new Date(around.now.getTime() + 3_600_000).toISOString();
    const { id, text } = await deps.signIns.openSession({ username, expiresAt, address: '192.0.2.9', userAgent });
    return { id, headers: { cookie: `holdfast=${text}` } };
  };
  const listFor = async (headers: Record<string, string>): Promise<View[]> =>
    ((await (await ask('GET', '/api/sessions', headers)).json()) as { results: View[] }).results;
  return { around, deps, ask, open, listFor };
}

describe('GET /api/sessions', () => {
  it('shows one’s own only, newest first, and which one asks', async () => {
    const { ask, open } = started();
    const [first, second] = [await open('vera'), await open('VERA', 'Phone/2')];
    await open('nora');
    const response = await ask('GET', '/api/sessions', first.headers);
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const text = await response.text();
    expect(JSON.parse(text)).toEqual({
      results: [
        expect.objectContaining({ id: second.id, user_agent: 'Phone/2', current: false }),
        {
          id: first.id,
          created_at: expect.any(String),
          expires_at: expect.any(String),
          address: '192.0.2.9',
          user_agent: 'Browser/1',
          current: true,
        },
      ],
      count: 2,
      page: 1,
      page_size: 50,
    });
    expect(text).not.toContain(first.headers.cookie.split('=')[1]);
  });

  it('is for everybody who is signed in, whatever the role, but not for METRICS_TOKEN', async () => {
    const { ask, listFor, open } = started();
    await open('nora');
    expect(await listFor(NOBODY)).toMatchObject([{ current: false }]);
    expect(await listFor(ADMIN)).toEqual([]);
    expect((await ask('GET', '/api/sessions', READER)).status).toBe(403);
    expect((await ask('GET', '/api/sessions', {})).status).toBe(401);
  });
});

describe('DELETE /api/sessions/{id}', () => {
  it('ends one session at once and keeps the others', async () => {
    const { deps, ask, open } = started();
    const [mine, other] = [await open('vera'), await open('vera')];
    expect((await ask('GET', '/api/sessions', other.headers)).status).toBe(200);
    const response = await ask('DELETE', `/api/sessions/${other.id}`, mine.headers);
    expect([response.status, response.headers.get('set-cookie')]).toEqual([204, null]);
    expect((await ask('GET', '/api/sessions', other.headers)).status).toBe(401);
    expect((await ask('GET', '/api/sessions', mine.headers)).status).toBe(200);
    expect(actionsOf(deps)).toMatchObject([
      { actor: 'vera', action: 'session.end', target: 'vera', phase: 'intent', address: '192.0.2.7' },
      { action: 'session.end', result: 'ok' },
    ]);
    expect(JSON.parse(deps.audit.records[0]?.detail ?? '')).toEqual({ id: other.id });
  });

  it('takes the cookie away with the session that asks', async () => {
    const { ask, open } = started();
    const mine = await open('vera');
    const response = await ask('DELETE', `/api/sessions/${mine.id}`, mine.headers);
    expect(response.headers.get('set-cookie')).toMatch(/^holdfast=;.*Max-Age=0/);
    expect((await ask('GET', '/api/sessions', mine.headers)).status).toBe(401);
  });

  it('is 404 for one that is somebody else’s, also for an administrator, and for none', async () => {
    const { ask, open } = started();
    const theirs = await open('nora');
    const mine = await open('vera');
    for (const id of [theirs.id, crypto.randomUUID(), 'nothing'])
      for (const headers of [mine.headers, ADMIN]) {
        const response = await ask('DELETE', `/api/sessions/${id}`, headers);
        expect([response.status, problemSchema.parse(await response.json()).code]).toEqual([404, 'not_found']);
      }
    expect((await ask('GET', '/api/sessions', theirs.headers)).status).toBe(200);
  });

  it('does nothing while the audit log cannot be written', async () => {
    const { deps, ask, open } = started();
    const mine = await open('vera');
    deps.audit.mood = 'away';
    expect((await ask('DELETE', `/api/sessions/${mine.id}`, mine.headers)).status).toBe(503);
    expect((await ask('DELETE', '/api/sessions', mine.headers)).status).toBe(503);
    expect((await ask('GET', '/api/sessions', mine.headers)).status).toBe(200);
  });
});

describe('DELETE /api/sessions', () => {
  it('ends all of one’s own, the calling one too, at once', async () => {
    const { deps, ask, open } = started();
    const [mine, other, theirs] = [await open('vera'), await open('vera'), await open('nora')];
    expect((await ask('GET', '/api/sessions', other.headers)).status).toBe(200);
    const response = await ask('DELETE', '/api/sessions', mine.headers);
    expect([response.status, response.headers.get('set-cookie')]).toEqual([204, expect.stringMatching(/Max-Age=0/)]);
    for (const { headers } of [mine, other]) expect((await ask('GET', '/api/sessions', headers)).status).toBe(401);
    expect((await ask('GET', '/api/sessions', theirs.headers)).status).toBe(200);
    expect(actionsOf(deps).at(-1)).toMatchObject({ action: 'session.end', target: 'vera', result: 'ok' });
  });

  it('is refused when a page of another site asks', async () => {
    const { ask, open } = started();
    const mine = await open('vera');
    const headers = { ...mine.headers, 'sec-fetch-site': 'cross-site' };
    expect((await ask('DELETE', '/api/sessions', headers)).status).toBe(403);
    expect((await ask('GET', '/api/sessions', mine.headers)).status).toBe(200);
  });
});
