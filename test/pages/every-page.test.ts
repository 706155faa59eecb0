// Walks every page: at which face it is, who may see it, and that nothing but the cookie of a session lets anybody in. The
// app must have exactly the pages of the table.

import { describe, expect, it } from 'vitest';
import { OpenAPIHono } from '@hono/zod-openapi';
import { createApp } from '../../functions/app.ts';
import { PAGES as PAGE_FUNCTIONS } from '../../functions/every-page.ts';
import { addPages, type PageFunction } from '../../functions/pages/page-routes.ts';
import type { App, AppEnv, Face } from '../../shared/http/context.ts';
import { ADMIN, fakeDeps } from '../http/fake-deps.ts';
import { visit } from './page-session.ts';

type Access = 'own' | 'viewer' | 'admin';

const BOTH: Face[] = ['console', 'portal'];

/** The pages, in the order of their paths. */
const PAGES: [method: 'GET' | 'POST', path: string, access: Access, faces: Face[]][] = [
  ['GET', '/', 'own', ['console']],
  ['GET', '/', 'own', ['portal']],
  ['GET', '/account', 'own', ['console', 'portal']],
  ['POST', '/account/password', 'own', ['console', 'portal']],
  ['POST', '/account/sessions/:id/end', 'own', ['console', 'portal']],
  ['POST', '/account/sessions/end', 'own', ['console', 'portal']],
  ['GET', '/add-device', 'own', ['portal']],
  ['POST', '/add-device', 'own', ['portal']],
  ['GET', '/add-device/progress', 'own', ['portal']],
  ['POST', '/add-device/withdraw', 'own', ['portal']],
  ['GET', '/docs', 'viewer', ['console']],
  ['GET', '/docs/:file', 'viewer', ['console']],
  ['GET', '/guides', 'own', ['portal']],
  ['GET', '/guides/:app', 'own', ['portal']],
  ['GET', '/health/:module', 'viewer', ['console']],
  ['POST', '/health/:module', 'viewer', ['console']],
  ['GET', '/database/vacuum', 'viewer', ['console']],
  ['POST', '/database/vacuum', 'admin', ['console']],
  ['GET', '/backups', 'viewer', ['console']],
  ['GET', '/backups/emergency-sheet', 'viewer', ['console']],
  ['POST', '/backups', 'admin', ['console']],
  ['POST', '/backups/:name/proof', 'admin', ['console']],
  ['POST', '/backups/:name/permanent', 'admin', ['console']],
  ['GET', '/simulation', 'viewer', ['console']],
  ['POST', '/simulation', 'admin', ['console']],
  ['POST', '/simulation/stop', 'admin', ['console']],
  ['GET', '/jobs', 'viewer', ['console']],
  ['GET', '/jobs/:id', 'viewer', ['console']],
  ['GET', '/database', 'viewer', ['console']],
  ['GET', '/database/retention', 'viewer', ['console']],
  ['GET', '/database/retention/preview', 'viewer', ['console']],
  ['POST', '/database/retention', 'admin', ['console']],
  ['GET', '/database/runs', 'viewer', ['console']],
  ['GET', '/database/runs/new', 'admin', ['console']],
  ['POST', '/database/runs', 'admin', ['console']],
  ['GET', '/alerts', 'viewer', ['console']],
  ['POST', '/alerts/test', 'admin', ['console']],
  ['GET', '/audit', 'admin', ['console']],
  ['GET', '/logs', 'admin', ['console']],
  ['GET', '/lockouts', 'admin', ['console']],
  ['POST', '/lockouts/release', 'admin', ['console']],
  ['GET', '/certificates', 'viewer', ['console']],
  ['GET', '/certificates/:file', 'viewer', ['console']],
  ['GET', '/certificates/:file', 'admin', ['portal']],
  ['POST', '/certificates/:file/revoke', 'admin', BOTH],
  ['GET', '/certificates/ca.pem', 'viewer', ['console']],
  ['GET', '/certificates/crl.pem', 'viewer', ['console']],
  ['GET', '/certificates/new', 'admin', ['console']],
  ['POST', '/certificates/new', 'admin', ['console']],
  ['GET', '/devices', 'viewer', ['console']],
  ['POST', '/devices/disconnect', 'admin', ['console']],
  ['POST', '/devices/shut-out', 'admin', ['console']],
  ['GET', '/map', 'viewer', ['console']],
  ['GET', '/map/export', 'viewer', ['console']],
  ['GET', '/map/outlines.json', 'viewer', ['console']],
  ['GET', '/map/script.js', 'viewer', ['console']],
  ['GET', '/missions', 'viewer', ['console']],
  ['GET', '/missions/:guid', 'viewer', ['console']],
  ['POST', '/missions/:guid/archive', 'admin', ['console']],
  ['POST', '/missions/:guid/delete', 'admin', ['console']],
  ['POST', '/missions/archives/:id/restore', 'admin', ['console']],
  ['POST', '/missions/archives/:id/delete', 'admin', ['console']],
  ['POST', '/devices/logs/:id', 'admin', ['console']],
  ['POST', '/devices/logs/:id/delete', 'admin', ['console']],
  ['GET', '/more', 'own', ['console']],
  ['GET', '/my-devices/:file/download', 'own', ['portal']],
  ['POST', '/my-devices/:file/revoke', 'own', ['portal']],
  ['GET', '/people/:id/enrollment', 'admin', BOTH],
  ['POST', '/people/:id/enrollment', 'admin', BOTH],
  ['GET', '/people/:id/enrollment/progress', 'admin', BOTH],
  ['POST', '/people/:id/enrollment/withdraw', 'admin', BOTH],
  ['GET', '/groups', 'viewer', ['console']],
  ['GET', '/groups', 'admin', ['portal']],
  ['POST', '/groups', 'admin', ['console', 'portal']],
  ['GET', '/groups/:id', 'viewer', ['console']],
  ['GET', '/groups/:id', 'admin', ['portal']],
  ['POST', '/groups/:id/delete', 'admin', ['console', 'portal']],
  ['GET', '/people', 'viewer', ['console']],
  ['GET', '/people', 'admin', ['portal']],
  ['GET', '/people/:id', 'viewer', ['console']],
  ['GET', '/people/:id', 'admin', ['portal']],
  ['POST', '/people/:id/deactivate', 'admin', ['console', 'portal']],
  ['POST', '/people/:id/details', 'admin', ['console', 'portal']],
  ['POST', '/people/:id/expiry', 'admin', ['console', 'portal']],
  ['POST', '/people/:id/groups', 'admin', ['console', 'portal']],
  ['POST', '/people/:id/password', 'admin', ['console', 'portal']],
  ['POST', '/people/:id/reactivate', 'admin', ['console', 'portal']],
  ['POST', '/people/:id/role', 'admin', ['console', 'portal']],
  ['GET', '/people/new', 'admin', ['console', 'portal']],
  ['POST', '/people/new', 'admin', ['console', 'portal']],
  ['GET', '/plugins', 'viewer', ['console']],
  ['POST', '/plugins', 'admin', ['console']],
  ['POST', '/plugins/feeds', 'admin', ['console']],
  ['POST', '/plugins/feeds/change', 'admin', ['console']],
  ['POST', '/plugins/packages', 'admin', ['console']],
  ['POST', '/plugins/packages/delete', 'admin', ['console']],
  ['GET', '/profiles', 'viewer', ['console']],
  ['POST', '/profiles', 'admin', ['console']],
  ['GET', '/profiles/:id', 'viewer', ['console']],
  ['POST', '/profiles/:id', 'admin', ['console']],
  ['POST', '/profiles/:id/delete', 'admin', ['console']],
  ['POST', '/profiles/:id/files', 'admin', ['console']],
  ['POST', '/profiles/:id/files/:file/delete', 'admin', ['console']],
  ['POST', '/profiles/:id/preferences', 'admin', ['console']],
  ['GET', '/service-accounts', 'viewer', ['console']],
  ['POST', '/service-accounts', 'admin', ['console']],
  ['GET', '/service-accounts/:id', 'viewer', ['console']],
  ['POST', '/service-accounts/:id/delete', 'admin', ['console']],
  ['GET', '/settings', 'admin', ['console']],
  ['GET', '/tokens', 'admin', ['console']],
  ['POST', '/tokens', 'admin', ['console']],
  ['POST', '/tokens/:id/revoke', 'admin', ['console']],
  ['GET', '/video', 'viewer', ['console']],
  ['POST', '/video', 'admin', ['console']],
  ['POST', '/video/delete', 'admin', ['console']],
];

const PROGRAMS = /^\/(api|metrics|auth|oauth)(\/|$)/;
const OPEN = ['GET /sign-in', 'POST /sign-in', 'POST /sign-out', 'GET /sign-in/style.css', 'GET /sign-in/page.js'];
const FACES: Face[] = ['console', 'portal'];

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

const placeOf = (path: string): string => path.replace(':uid', 'uid').replaceAll(/:\w+/g, '1');

describe('the pages', () => {
  it('are those of the table, and no others', () => {
    const routed = createApp(fakeDeps())
      .routes.filter(({ method, path }) => method !== 'ALL' && !PROGRAMS.test(path))
      .map(({ method, path }) => `${method} ${path}`)
      .filter((each) => !OPEN.includes(each));
    const table = PAGES.map(([method, path]) => `${method} ${path}`);
    expect([...new Set(routed)].toSorted()).toEqual([...new Set(table)].toSorted());
  });

  it.each(PAGES)(
    '%s %s leads to the sign-in whoever brings no session, whatever else is brought',
    async (method, path, _, faces) => {
      for (const face of faces) {
        const visitor = await visit({ username: undefined, face });
        const place = placeOf(path);
        const answer = method === 'GET' ? await visitor.get(place, ADMIN) : await visitor.post(place);
        const wanted = method === 'GET' ? `/sign-in?return_to=${place}` : '/sign-in';
        expect([answer.status, answer.headers.get('location')]).toEqual([303, wanted]);
      }
    },
  );

  it.each(PAGES.filter(([, , access]) => access !== 'own'))(
    '%s %s is for the role that it needs',
    async (method, path, access, faces) => {
      for (const face of faces)
        for (const username of access === 'admin' ? ['nora', 'vera'] : ['nora']) {
          const visitor = await visit({ username, face });
          const place = placeOf(path);
          const answer = method === 'GET' ? await visitor.get(place) : await visitor.post(place);
          expect([username, answer.status]).toEqual([username, 403]);
        }
    },
  );

  it.each(PAGES)('%s %s is not there at the other face', async (method, path, _, faces) => {
    const samePlace = PAGES.filter(([m, p]) => m === method && p === path).flatMap(([, , , each]) => each);
    for (const face of FACES.filter((each) => !faces.includes(each) && !samePlace.includes(each))) {
      const visitor = await visit({ face });
      const answer = method === 'GET' ? await visitor.get(placeOf(path)) : await visitor.post(placeOf(path));
      expect([face, answer.status]).toEqual([face, 404]);
    }
  });

  it.each(PAGES.filter(([method]) => method === 'POST'))(
    '%s %s refuses what another site has caused',
    async (_, path, __, faces) => {
      for (const face of faces) {
        const visitor = await visit({ face });
        for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://elsewhere.example' }])
          expect((await visitor.send(placeOf(path), { ...FORM, ...headers }, '')).status).toBe(403);
      }
    },
  );
});

describe('the documents', () => {
  it('are files with the policy of the pages; an unknown one is 404', async () => {
    const visitor = await visit({ username: 'vera' });
    expect((await visitor.get('/docs')).headers.get('location')).toBe('/docs/index.html');
    const { status, headers } = await visitor.get('/docs/index.html');
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(headers.get('content-security-policy')).toBe(
      (await visitor.get('/')).headers.get('content-security-policy'),
    );
    for (const name of ['none.html', '..%2Fpages.css', 'pages.css'])
      expect([name, (await visitor.get(`/docs/${name}`)).status]).toEqual([name, 404]);
  });
});

describe('the order in which pages are added', () => {
  const faces = (handler: object): string => ('faces' in handler ? String(handler.faces) : '');
  const routesOf = (pages: readonly PageFunction[]): string[] => {
    const app: App = new OpenAPIHono<AppEnv>();
    addPages(app, fakeDeps(), pages);
    return app.routes.map(({ method, path, handler }) => `${method} ${path} ${faces(handler)}`);
  };

  it('does not matter: words of an address come before parameters', () => {
    const routes = routesOf(PAGE_FUNCTIONS);
    expect(routesOf(PAGE_FUNCTIONS.toReversed()).toSorted()).toEqual(routes.toSorted());
    for (const pages of [PAGE_FUNCTIONS, PAGE_FUNCTIONS.toReversed()]) {
      const paths = routesOf(pages).map((each) => each.split(' ')[1] ?? '');
      for (const [index, path] of paths.entries()) {
        const taken = new RegExp(`^${path.replaceAll(/:[^/]+/g, '[^/]+')}$`);
        const later = paths.slice(index + 1).filter((each) => each !== path && taken.test(each));
        expect(later, path).toEqual([]);
      }
    }
  });

  it('cannot hide that two are at one address of one face', () => {
    const first = PAGE_FUNCTIONS.slice(0, 1);
    expect(() => routesOf([...first, ...first])).toThrow(/Two pages are at/);
  });
});
