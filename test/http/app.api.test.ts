import { describe, expect, it } from 'vitest';
import { createApp } from '../../functions/app.ts';
import { documentOf } from '../../functions/openapi.ts';
import type { Bindings } from '../../shared/http/context.ts';
import { problemSchema } from '../../shared/http/route.ts';
import { ADMIN, basic, fakeDeps, NOBODY, PASSWORD, READER, VIEWER } from './fake-deps.ts';

const CONNECTION: Bindings = { requestId: 'request-1', clientAddress: '192.0.2.7', secure: false };
const deps = fakeDeps({ SMTP_URL: 'smtp://me:mailpassword@mail.example.org', TRUSTED_PROXIES: '10.0.0.1' });
const app = createApp(deps);

async function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return app.request(path, { method, headers }, CONNECTION);
}

/** Every path that the app routes, from its own table. */
const routes = app.routes
  .filter((route) => route.method !== 'ALL')
  .map((route) => ({ method: route.method, path: route.path.replace(/:\w+/, 'thing') }));

/** Open to everybody: they say nothing, or ask for a password themselves. */
const OPEN = new Set(['/api/ping', '/auth/verify', '/oauth/token', '/', '/sign-in', '/sign-in/style.css', '/sign-out']);

describe('GET /api/ping', () => {
  it('is open and says ok', async () => {
    const response = await ask('/api/ping');
    expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }]);
    expect(response.headers.get('x-request-id')).toBe('request-1');
  });
});

describe('sign-in', () => {
  const closed = [
    ...new Set([
      '/api',
      '/api/',
      '/api/nothing',
      '/api/ping/deeper',
      '/metrics',
      '/metrics/x',
      ...routes.map(({ path }) => path).filter((path) => /^\/(api|metrics|auth|oauth)\b/.test(path)),
    ]),
  ].filter((path) => !OPEN.has(path));

  it.each(closed)('%s is 401 without credentials, known or unknown, with the challenge', async (path) => {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const response = await ask(path, {}, method);
      expect([method, response.status]).toEqual([method, 401]);
      expect(response.headers.get('www-authenticate')).toMatch(/^Basic realm=/);
      expect(response.headers.get('content-type')).toBe('application/problem+json');
    }
  });

  it.each([
    ['a wrong password', basic('webadmin', `${PASSWORD}x`)],
    ['an empty password', basic('webadmin', '')],
    ['another user', basic('admin', PASSWORD)],
    ['no colon', `Basic ${Buffer.from(`webadmin${PASSWORD}`).toString('base64')}`],
    ['the password as a token', `Bearer ${PASSWORD.replaceAll(' ', '')}`],
    ['a wrong token', 'Bearer metrics-token-0123456788'],
    ['another scheme', 'Digest webadmin'],
    ['an empty header', ''],
  ])('refuses %s', async (_, authorization) =>
    expect((await ask('/api/settings', { authorization })).status).toBe(401),
  );

  it('refuses identity headers of any kind', async () => {
    const headers = {
      'remote-user': 'webadmin',
      'remote-groups': 'stack_admin',
      'x-forwarded-user': 'webadmin',
      'x-authentik-username': 'webadmin',
    };
    expect((await ask('/api/settings', headers)).status).toBe(401);
  });

  it('says 400 to credentials that are not Base64', async () => {
    expect((await ask('/api/settings', { authorization: 'Basic %%%' })).status).toBe(400);
  });

  it('lets METRICS_TOKEN read health, metrics and alerts, nothing else', async () => {
    for (const path of ['/api/health', '/metrics', '/api/alerts']) expect((await ask(path, READER)).status).toBe(200);
    for (const path of ['/api/settings', '/api/logs', '/api/openapi.json', '/api/docs', '/api/lockouts']) {
      const response = await ask(path, READER);
      expect([path, response.status]).toEqual([path, 403]);
      expect(problemSchema.parse(await response.json()).code).toBe('forbidden');
    }
  });

  it('lets a viewer read, but not what administrators read, and nobody else', async () => {
    for (const path of ['/api/health', '/metrics', '/api/alerts', '/api/openapi.json', '/api/docs']) {
      expect([path, (await ask(path, VIEWER)).status]).toEqual([path, 200]);
      expect([path, (await ask(path, NOBODY)).status]).toEqual([path, 403]);
    }
    for (const path of ['/api/settings', '/api/logs', '/api/lockouts'])
      expect((await ask(path, VIEWER)).status).toBe(403);
  });

  it('locks an address out after ten wrong passwords, for passwords alone', async () => {
    const locking = createApp(fakeDeps());
    const from = async (clientAddress: string, headers: Record<string, string>): Promise<Response> =>
      locking.request('/api/logs', { headers }, { ...CONNECTION, clientAddress });
    for (let count = 0; count < 10; count++)
      expect((await from('192.0.2.1', { authorization: basic('webadmin', `${count}`) })).status).toBe(401);
    const locked = await from('192.0.2.1', ADMIN);
    expect([locked.status, locked.headers.get('retry-after')]).toEqual([429, '900']);
    expect(problemSchema.parse(await locked.json())).toMatchObject({
      code: 'locked_out',
      detail: 'Too many wrong passwords from this address. Try again in 15 minutes.',
    });
    expect((await from('192.0.2.1', {})).status).toBe(401);
    expect((await from('192.0.2.2', ADMIN)).status).toBe(200);
  });

  it('says 503, and counts nothing, while the directory is away', async () => {
    const alone = fakeDeps({ CORE_WEBADMIN_PASSWORD: '' });
    alone.directory.mood = 'down';
    for (let count = 0; count < 11; count++) {
      const response = await createApp(alone).request('/api/health', { headers: VIEWER }, CONNECTION);
      expect(response.status).toBe(503);
    }
  });

  it('lets webadmin look at health, metrics and alerts while the directory is away, and at nothing else', async () => {
    const alone = fakeDeps();
    alone.directory.mood = 'down';
    const there = createApp(alone);
    const status = async (path: string, method = 'GET'): Promise<number> =>
      (await there.request(path, { method, headers: ADMIN }, CONNECTION)).status;
    for (const path of ['/api/health', '/metrics', '/api/alerts']) expect(await status(path)).toBe(200);
    for (const path of ['/api/settings', '/api/logs', '/api/openapi.json', '/api/lockouts'])
      expect(await status(path)).toBe(403);
    expect(await status('/api/ops/alerts/test', 'POST')).toBe(403);
  });
});

describe('errors', () => {
  it('are problem documents with the id of the request', async () => {
    const response = await ask('/api/nothing', ADMIN);
    expect(response.status).toBe(404);
    expect(problemSchema.parse(await response.json())).toEqual({
      type: 'about:blank',
      title: 'Not found',
      status: 404,
      detail: 'Nothing at this address. Check the address.',
      code: 'not_found',
      request_id: 'request-1',
    });
  });

  it('of our own never carry an internal message, but the log does', async () => {
    const broken = fakeDeps();
    broken.logFiles.names = async () => {
      throw new Error('ENOENT /secret/place');
    };
    const response = await createApp(broken).request('/api/logs', { headers: ADMIN }, CONNECTION);
    const text = await response.text();
    expect(response.status).toBe(500);
    expect(text).not.toContain('secret');
    expect(text).toContain('request-1');
    const [logged] = broken.log.events;
    expect(logged).toMatchObject({ level: 'error', event: 'http.failed', fields: { request_id: 'request-1' } });
    expect(String(logged?.fields['error'])).toContain('/secret/place');
  });

  it('of invalid values name each member', async () => {
    for (const tail of ['0', '5001', 'many', '1.5', '0x10', '1e2', '%2010']) {
      const response = await ask(`/api/logs?tail=${tail}`, ADMIN);
      expect([tail, response.status]).toEqual([tail, 422]);
      expect(problemSchema.parse(await response.json()).errors?.map(({ path }) => path)).toEqual(['tail']);
    }
  });
});

describe('GET /api/settings', () => {
  it('shows every setting with its source, and secrets only as set or unset', async () => {
    const response = await ask('/api/settings', ADMIN);
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(text).not.toContain(PASSWORD);
    expect(text).not.toContain('mailpassword');
    const { settings, release, thresholds } = JSON.parse(text) as {
      settings: { name: string; value: unknown; source: string }[];
      release: string;
      thresholds: { alert_cooldown: number };
    };
    const shown = (name: string) =>
      settings.filter((each) => each.name === name).map(({ value, source }) => ({ value, source }));
    expect(shown('CORE_WEBADMIN_PASSWORD')).toEqual([{ value: 'set', source: 'environment' }]);
    expect(shown('RESEND_API_KEY')).toEqual([{ value: 'unset', source: 'unset' }]);
    expect(shown('TRUSTED_PROXIES')).toEqual([{ value: ['10.0.0.1'], source: 'environment' }]);
    expect(shown('DB_AUTOVACUUM_COST_LIMIT')).toEqual([{ value: 1000, source: 'default' }]);
    expect(shown('COT_RETENTION_DAYS')).toEqual([{ value: null, source: 'unset' }]);
    expect([release, thresholds.alert_cooldown]).toEqual(['1.2.3', 300]);
  });
});

describe('GET /api/logs', () => {
  it('lists the names, and gives the last lines of one', async () => {
    expect(await (await ask('/api/logs', ADMIN)).json()).toEqual(['management']);
    expect(await (await ask('/api/logs?name=management&tail=2', ADMIN)).json()).toEqual({
      name: 'management',
      lines: ['two', 'three'],
    });
    expect((await ask('/api/logs?name=..%2Fsecrets', ADMIN)).status).toBe(404);
  });
});

describe('the API document', () => {
  it('is OpenAPI 3.1 of exactly the routed JSON surface, with the release as its version', async () => {
    const response = await ask('/api/openapi.json', ADMIN);
    const document = (await response.json()) as ReturnType<typeof documentOf>;
    expect(document.openapi).toBe('3.1.0');
    expect(document.info.version).toBe('1.2.3');
  });

  it('declares a problem for every failure, and no sign-in only for the open routes', () => {
    const document = documentOf(app, '1.2.3');
    const settings = document.paths?.['/api/settings']?.get;
    expect(Object.keys(settings?.responses ?? {})).toEqual(['200', '400', '401', '403', '429', '500', '503']);
    expect(settings?.security).toEqual([{ basic: [] }, { session: [] }, { bearer: [] }]);
    for (const path of ['/api/ping', '/auth/verify']) expect(document.paths?.[path]?.get?.security).toEqual([]);
    expect(Object.keys(document.components?.securitySchemes ?? {}).toSorted()).toEqual(['basic', 'bearer', 'session']);
  });

  it('has patterns that mean the same to every reader, and says where null is taken', () => {
    const document = documentOf(app, '1.2.3');
    const text = JSON.stringify(document);
    const patterns = [...text.matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(
      ([, each = '""']) => JSON.parse(each) as string,
    );
    expect(patterns.length).toBeGreaterThan(2);
    for (const pattern of patterns) expect(pattern).toMatch(/^\^.*\$$/);
    const expiries = [...text.matchAll(/"expires_at":(\{[^{}]*future[^{}]*\})/g)].map(
      ([, each = '{}']) => JSON.parse(each) as object,
    );
    expect(expiries).toEqual(
      Array.from({ length: 2 }, () => expect.objectContaining({ type: ['string', 'null'], format: 'date-time' })),
    );
  });

  it('has a page whose scripts all ship with it', async () => {
    const page = await ask('/api/docs', VIEWER);
    const html = await page.text();
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'");
    expect(html).not.toMatch(/https?:\/\//);
    expect(html).not.toMatch(/<script>|onload=/);
    expect((await ask('/api/docs/swagger-ui.css', VIEWER)).headers.get('content-type')).toBe('text/css; charset=utf-8');
    expect((await ask('/api/docs/package.json', VIEWER)).status).toBe(404);
  });
});
