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
  it('make one with its groups and its certificate, and show where to download it', async () => {
    const [visitor, path] = await withAccount();
    const html = await visitor.page(`${path}?done=made`);
    expect(html).toContain('The account is made.');
    expect(html).toContain('href="/api/ops/certs/svc_sensor.p12/download"');
    expect(html).toContain('atakatak');
    expect(html).toContain('core_Blue');
    const list = await visitor.page(LIST);
    expect(list).toMatch(/svc_sensor.*core_Blue.*In force/s);
    expect((await visitor.get('/api/ops/certs/svc_sensor.p12/download')).status).toBe(200);
  });

  it('hand the key out at once where keys are not kept, and never again', async () => {
    const visitor = await holder({ KEEP_CLIENT_KEYS: 'false' });
    const answer = await visitor.post(LIST, { name: 'sensor', kind: 'data' });
    const html = await answer.text();
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([201, 'no-store']);
    expect(html).toMatch(/href="data:application\/x-pkcs12;base64,[\w+/=]+" download="svc_sensor\.p12"/);
    const one = await visitor.page(`${LIST}/${await idOf(visitor, 'svc_sensor')}`);
    expect(one).toContain('no key of it is kept here');
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

  it('tell of the account of management that a file is its certificate where the core has no record of it', async () => {
    const visitor = await holder();
    await visitor.deps.identity.accounts.create({ username: 'svc_api', name: 'api', kind: 'service' });
    const list = await visitor.page(LIST);
    expect(list).toMatch(/svc_api.*Made at the start/s);
    expect(list).not.toMatch(/svc_api(?:(?!svc_).)*No certificate/s);
    const one = await visitor.page(`${LIST}/${await idOf(visitor, 'svc_api')}`);
    expect(one).toContain('svc_api.p12, made at the start');
  });

  it('say what deleting does, ask once, and show that the account is out', async () => {
    const [visitor, path] = await withAccount();
    expect(await visitor.page(path)).toMatch(/<details[^>]*>.*cut off at once.*revoked for good.*Delete svc_sensor</s);
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
    expect(await visitor.page(`${LIST}/${id}`)).toContain('It cannot be deleted here.');
    const answer = await visitor.post(`${LIST}/${id}/delete`);
    expect([answer.status, await answer.text()]).toEqual([409, expect.stringContaining('belongs to the stack itself')]);
  });

  it('are there while the core is away, and say what is missing and why', async () => {
    const [visitor, path] = await withAccount();
    visitor.deps.core.certificates = async () => {
      throw new AppError('unavailable', 'The core does not answer.');
    };
    for (const place of [LIST, path]) {
      const html = await visitor.page(place);
      expect(html).toMatch(/written (?:them|it) down.*The core does not answer\./s);
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
