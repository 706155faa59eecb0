// Walks every route of the core's admin API: who is let in. The API must route exactly this table.

import { afterAll, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { adminRoutes } from '../admin/app.ts';
import { OPEN_TO_ALL, OPEN_TO_WRITERS } from '../admin/gate.ts';
import type { CoreRole } from '../model/parts.ts';
import { ADMIN, adminWorld, byCertificate } from './fake-core-admin.ts';

const CERT = '/Marti/api/certadmin/cert';
const MISSIONS = '/Marti/api/missions';
type Route = [method: string, path: string, access: 'all' | 'writers' | 'admin'];

/** What exists by the name of a mission and by its guid. */
const both = (access: 'all' | 'writers', ...routes: string[]): Route[] =>
  routes.flatMap((route) => {
    const [method = '', rest = ''] = route.split(' ');
    return [`/guid/:guid${rest}`, `/:name${rest}`].map((path): Route => [method, `${MISSIONS}${path}`, access]);
  });

const ROUTES: Route[] = [
  ['GET', '/Marti/api/version', 'all'],
  ['GET', '/Marti/api/version/info', 'all'],
  ['GET', '/Marti/api/version/config', 'all'],
  ['GET', '/Marti/api/node/id', 'all'],
  ['GET', '/Marti/api/home', 'all'],
  ['GET', '/Marti/api/util/isAdmin', 'admin'],
  ['GET', '/Marti/api/util/user/roles', 'all'],
  ['GET', '/Marti/api/device/profile/connection', 'all'],
  ['GET', '/Marti/api/device/profile/tool/:tool', 'all'],
  ['GET', '/Marti/api/device/profile/tool/:tool/file', 'all'],
  ['GET', '/Marti/api/device/profile', 'admin'],
  ['GET', '/Marti/api/device/profile/:name', 'admin'],
  ['POST', '/Marti/api/device/profile/:name', 'admin'],
  ['PUT', '/Marti/api/device/profile/:name', 'admin'],
  ['DELETE', '/Marti/api/device/profile/:name', 'admin'],
  ['GET', '/Marti/api/device/profile/:name/files', 'admin'],
  ['PUT', '/Marti/api/device/profile/:name/file', 'admin'],
  ['GET', '/Marti/api/device/profile/:name/file/:id', 'admin'],
  ['DELETE', '/Marti/api/device/profile/:name/file/:id', 'admin'],
  ['POST', '/Marti/ErrorLog', 'all'],
  ['GET', '/Marti/ErrorLog', 'admin'],
  ['GET', '/Marti/ExportMissionKML', 'all'],
  ['POST', '/Marti/ExportMissionKML', 'all'],
  ['POST', '/Marti/TracksKML', 'writers'],
  ['POST', '/locate/api', 'writers'],
  ['DELETE', '/Marti/ErrorLog', 'admin'],
  ['GET', '/Marti/api/errorlogs', 'admin'],
  ['POST', '/Marti/api/device/profile/:name/file', 'admin'],
  ['POST', '/Marti/api/device/profile/:name/send', 'admin'],
  ['GET', '/Marti/api/device/profile/:name/missionpackage', 'all'],
  ['GET', '/Marti/api/security/config', 'admin'],
  ['GET', '/Marti/api/security/verifyConfig', 'admin'],
  ['GET', '/Marti/api/security/isSecure', 'admin'],
  ['GET', '/Marti/api/authentication/config', 'admin'],
  ['GET', '/Marti/api/citrap', 'all'],
  ['POST', '/Marti/api/citrap', 'writers'],
  ['GET', '/Marti/api/citrap/:id', 'all'],
  ['PUT', '/Marti/api/citrap/:id', 'writers'],
  ['DELETE', '/Marti/api/citrap/:id', 'writers'],
  ['POST', '/Marti/api/citrap/:id/attachment', 'writers'],
  ['GET', '/update/product.infz', 'all'],
  ['GET', '/update/product.inf', 'all'],
  ['GET', '/update/:file', 'all'],
  ['GET', '/Marti/api/update/products', 'admin'],
  ['POST', '/Marti/api/update/products', 'admin'],
  ['DELETE', '/Marti/api/update/products/:hash', 'admin'],
  ['GET', '/Marti/sync/:hash/metadata', 'all'],
  ['POST', '/Marti/api/iconset', 'writers'],
  ['GET', '/Marti/api/database/cotCount', 'admin'],
  ['GET', '/Marti/api/tls/attempts', 'admin'],
  ['GET', CERT, 'admin'],
  ['GET', `${CERT}/active`, 'admin'],
  ['GET', `${CERT}/replaced`, 'admin'],
  ['GET', `${CERT}/expired`, 'admin'],
  ['GET', `${CERT}/revoked`, 'admin'],
  ['GET', `${CERT}/download/:ids`, 'admin'],
  ['DELETE', `${CERT}/revoke/:ids`, 'admin'],
  ['DELETE', `${CERT}/delete/:ids`, 'admin'],
  ['GET', `${CERT}/:hash`, 'admin'],
  ['DELETE', `${CERT}/:hash`, 'admin'],
  ['GET', `${CERT}/:hash/download`, 'admin'],
  ['PUT', '/Marti/api/groups/active', 'all'],
  ['PUT', '/Marti/api/groups/activebits', 'all'],
  ['PUT', '/Marti/api/groups/activeForce', 'admin'],
  ['POST', '/Marti/api/groups/update', 'admin'],
  ['GET', '/Marti/api/groups/update/:username', 'admin'],
  ['GET', '/Marti/api/groups', 'admin'],
  ['GET', '/Marti/api/groups/members', 'admin'],
  ['GET', '/Marti/api/groupprefix', 'admin'],
  ['GET', '/Marti/api/groups/all', 'all'],
  ['GET', '/Marti/api/groups/groupCacheEnabled', 'all'],
  ['GET', '/Marti/api/groups/user', 'admin'],
  ['GET', '/Marti/api/groups/:name/:direction', 'all'],
  ['GET', '/Marti/api/clientEndPoints', 'all'],
  ['GET', '/Marti/api/subscriptions/all', 'all'],
  ['DELETE', '/Marti/api/subscriptions/delete/:uid', 'admin'],
  ['GET', '/Marti/api/subscription/:uid', 'all'],
  ['GET', '/Marti/api/contacts/all', 'all'],
  ['GET', '/Marti/api/contacts/all/lite', 'all'],
  ['GET', '/Marti/api/contacts/all/full', 'all'],
  ['POST', '/Marti/api/stream/notices', 'admin'],
  ['GET', '/Marti/api/pagedmissions', 'all'],
  ['GET', '/Marti/api/missioncount', 'all'],
  ['GET', '/Marti/api/missions', 'all'],
  ['GET', '/Marti/api/missions/all/invitations', 'all'],
  ['GET', '/Marti/api/missions/invitations', 'all'],
  ['GET', '/Marti/api/missions/guid/:guid', 'all'],
  ['GET', '/Marti/api/missions/:name', 'all'],
  ['GET', '/Marti/api/missions/guid/:guid/changes', 'all'],
  ['GET', '/Marti/api/missions/:name/changes', 'all'],
  ['GET', '/Marti/api/missions/guid/:guid/cot', 'all'],
  ['GET', '/Marti/api/missions/:name/cot', 'all'],
  ['GET', '/Marti/api/missions/guid/:guid/subscription', 'all'],
  ['GET', '/Marti/api/missions/:name/subscription', 'all'],
  ['GET', '/Marti/api/missions/guid/:guid/subscriptions/roles', 'all'],
  ['GET', '/Marti/api/missions/:name/subscriptions/roles', 'all'],
  ['GET', '/Marti/api/missions/guid/:guid/subscriptions', 'all'],
  ['GET', '/Marti/api/missions/:name/subscriptions', 'all'],
  ['GET', '/Marti/api/missions/guid/:guid/role', 'all'],
  ['GET', '/Marti/api/missions/:name/role', 'all'],
  ['GET', '/Marti/api/missions/guid/:guid/contacts', 'all'],
  ['GET', '/Marti/api/missions/:name/contacts', 'all'],
  ['GET', '/Marti/api/missions/guid/:guid/invitations', 'all'],
  ['GET', '/Marti/api/missions/:name/invitations', 'all'],
  ['PUT', '/Marti/api/missions/guid/:guid/subscription', 'all'],
  ['PUT', '/Marti/api/missions/:name/subscription', 'all'],
  ['DELETE', '/Marti/api/missions/guid/:guid/subscription', 'all'],
  ['DELETE', '/Marti/api/missions/:name/subscription', 'all'],
  ['DELETE', '/Marti/api/missions', 'writers'],
  ['PUT', '/Marti/api/missions/:name', 'writers'],
  ['POST', '/Marti/api/missions/:name', 'writers'],
  ['DELETE', '/Marti/api/missions/:name', 'writers'],
  ['PUT', '/Marti/api/missions/:name/keywords', 'writers'],
  ['DELETE', '/Marti/api/missions/:name/keywords', 'writers'],
  ['DELETE', '/Marti/api/missions/:name/keywords/:keyword', 'writers'],
  ['PUT', '/Marti/api/missions/guid/:guid/contents', 'writers'],
  ['PUT', '/Marti/api/missions/:name/contents', 'writers'],
  ['DELETE', '/Marti/api/missions/guid/:guid/contents', 'writers'],
  ['DELETE', '/Marti/api/missions/:name/contents', 'writers'],
  ['PUT', '/Marti/api/missions/guid/:guid/role', 'writers'],
  ['PUT', '/Marti/api/missions/:name/role', 'writers'],
  ['GET', '/Marti/api/missions/all/subscriptions', 'admin'],
  ['GET', `${MISSIONS}/logs/entries/:id`, 'all'],
  ['POST', `${MISSIONS}/logs/entries`, 'writers'],
  ['PUT', `${MISSIONS}/logs/entries`, 'writers'],
  ['DELETE', `${MISSIONS}/logs/entries/:id`, 'writers'],
  ['PUT', `${MISSIONS}/guid/:guid/parent/guid/:parentGuid`, 'writers'],
  ['PUT', `${MISSIONS}/:name/parent/:parent`, 'writers'],
  ...both('all', 'GET /token', 'GET /kml', 'GET /archive', 'GET /layers', 'GET /layers/:layer', 'GET /parent'),
  ...both('all', 'GET /children', 'GET /log'),
  ...both('writers', 'PUT /contents/missionpackage', 'PUT /layers', 'DELETE /layers', 'PUT /layers/parent'),
  ...both('writers', 'PUT /layers/:layer/name', 'PUT /layers/:layer/position', 'PUT /password', 'DELETE /password'),
  ...both('writers', 'PUT /expiration', 'PUT /invite/:type/:invitee', 'DELETE /invite/:type/:invitee', 'POST /invite'),
  ...both('writers', 'DELETE /parent', 'POST /feed', 'DELETE /feed/:uid', 'POST /externaldata'),
  ...both('writers', 'DELETE /externaldata/:uid', 'POST /externaldata/:uid/change', 'POST /maplayers'),
  ...both('writers', 'PUT /maplayers', 'DELETE /maplayers/:uid'),
  ['GET', '/Marti/api/video', 'all'],
  ['POST', '/Marti/api/video', 'writers'],
  ['GET', '/Marti/api/video/:uid', 'all'],
  ['PUT', '/Marti/api/video/:uid', 'writers'],
  ['DELETE', '/Marti/api/video/:uid', 'writers'],
  ['GET', '/Marti/vcm', 'all'],
  ['POST', '/Marti/vcm', 'writers'],
  ['DELETE', '/Marti/vcm', 'writers'],
  ['GET', '/Marti/api/injectors/cot/uid', 'admin'],
  ['POST', '/Marti/api/injectors/cot/uid', 'admin'],
  ['DELETE', '/Marti/api/injectors/cot/uid', 'admin'],
  ['GET', '/Marti/api/injectors/cot/uid/:uid', 'admin'],
  ['GET', '/Marti/api/repeater/list', 'admin'],
  ['GET', '/Marti/api/repeater/period', 'admin'],
  ['POST', '/Marti/api/repeater/period', 'admin'],
  ['GET', '/Marti/api/repeater/remove/:uid', 'admin'],
  ['DELETE', '/Marti/api/repeater/remove/:uid', 'admin'],
  ['GET', '/Marti/api/retention/policy', 'admin'],
  ['PUT', '/Marti/api/retention/policy', 'admin'],
  ['GET', '/Marti/api/retention/service/schedule', 'admin'],
  ['PUT', '/Marti/api/retention/service/schedule', 'admin'],
  ['GET', '/Marti/api/retention/missionarchiveconfig', 'admin'],
  ['PUT', '/Marti/api/retention/missionarchiveconfig', 'admin'],
  ['GET', '/Marti/api/retention/missionarchive', 'admin'],
  ['GET', '/Marti/api/retention/runs', 'admin'],
  ['POST', '/Marti/api/retention/runs', 'admin'],
  ['GET', '/Marti/api/plugins/info/all', 'admin'],
  ['POST', '/Marti/api/plugins/info/all/started', 'admin'],
  ['POST', '/Marti/api/plugins/info/started', 'admin'],
  ['POST', '/Marti/api/plugins/info/enabled', 'admin'],
  ['POST', '/Marti/api/plugins/info/archive', 'admin'],
  ['GET', '/Marti/api/cot/sa', 'all'],
  ['GET', '/Marti/api/cot/xml/:uid', 'all'],
  ['GET', '/Marti/api/cot/xml/:uid/all', 'all'],
  ['GET', '/files/api/config', 'all'],
  ['GET', '/Marti/api/iconset/all/uid', 'all'],
  ['GET', '/Marti/sync/search', 'all'],
  ['GET', '/Marti/api/sync/search', 'all'],
  ['GET', '/Marti/sync/missionquery', 'all'],
  ['GET', '/Marti/sync/content', 'all'],
  ['GET', '/Marti/api/files/metadata', 'all'],
  ['GET', '/Marti/api/files/metadata/count', 'all'],
  ['GET', '/Marti/api/files/:hash', 'all'],
  ['POST', '/Marti/sync/upload', 'writers'],
  ['POST', '/Marti/sync/missionupload', 'writers'],
  ['POST', '/Marti/sync/delete', 'writers'],
  ['DELETE', '/Marti/sync/delete', 'writers'],
  ['DELETE', '/Marti/api/files/:hash', 'writers'],
  ['PUT', '/Marti/api/sync/metadata/:hash/:what', 'writers'],
  ['GET', '/actuator/health', 'admin'],
  ['GET', '/actuator/metrics', 'admin'],
  ['GET', '/actuator/metrics/:name', 'admin'],
  ['GET', '/actuator/takserver-database', 'admin'],
  ['GET', '/actuator/custom-memory-metrics', 'admin'],
  ['GET', '/actuator/custom-cpu-metrics', 'admin'],
  ['GET', '/actuator/custom-disk-metrics', 'admin'],
  ['GET', '/actuator/custom-network-metrics', 'admin'],
  ['GET', '/actuator/custom-queue-metrics', 'admin'],
];
const OTHERS: CoreRole[] = ['ROLE_ANONYMOUS', 'ROLE_READONLY', 'ROLE_NON_ADMIN_UI', 'ROLE_WEBTAK'];
const SAFE = new Set(['GET', 'HEAD']);

const named = (path: string): string =>
  path.replace(':ids', '1,2').replace(':direction', 'IN').replaceAll(/:\w+/g, 'some.thing');

describe('the gate of the admin API', () => {
  const world = adminWorld();
  world.people.addGroup('core_Ops');
  world.people.addPerson('ada', 'x').groups.push('core_Ops');
  afterAll(() => world.end());

  it('routes exactly the table', () => {
    const routed = adminRoutes(world.options).flatMap(({ path, handlers }) =>
      Object.keys(handlers).map((method) => `${method} ${path}`),
    );
    expect(routed.toSorted()).toEqual(ROUTES.map(([method, path]) => `${method} ${path}`).toSorted());
    const openTo = (who: string): string[] =>
      ROUTES.filter(([, , access]) => access === who).map(([method, path]) => `${method} ${path}`);
    expect([...OPEN_TO_ALL].toSorted()).toEqual(openTo('all').toSorted());
    expect([...OPEN_TO_WRITERS].toSorted()).toEqual(openTo('writers').toSorted());
  });

  it.each(ROUTES)('%s %s: %s', async (method, path, access) => {
    for (const role of OTHERS) {
      const { status, type } = await world.ask(method, named(path), { as: byCertificate('ada', role) });
      const isShut = access === 'admin' || (access === 'writers' && role === 'ROLE_READONLY');
      if (isShut) expect([status, type]).toEqual([403, 'text/html;charset=utf-8']);
      else expect(status).not.toBe(403);
    }
    const { status } = await world.ask(method, named(path));
    expect(status === 403 || status === 405 || status === 503).toBe(false);
  });

  it.each(['/Marti/api/missing', '/Marti', '/', '/favicon.ico', '/actuator', '/Marti/api/inputs', '/actuator/env'])(
    'has nothing at %s: 404 for admins, 403 for all others, 403 to delete it',
    async (path) => {
      expect((await world.ask('GET', path)).status).toBe(404);
      expect((await world.ask('POST', path)).status).toBe(404);
      expect((await world.ask('DELETE', path)).status).toBe(403);
      expect((await world.ask('GET', path, { as: byCertificate('ada') })).status).toBe(403);
    },
  );

  it('knows 405 with the methods that there are, and forbids to delete what cannot be deleted', async () => {
    const { status, headers, type } = await world.ask('POST', CERT);
    expect([status, headers.get('allow'), type]).toEqual([405, 'GET, HEAD', 'text/html;charset=utf-8']);
    for (const path of ['/Marti/api/version', CERT, `${CERT}/active`])
      expect((await world.ask('DELETE', path)).status).toBe(403);
    expect((await world.ask('PATCH', CERT)).status).toBe(405);
    expect((await world.ask('POST', '/Marti/api/version', { as: byCertificate('ada') })).status).toBe(403);
  });

  it.each([
    '/Marti/api/certadmin/cert/',
    '/Marti/api/certadmin/%63ert',
    '/Marti/api/version/../certadmin/cert',
    '/Marti/api/version/%2e%2e/certadmin/cert',
    '/Marti/api/groups/user/',
    '//Marti/api/certadmin/cert',
    '/Marti/api/groups/all;x/../user',
    '/marti/api/certadmin/cert',
  ])('is not passed by another spelling: %s', async (path) => {
    expect((await world.ask('GET', path, { as: byCertificate('ada') })).status).toBe(403);
  });

  it('answers HEAD as GET, without a body', async () => {
    expect(await world.ask('HEAD', '/Marti/api/version')).toMatchObject({ status: 200, text: '' });
    expect((await world.ask('HEAD', CERT, { as: byCertificate('ada') })).status).toBe(403);
  });

  it.each(ROUTES.filter(([method]) => !SAFE.has(method)))(
    'takes %s %s from no page of another site',
    async (method, path) => {
      const foreign = [
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { origin: 'http://cot.example.org:8443' },
        { origin: 'https://cot.example.org:9443' },
        { origin: 'https://cot.example.org:8443@evil.example' },
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
      ];
      for (const headers of foreign) {
        expect((await world.ask(method, named(path), { headers })).status).toBe(403);
      }
      const own = { origin: 'https://cot.example.org:8443', 'sec-fetch-site': 'same-origin' };
      expect((await world.ask(method, named(path), { headers: own })).status).not.toBe(403);
      expect(world.revoked).toEqual([]);
    },
  );

  it('lets pages of other sites read what the browser does not show them', async () => {
    const headers = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    const { status, headers: answered } = await world.ask('GET', '/Marti/api/version', { headers });
    expect([status, answered.get('access-control-allow-origin')]).toEqual([200, null]);
  });

  it('says nothing of what went wrong inside, and logs it', async () => {
    const broken = adminWorld();
    broken.options.database.cotCount = () => Promise.reject(new Error('secret of the inside'));
    const { status, type, text } = await broken.ask('GET', '/Marti/api/database/cotCount');
    expect([status, type]).toEqual([500, 'text/html;charset=utf-8']);
    broken.end();
    expect(text).not.toContain('secret');
    expect(broken.log.events).toContainEqual(expect.objectContaining({ level: 'error', event: 'core.failed' }));
  });

  it('answers 503 when the database is away', async () => {
    world.certificates.unavailable(new AppError('unavailable', 'away'));
    const answer = await world.ask('GET', `${CERT}/AA`);
    world.certificates.unavailable(undefined);
    expect(answer).toMatchObject({ status: 503, type: 'text/html;charset=utf-8' });
  });

  it('answers 503 when a lock was not to be had in time', async () => {
    const locked = adminWorld();
    locked.options.database.cotCount = () =>
      Promise.reject(Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' }));
    const { status, type } = await locked.ask('GET', '/Marti/api/database/cotCount');
    locked.end();
    expect([status, type]).toEqual([503, 'text/html;charset=utf-8']);
  });

  it('logs who changes what', async () => {
    await world.ask('DELETE', `${CERT}/delete/7`, { as: ADMIN });
    expect(world.log.events).toContainEqual({
      level: 'info',
      event: 'core.request',
      fields: {
        method: 'DELETE',
        path: `${CERT}/delete/7`,
        status: 200,
        user: 'svc_api',
        by: 'certificate',
      },
    });
  });
});
