import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { visit, type Visitor } from '../pages/page-session.ts';
import { peopleWorld } from './fake-people.ts';

const LIST = '/service-accounts';
const idOf = async ({ deps }: Visitor, username: string): Promise<string> =>
  String((await deps.identity.accounts.named(username))?.id);

async function holder(values: Record<string, string> = {}): Promise<Visitor> {
  const { deps, around } = await peopleWorld(values);
  return visit({ deps, around });
}

async function withAccount(username = 'webadmin'): Promise<[Visitor, path: string]> {
  const visitor = await holder();
  await visitor.deps.identity.groups.create('core_Blue');
  const answer = await visitor.post(LIST, { name: 'sensor', kind: 'data', groups: ['core_Blue'] });
  expect(answer.status).toBe(303);
  const path = `${LIST}/${await idOf(visitor, 'svc_sensor')}`;
  return [username === 'webadmin' ? visitor : await visit({ username, deps: visitor.deps }), path];
}

describe('the pages of the service accounts', () => {
  it('add an account with its groups and certificate, and offer the download', async () => {
    const [visitor, path] = await withAccount();
    const html = await visitor.page(`${path}?done=made`);
    expect(html).toContain('Account added.');
    expect(html).toContain('href="/api/ops/certs/svc_sensor.p12/download"');
    expect(html).toContain('atakatak');
    expect(html).toContain('core_Blue');
    const list = await visitor.page(LIST);
    expect(list).toMatch(/svc_sensor.*core_Blue.*Active/s);
    expect((await visitor.get('/api/ops/certs/svc_sensor.p12/download')).status).toBe(200);
  });

  it('offer the key only once when keys are not stored', async () => {
    const visitor = await holder({ KEEP_CLIENT_KEYS: 'false' });
    const answer = await visitor.post(LIST, { name: 'sensor', kind: 'data' });
    const html = await answer.text();
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([201, 'no-store']);
    expect(html).toMatch(/href="data:application\/x-pkcs12;base64,[\w+/=]+" download="svc_sensor\.p12"/);
    const one = await visitor.page(`${LIST}/${await idOf(visitor, 'svc_sensor')}`);
    expect(one).toContain('because its key is not stored');
    expect(one).not.toContain('base64');
  });

  it.each([
    [422, 'name', { name: 'a b', kind: 'data' }],
    [422, 'kind', { name: 'ok', kind: 'root' }],
    [422, 'groups', { name: 'ok', kind: 'data', groups: ['core_Gone'] }],
    [409, '', { name: 'api', kind: 'data' }],
  ])(
    'answer %i with what is wrong with the %s, the form filled in, and make nothing',
    async (status, field, fields) => {
      const visitor = await holder();
      await visitor.deps.identity.groups.create('core_"Blue"');
      const answer = await visitor.post(LIST, fields);
      const html = await answer.text();
      expect(answer.status).toBe(status);
      expect(html).toContain(`value="${fields.name}"`);
      expect(html).toContain(field === '' ? 'role="alert"' : `id="${field}-fault"`);
      expect(html).toContain('core_&quot;Blue&quot;');
      expect(visitor.deps.theCore.certificates).toEqual([]);
    },
  );

  it('name the file of svc_api when the core has no record of its certificate', async () => {
    const visitor = await holder();
    await visitor.deps.identity.accounts.create({ username: 'svc_api', name: 'api', kind: 'service' });
    const list = await visitor.page(LIST);
    expect(list).toMatch(/svc_api.*Created at startup/s);
    expect(list).not.toMatch(/svc_api(?:(?!svc_).)*No certificate/s);
    const one = await visitor.page(`${LIST}/${await idOf(visitor, 'svc_api')}`);
    expect(one).toContain('svc_api.p12, created at startup');
  });

  it('confirm a deletion with its consequences, and show the deleted account', async () => {
    const [visitor, path] = await withAccount();
    expect(await visitor.page(path)).toMatch(
      /<details[^>]*>.*disconnected immediately.*revoked permanently.*Delete svc_sensor</s,
    );
    const answer = await visitor.post(`${path}/delete`);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, `${path}?done=deleted`]);
    const html = await visitor.page(`${path}?done=deleted`);
    expect(html).toMatch(/This account is deleted/);
    expect(html).not.toContain('/delete"');
    expect(html).not.toContain('/download');
    expect((await visitor.deps.identity.accounts.named('svc_sensor'))?.isActive).toBe(false);
  });

  it('mark those of the stack, which cannot be deleted', async () => {
    const visitor = await holder();
    const { id } = await visitor.deps.identity.accounts.create({ username: 'svc_api', name: 'api', kind: 'service' });
    await visitor.deps.identity.accounts.create({ username: 'svc_canary', name: 'canary', kind: 'service' });
    const list = await visitor.page(LIST);
    expect(list).toContain('part of the stack');
    expect(list).not.toContain('svc_canary');
    expect(await visitor.page(`${LIST}/${id}`)).toContain('You can&#39;t delete it here.');
    const answer = await visitor.post(`${LIST}/${id}/delete`);
    expect([answer.status, await answer.text()]).toEqual([409, expect.stringContaining('is one of Holdfast')]);
  });

  it('work while the core is unavailable, and say what is missing and why', async () => {
    const [visitor, path] = await withAccount();
    visitor.deps.core.certificates = async () => {
      throw new AppError('unavailable', 'The core does not answer.');
    };
    for (const place of [LIST, path]) {
      const html = await visitor.page(place);
      expect(html).toMatch(/as Holdfast recorded (?:them|it).*The core does not answer\./s);
      expect(html).toContain('svc_sensor');
    }
  });

  it('show nothing to press to who may only look, and 404 for one that is not there', async () => {
    const [vera, path] = await withAccount('vera');
    for (const place of [LIST, path])
      expect(await vera.page(place)).not.toMatch(/action="\/service-accounts|\/download/);
    for (const id of ['999999', '0', 'x', '%3Cscript%3E']) await vera.page(`${LIST}/${id}`, 404);
  });
});
