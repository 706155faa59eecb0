// The real provider's own client speaks to the embedded one, over a socket and kept connections as in the product.

import { Configuration, CoreApi, IntentEnum, ResponseError, RootApi, UserTypeEnum } from '@goauthentik/api';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ensureProvider } from '@holdfast/identity/bootstrap';
import { createIdentityApi } from '@holdfast/identity/http/app';
import { IDENTITY_MIGRATIONS } from '@holdfast/identity/store/migrations/index';
import { identityStore } from '@holdfast/identity/store/store';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { migrate } from '@holdfast/kit/migrate';
import { Secret } from '@holdfast/kit/secret';
import { type RunningServer, serveApp } from '../../shared/runtime/node-server.ts';
import { freeOffset } from '../e2e/embedded/embedded.ts';
import { emptyDatabase } from '../e2e/embedded/empty-database.ts';
import { memoryLog } from '../http/fake-deps.ts';

const KEY = 'the-token-of-the-official-client-0123';
const secretKey = new Secret('secret key of the tests: 0123456789 abcdefgh');
const now = (): Date => new Date();
const log = memoryLog();
const database = emptyDatabase();
let server: RunningServer;
let core: CoreApi;
let root: RootApi;
let check: ReturnType<typeof identityStore>['checkPassword'];

beforeAll(async () => {
  const options = { name: 'identity-test', called: "the identity provider's database", variable: 'IDENTITY_URL' };
  const run = keptDatabase(new Secret(database.url()), options);
  await run((sql) => migrate(sql, IDENTITY_MIGRATIONS));
  await ensureProvider({ run, secretKey, apiToken: new Secret(KEY) });
  const store = identityStore({ run, secretKey, now, log });
  check = store.checkPassword;
  const api = createIdentityApi({ store, now, log, release: '2026.8.3' });
  const port = 8080 + (await freeOffset());
  server = await serveApp((request) => api.fetch(request), [{ address: '127.0.0.1', port }], log);
  const configuration = new Configuration({ basePath: `http://127.0.0.1:${port}/api/v3`, accessToken: KEY });
  core = new CoreApi(configuration);
  root = new RootApi(configuration);
});
afterAll(async () => server.close(500));

it('reads what is up and who it is', async () => {
  expect(await root.rootConfigRetrieve()).toMatchObject({ capabilities: [] });
  expect((await core.coreUsersMeRetrieve()).user).toMatchObject({ username: 'akadmin', isSuperuser: true });
});

it('makes, finds, changes and deletes people, groups and app passwords', async () => {
  const group = await core.coreGroupsCreate({ groupRequest: { name: 'cot_blue' } });
  const user = await core.coreUsersCreate({
    userRequest: { username: 'anna', name: 'Anna', groups: [group.pk], attributes: { app_expires: 5 } },
  });
  expect(user).toMatchObject({ groups: [group.pk], type: UserTypeEnum.Internal, dateJoined: expect.any(Date) });
  await core.coreUsersSetPasswordCreate({ id: user.pk, userPasswordSetRequest: { password: 'secret one' } });
  const attempt = { username: 'anna', appPasswords: true, place: { status: 'usual' } } as const;
  expect(await check({ ...attempt, password: 'secret one' })).toEqual({ pk: user.pk });
  const found = await core.coreUsersList({
    attributes: '{"app_expires__lt": 6}',
    groupsByName: ['cot_blue'],
    groupsByPk: [group.pk],
    type: [UserTypeEnum.Internal, UserTypeEnum.External],
    isActive: true,
    ordering: '-last_login',
    dateJoinedLt: new Date(Date.now() + 60_000),
  });
  expect(found.pagination).toMatchObject({ count: 1, next: 0 });
  expect(found.results[0]).toMatchObject({ username: 'anna', groupsObj: [{ name: 'cot_blue' }] });
  const token = await core.coreTokensCreate({
    tokenRequest: {
      identifier: 'anna-1',
      user: user.pk,
      intent: IntentEnum.AppPassword,
      expires: new Date(Date.now() + 3_600_000),
    },
  });
  expect(token.expires).toBeInstanceOf(Date);
  const { key } = await core.coreTokensViewKeyRetrieve({ identifier: 'anna-1' });
  expect(await check({ ...attempt, password: key })).toEqual({ pk: user.pk });
  await core.coreGroupsRemoveUserCreate({ groupUuid: group.pk, userAccountRequest: { pk: user.pk } });
  expect((await core.coreGroupsRetrieve({ groupUuid: group.pk })).users).toEqual([]);
  await core.coreUsersDestroy({ id: user.pk });
  expect(await check({ ...attempt, password: key })).toBe('refused');
});

it('is told what was wrong', async () => {
  const refused = await core
    .coreUsersCreate({ userRequest: { username: 'AKADMIN', name: '' } })
    .catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ResponseError);
  const { response } = refused as ResponseError;
  expect([response.status, await response.json()]).toEqual([400, { username: ['This field must be unique.'] }]);
});
