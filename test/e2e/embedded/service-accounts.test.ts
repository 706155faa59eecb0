// Service accounts of a running stack: what their certificates open at the core, and that nothing
// is left of a deleted one.

import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ServiceAccountView } from '../../../shared/people/service-accounts/service-accounts.ts';
import { asAdministrator } from './devices-api.ts';
import { eventually, newStack, stop, type TestStack } from './embedded.ts';
import { RUN, stands } from './running-stack.ts';

let stack: TestStack;
const { ask, json, download } = asAdministrator(() => stack);

beforeAll(async () => {
  stack = await newStack();
  expect((await stack.start([], { env: { UPDATES_URL: 'off' } })).code).toBe(0);
});

const make = (name: string, kind: string): Promise<ServiceAccountView> =>
  json('POST', '/api/service-accounts', { name: `${name}${RUN}`, kind });
const fileOf = ({ certificate }: ServiceAccountView): string => certificate?.file ?? '';
const listed = async (): Promise<ServiceAccountView[]> =>
  (await json<{ results: ServiceAccountView[] }>('GET', '/api/service-accounts')).results;
const coreDirectory = (): string => join(stack.data, 'core');
const usersFile = (): string => readFileSync(join(coreDirectory(), 'UserAuthenticationFile.xml'), 'utf8');

/**
 * What the core answers to whoever shows this PEM, asked for something that only administrators
 * may; undefined: not let in.
 */
async function admittedWith(pem: Buffer): Promise<number | undefined> {
  const asking = request({
    host: '127.0.0.1',
    port: 8443 + stack.offset,
    path: '/Marti/api/certadmin/cert',
    cert: pem,
    key: pem,
    ca: readFileSync(join(coreDirectory(), 'certs/files/ca.pem')),
    agent: false,
  });
  asking.end();
  try {
    const [answer] = (await once(asking, 'response')) as [{ statusCode: number; resume(): void }];
    answer.resume();
    return answer.statusCode;
  } catch {
    return undefined;
  }
}

describe('a service account', () => {
  it('of the kind admin opens the admin API of the core when it is made, and one of the kind data does not', async () => {
    const [data, admin] = [await make('reader', 'data'), await make('ops', 'admin')];
    expect(await admittedWith(await download(fileOf(data), '?format=pem'))).toBe(403);
    expect(await admittedWith(await download(fileOf(admin), '?format=pem'))).toBe(200);
    const waiting = readdirSync(join(coreDirectory(), 'admin-grants')).filter((name) => !name.endsWith('.refused'));
    expect(waiting).toEqual([]);
  });

  it('that is deleted opens nothing any more, and its right is gone from the users file', async () => {
    const account = await make('gone', 'admin');
    const pem = await download(fileOf(account), '?format=pem');
    expect(await json('DELETE', `/api/service-accounts/${account.id}`)).toMatchObject({ is_active: false });
    await eventually('it is not let in', async () => (await admittedWith(pem)) === undefined, 10_000);
    await eventually('its right is gone', async () => !usersFile().includes(account.username), 10_000);
    expect((await ask('GET', `/api/ops/certs/${fileOf(account)}/download`)).status).toBe(403);
  });

  it('that was deleted is brought back with another certificate, and the former one stays revoked', async () => {
    const first = await make('again', 'data');
    const pem = await download(fileOf(first), '?format=pem');
    await json('DELETE', `/api/service-accounts/${first.id}`);
    const second = await make('again', 'admin');
    expect(second.id).toBe(first.id);
    expect(second.certificate?.serial).not.toBe(first.certificate?.serial);
    expect(await admittedWith(await download(fileOf(second), '?format=pem'))).toBe(200);
    expect(await admittedWith(pem)).toBeUndefined();
  });

  it('cannot be given the right of another by a file in the spool', async () => {
    const spool = join(coreDirectory(), 'admin-grants');
    const { id, certificate } = await make('sly', 'data');
    const pem = await download(certificate?.file ?? '', '?format=pem');
    const [own = ''] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(pem.toString()) ?? [];
    for (const name of ['svc_api', `svc_ops${RUN}`]) writeFileSync(join(spool, `${name}.pem`), own);
    const refused = ['svc_api.pem.refused', `svc_ops${RUN}.pem.refused`];
    await eventually(
      'both are refused',
      async () => refused.every((name) => readdirSync(spool).includes(name)),
      10_000,
    );
    expect(await admittedWith(pem)).toBe(403);
    await json('DELETE', `/api/service-accounts/${id}`);
  });
});

it.skipIf(stands)(
  "the stack's own have their certificates from the start, and keep the same ones over a restart",
  async () => {
    const own = async (): Promise<unknown[]> =>
      (await listed())
        .filter(({ username }) => ['svc_api', 'svc_nodered', 'svc_probe'].includes(username))
        .map(({ username, kind, certificate }) => [username, kind, certificate?.state, certificate?.fingerprint]);
    await eventually(
      'all have one',
      async () => (await own()).every((each) => (each as unknown[])[2] === 'active'),
      20_000,
    );
    const before = await own();
    expect(before).toHaveLength(3);
    expect((await stop(stack.data)).code).toBe(0);
    expect((await stack.start([], { env: { UPDATES_URL: 'off' } })).code).toBe(0);
    expect(await own()).toEqual(before);
  },
);
