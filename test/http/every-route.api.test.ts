// Walks every route of the app: who is let in, who is not, and what no route takes. The table is the one of the API; the app
// must route exactly these.

import { beforeAll, describe, expect, it } from 'vitest';
import { createApp } from '../../functions/app.ts';
import { documentOf } from '../../functions/openapi.ts';
import type { App } from '../../shared/http/context.ts';
import { MAX_BODY_BYTES } from '../../shared/http/csrf-guard.ts';
import { ADMIN, basic, fakeDeps, NOBODY, PASSWORD, READER, VIEWER } from './fake-deps.ts';

type Access = 'open' | 'own' | 'monitoring' | 'viewer' | 'admin';

const ROUTES: [method: string, path: string, access: Access][] = [
  ['GET', '/api/ping', 'open'],
  ['GET', '/api/health', 'monitoring'],
  ['GET', '/api/health/{module}', 'monitoring'],
  ['GET', '/metrics', 'monitoring'],
  ['GET', '/api/alerts', 'monitoring'],
  ['GET', '/api/groups', 'viewer'],
  ['POST', '/api/groups', 'admin'],
  ['GET', '/api/groups/{id}', 'viewer'],
  ['DELETE', '/api/groups/{id}', 'admin'],
  ['GET', '/api/users', 'viewer'],
  ['POST', '/api/users', 'admin'],
  ['GET', '/api/users/{id}', 'viewer'],
  ['PATCH', '/api/users/{id}', 'admin'],
  ['DELETE', '/api/users/{id}', 'admin'],
  ['PUT', '/api/users/{id}/groups', 'admin'],
  ['POST', '/api/users/{id}/password', 'admin'],
  ['POST', '/api/ops/certs/{file}/revoke', 'admin'],
  ['GET', '/api/service-accounts', 'viewer'],
  ['POST', '/api/service-accounts', 'admin'],
  ['GET', '/api/service-accounts/{id}', 'viewer'],
  ['DELETE', '/api/service-accounts/{id}', 'admin'],
  ['GET', '/api/clients', 'viewer'],
  ['DELETE', '/api/clients/{uid}', 'admin'],
  ['GET', '/api/missions', 'viewer'],
  ['GET', '/api/missions/{guid}', 'viewer'],
  ['DELETE', '/api/missions/{guid}', 'admin'],
  ['POST', '/api/missions/{guid}/archive', 'admin'],
  ['GET', '/api/mission-archives', 'viewer'],
  ['GET', '/api/mission-archives/{id}/content', 'admin'],
  ['POST', '/api/mission-archives/{id}/restore', 'admin'],
  ['DELETE', '/api/mission-archives/{id}', 'admin'],
  ['GET', '/api/positions', 'viewer'],
  ['GET', '/api/tracks', 'viewer'],
  ['GET', '/api/plugins', 'viewer'],
  ['POST', '/api/plugins/{name}/start', 'admin'],
  ['POST', '/api/plugins/{name}/stop', 'admin'],
  ['POST', '/api/plugins/{name}/enable', 'admin'],
  ['POST', '/api/plugins/{name}/disable', 'admin'],
  ['GET', '/api/feeds', 'viewer'],
  ['PUT', '/api/feeds/{name}', 'admin'],
  ['DELETE', '/api/feeds/{name}', 'admin'],
  ['POST', '/api/feeds/{name}/on', 'admin'],
  ['POST', '/api/feeds/{name}/off', 'admin'],
  ['POST', '/api/users/{id}/enrollment', 'admin'],
  ['GET', '/api/users/{id}/enrollment', 'viewer'],
  ['DELETE', '/api/users/{id}/enrollment', 'admin'],
  // And whoever it is for: see enrollment.test.ts.
  ['GET', '/api/users/{id}/enrollment/package', 'admin'],
  ['POST', '/api/me/enrollment', 'own'],
  ['GET', '/api/me/enrollment', 'own'],
  ['DELETE', '/api/me/enrollment', 'own'],
  ['GET', '/api/retention/runs', 'viewer'],
  ['POST', '/api/retention/runs', 'admin'],
  ['GET', '/api/ops/jobs', 'viewer'],
  ['POST', '/api/ops/simulation', 'admin'],
  ['DELETE', '/api/ops/simulation', 'admin'],
  ['GET', '/api/ops/jobs/{id}', 'viewer'],
  ['GET', '/api/ops/database/vacuum', 'viewer'],
  ['POST', '/api/ops/database/vacuum', 'admin'],
  ['GET', '/api/backups', 'viewer'],
  ['POST', '/api/backups', 'admin'],
  ['POST', '/api/backups/{name}/proof', 'admin'],
  ['PUT', '/api/backups/{name}/permanent', 'admin'],
  ['GET', '/api/backups/{name}/archive', 'admin'],
  ['POST', '/api/ops/alerts/test', 'admin'],
  ['GET', '/api/audit', 'admin'],
  ['GET', '/api/audit/verify', 'admin'],
  ['GET', '/api/tokens', 'admin'],
  ['POST', '/api/tokens', 'admin'],
  ['DELETE', '/api/tokens/{id}', 'admin'],
  ['GET', '/api/retention', 'viewer'],
  ['PUT', '/api/retention', 'admin'],
  ['GET', '/api/retention/preview', 'viewer'],
  ['GET', '/api/settings', 'admin'],
  ['GET', '/api/logs', 'admin'],
  ['GET', '/api/lockouts', 'admin'],
  ['DELETE', '/api/lockouts/{address}', 'admin'],
  ['GET', '/api/me', 'own'],
  ['POST', '/api/me/password', 'own'],
  ['GET', '/api/ops/certs', 'viewer'],
  ['POST', '/api/ops/certs', 'admin'],
  ['GET', '/api/ops/certs/ca', 'viewer'],
  ['GET', '/api/ops/certs/crl', 'viewer'],
  ['GET', '/api/ops/certs/{file}', 'viewer'],
  ['GET', '/api/ops/certs/{file}/download', 'admin'],
  ['GET', '/api/me/certs', 'own'],
  ['POST', '/api/me/certs', 'own'],
  ['GET', '/api/me/certs/{file}/download', 'own'],
  ['POST', '/api/me/certs/{file}/revoke', 'own'],
  ['GET', '/api/sessions', 'own'],
  ['DELETE', '/api/sessions', 'own'],
  ['DELETE', '/api/sessions/{id}', 'own'],
  ['GET', '/api/openapi.json', 'viewer'],
  ['GET', '/api/docs', 'viewer'],
  ['GET', '/api/docs/start.js', 'viewer'],
  ['GET', '/api/docs/{asset}', 'viewer'],
  ['GET', '/auth/verify', 'open'],
  ['POST', '/oauth/token', 'open'],
  ['GET', '/sign-in', 'open'],
  ['POST', '/sign-in', 'open'],
  ['POST', '/sign-out', 'open'],
  ['GET', '/sign-in/style.css', 'open'],
  ['GET', '/sign-in/page.js', 'open'],
];

/** The pages behind the sign-in have a table of their own, in test/pages/every-page.test.ts. */
const PROGRAMS_AND_SIGN_IN = /^\w+ \/(api|metrics|auth|oauth|sign-in|sign-out)(\/|$)/;

const FORMS = ['/sign-in', '/sign-out', '/oauth/token'];
const closed = ROUTES.filter(([, , access]) => access !== 'open');
const unsafe = ROUTES.filter(([method]) => method !== 'GET');
const TYPES = { json: 'application/json', form: 'application/x-www-form-urlencoded' };

const INVENTED = {
  'remote-user': 'webadmin',
  'remote-groups': 'stack_admin,core_ROLE_ADMIN',
  'x-forwarded-user': 'webadmin',
  'x-forwarded-groups': 'stack_admin',
  'x-forwarded-for': '127.0.0.1',
  'x-authentik-username': 'webadmin',
  'x-remote-user': 'webadmin',
  'x-webauth-user': 'webadmin',
  'x-holdfast-host': 'guess',
  forwarded: 'for=127.0.0.1',
};

let requests = 0;
/** One for each route of a group below: what a route does is not seen by another. */
let app: App;
const withItsOwnApp = (): void =>
  beforeAll(() => {
    app = createApp(fakeDeps());
  });

/** Each request comes from an address of its own, so that failures do not add up. */
async function ask(method: string, path: string, init: RequestInit = {}): Promise<Response> {
  const place = path
    .replace('{module}', 'dns')
    .replace('{address}', '192.0.2.1')
    .replace('{asset}', 'swagger-ui.css')
    .replace('{id}', path.startsWith('/api/users') ? '1' : '00000000-0000-4000-8000-000000000000');
  requests += 1;
  const clientAddress = `10.0.${Math.floor(requests / 250)}.${requests % 250}`;
  return app.request(place, { method, ...init }, { requestId: 'r', clientAddress, secure: false });
}

const bodyless = ([method]: readonly string[]): boolean => method === 'GET' || method === 'DELETE';

/** With a body where the route takes one: none that says anything. */
function with_(headers: Record<string, string>, route: readonly [string, string, string]): RequestInit {
  const form = FORMS.includes(route[1]);
  if (bodyless(route)) return { headers };
  return { headers: { 'content-type': form ? TYPES.form : TYPES.json, ...headers }, body: form ? '' : '{}' };
}

/** Written once: that takes longer than all that is asked of a route. */
const { paths: documents = {} } = documentOf(createApp(fakeDeps()), '');

describe('the routes', () => {
  withItsOwnApp();

  it('are those of the table, and no others', () => {
    const routed = app.routes
      .filter(({ method }) => method !== 'ALL')
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)(\{[^}]*\})?/g, '{$1}')}`)
      .filter((each) => PROGRAMS_AND_SIGN_IN.test(each));
    expect([...new Set(routed)].toSorted()).toEqual(ROUTES.map(([method, path]) => `${method} ${path}`).toSorted());
  });

  it('are documented, all that is below /api', () => {
    const documented = Object.entries(documents).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const parts = ['/api/docs/start.js', '/api/docs/{asset}'];
    const expected = ROUTES.filter(([, path]) => /^\/(api|metrics|auth|oauth)/.test(path) && !parts.includes(path));
    expect(documented.toSorted()).toEqual(expected.map(([method, path]) => `${method} ${path}`).toSorted());
  });
});

describe.each(closed)('%s %s (%s)', (...route) => {
  withItsOwnApp();
  const [method, path, access] = route;
  const reading = method === 'GET';

  it('is 401 to nobody, with the challenge', async () => {
    const answer = await ask(method, path, with_({}, route));
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toMatch(/^Basic /);
  });

  it('is 401 to invented identity headers', async () => {
    expect((await ask(method, path, with_(INVENTED, route))).status).toBe(401);
  });

  it('is 401 to a wrong password, a made-up token and a made-up cookie', async () => {
    for (const headers of [
      { authorization: basic('webadmin', `${PASSWORD}x`) },
      { authorization: 'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJ3ZWJhZG1pbiJ9.' },
      { cookie: 'holdfast=eyJhbGciOiJub25lIn0.eyJzdWIiOiJ3ZWJhZG1pbiJ9.; __Host-holdfast=x' },
    ])
      expect((await ask(method, path, with_(headers, route))).status).toBe(401);
  });

  it('asks for the role', async () => {
    const { status: toNobody } = await ask(method, path, with_(NOBODY, route));
    const { status: toViewer } = await ask(method, path, with_(VIEWER, route));
    const { status: toMetrics } = await ask(method, path, with_(READER, route));
    expect(toNobody === 403).toBe(access !== 'own');
    expect(toViewer === 403).toBe(access === 'admin');
    expect(toMetrics === 403).toBe(access !== 'monitoring' || !reading);
    for (const status of [toNobody, toViewer, toMetrics]) expect(status).not.toBe(401);
  });

  it('lets an administrator in', async () => {
    const { status } = await ask(method, path, with_(ADMIN, route));
    expect([401, 403, 429, 500, 503]).not.toContain(status);
  });
});

const documented = closed.filter(([, path]) => path.includes('{') && !path.startsWith('/api/docs/'));

describe.each(documented)('%s %s (%s)', (...route) => {
  withItsOwnApp();
  const [method, path] = route;

  it('documents what it answers to a path that is too long', async () => {
    const answers = (documents[path] as Record<string, { responses: object }>)[method.toLowerCase()]?.responses ?? {};
    const long = path.replaceAll(/\{\w+\}/g, 'a'.repeat(300));
    const { status } = await ask(method, long, with_(ADMIN, route));
    expect(Object.keys(answers)).toContain(String(status));
  });
});

describe.each(unsafe)('%s %s (%s)', (...route) => {
  withItsOwnApp();
  const [method, path] = route;
  const type = FORMS.includes(path) ? TYPES.form : TYPES.json;

  it('is 403 when a page of another site has caused it', async () => {
    for (const foreign of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'http://localhost', 'sec-fetch-site': 'cross-site' },
    ])
      expect((await ask(method, path, with_({ ...ADMIN, ...foreign }, route))).status).toBe(403);
  });

  it('is 415 with a body of another type', async () => {
    const others = ['text/plain', 'multipart/form-data; boundary=x', type === TYPES.form ? TYPES.json : TYPES.form, ''];
    for (const other of others)
      expect((await ask(method, path, { headers: { ...ADMIN, 'content-type': other }, body: '{}' })).status).toBe(415);
  });

  it('is 413 with a body over 1 MB', async () => {
    const body = 'x'.repeat(MAX_BODY_BYTES + 1);
    expect((await ask(method, path, { headers: { ...ADMIN, 'content-type': type }, body })).status).toBe(413);
  });
});
