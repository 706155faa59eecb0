// Certificates, enrollment, service accounts and what is on the stream: the same answers on Node and in workerd.

import { beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../e2e/embedded/embedded.ts';
import { type Answer, READER, twoHosts } from './two-hosts.ts';

const { apis, admin, ask, both } = twoHosts();
/** Of the user ada, who has a certificate called phone and nothing else. */
let ada: number;

async function made(path: string, body: object): Promise<{ id: number }> {
  const headers = { 'content-type': 'application/json', ...admin() };
  const answer = await ask(apis()[0], path, { method: 'POST', headers, body: JSON.stringify(body) });
  expect([path, answer.status, answer.body]).toEqual([path, 201, expect.anything()]);
  return answer.body as { id: number };
}

beforeAll(async () => {
  await made('/api/groups', { name: 'blue' });
  ({ id: ada } = await made('/api/users', { username: 'ada', name: 'Ada', groups: ['blue'] }));
  await made('/api/ops/certs', { username: 'ada', name: 'phone' });
});

describe('Node and workerd give the same answer about devices', () => {
  it.each([
    ['/api/ops/certs', 200],
    ['/api/ops/certs?username=ada', 200],
    ['/api/ops/certs?username=ADA&status=active,expired&page=1&page_size=1', 200],
    ['/api/ops/certs?status=revoked', 200],
    ['/api/ops/certs?status=lost', 422],
    ['/api/ops/certs/ca', 200],
    ['/api/ops/certs/crl', 200],
    ['/api/ops/certs/ada~phone.p12', 200],
    ['/api/ops/certs/ada~tablet.p12', 404],
    ['/api/ops/certs/ada~phone.p12/download?format=tar', 422],
    ['/api/ops/certs/svc_api.p12', 200],
    ['/api/me/certs', 200],
    ['/api/service-accounts', 200],
    ['/api/service-accounts?page=2&page_size=2', 200],
    ['/api/service-accounts/4711', 404],
    ['/api/clients', 200],
    ['/api/clients?page=0', 422],
    ['/api/plugins', 200],
    ['/api/users?include=certs', 200],
    ['/api/users?include=certs&search=ada', 200],
    ['/api/users/{ada}', 200],
    ['/api/users/{ada}/enrollment', 200],
    ['/api/users/{ada}/enrollment/package?app=atak', 200],
    ['/api/users/{ada}/enrollment/package?app=winamp', 422],
    ['/api/users/4711/enrollment', 404],
    ['/api/me/enrollment', 200],
    ['/api/health/core', 200],
    ['/api/health/probe', 200],
    ['/api/health/certificates', 200],
  ])('to an administrator: %s is %d', async (path, status) =>
    expect((await both(path.replace('{ada}', String(ada)), { headers: admin() })).status).toBe(status),
  );

  it('and all of it is well: what is compared are no failures', async () => {
    for (const module of ['core', 'probe', 'certificates']) {
      const { body } = await both(`/api/health/${module}`, { headers: READER });
      expect([module, (body as { status: string }).status]).toEqual([module, 'ok']);
    }
    const { body } = await both('/api/users?include=certs&search=ada', { headers: admin() });
    expect(body).toMatchObject({ results: [{ username: 'ada', certs: [{ file: 'ada~phone.p12', state: 'active' }] }] });
  });

  it.each(['/api/ops/certs', '/api/ops/certs/crl', '/api/service-accounts', '/api/clients', '/api/plugins'])(
    'to a reader of the metrics: %s',
    async (path) => void (await both(path, { headers: READER })),
  );

  it.each([
    ['GET', '/api/ops/certs', 401],
    ['POST', '/api/ops/certs', 401],
    ['POST', '/api/ops/certs/ada~phone.p12/revoke', 401],
    ['GET', '/api/ops/certs/ada~phone.p12/download', 401],
    ['POST', '/api/service-accounts', 401],
    ['DELETE', '/api/clients/nobody', 401],
  ])('to nobody: %s %s is %d', async (method, path, status) =>
    expect((await both(path, { method })).status).toBe(status),
  );

  it('to what is done with the devices of somebody, each host with somebody of its own', async () => {
    const names = ['on-node', 'on-workerd'];
    const [node = [], workerd] = await Promise.all(apis().map((api, at) => actionsAt(api, names[at] ?? '')));
    expect(workerd).toEqual(node);
    const wanted = [
      [201, 201, 409, 422],
      [200, 200, 200, 200, 200],
      [200, 201, 201, 200, 200, 200, 204, 200],
      [201, 409, 200, 200, 200],
      [200, 200, 200, 403],
    ];
    expect(node.map(({ status }) => status)).toEqual(wanted.flat());
  });
});

/** Each deed with its answer, where the name and what is new in each run are left out. */
async function actionsAt(api: string, name: string): Promise<Pick<Answer, 'status' | 'headers' | 'body'>[]> {
  const answers: Answer[] = [];
  const request = async (method: string, path: string, body?: object): Promise<Answer> => {
    const headers = { 'content-type': 'application/json', ...admin() };
    return ask(api, path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  };
  const step = async (method: string, path: string, body?: object): Promise<{ id: number }> => {
    const answer = await request(method, path, body);
    answers.push(answer);
    return answer.body as { id: number };
  };
  /** Whether it is proven in time for the answer is another question. */
  const ordered = async (method: string, path: string): Promise<void> => {
    expect([path, [200, 202]]).toEqual([path, expect.arrayContaining([(await request(method, path)).status])]);
  };
  const untilRevoked = (file: string): Promise<void> =>
    eventually(
      `${file} is revoked`,
      async () => ((await request('GET', file)).body as { state: string }).state === 'revoked',
      60_000,
    );

  const { id } = await step('POST', '/api/users', { username: name, name: 'Somebody', groups: ['blue'] });
  await step('POST', '/api/ops/certs', { username: name, name: 'phone' });
  await step('POST', '/api/ops/certs', { username: name, name: 'phone' });
  await step('POST', '/api/ops/certs', { username: `${name}-else`, name: 'phone' });

  const file = `/api/ops/certs/${name}~phone.p12`;
  for (const query of ['', '?compat=legacy', '?format=pem', '?format=data-package', '?format=data-package&app=itak'])
    await step('GET', `${file}/download${query}`);

  const enrollment = `/api/users/${id}/enrollment`;
  await step('GET', enrollment);
  await step('POST', enrollment);
  await step('POST', enrollment);
  await step('GET', enrollment);
  for (const app of ['atak', 'itak']) await step('GET', `${enrollment}/package?app=${app}`);
  await step('DELETE', enrollment);
  await step('GET', enrollment);

  const { id: service } = await step('POST', '/api/service-accounts', { name, kind: 'admin', groups: ['blue'] });
  await step('POST', '/api/service-accounts', { name, kind: 'data' });
  await step('GET', `/api/service-accounts/${service}`);
  await ordered('DELETE', `/api/service-accounts/${service}`);
  await untilRevoked(`/api/ops/certs/svc_${name}.p12`);
  await step('GET', `/api/service-accounts/${service}`);
  await step('GET', `/api/ops/certs/svc_${name}.p12`);

  await ordered('POST', `${file}/revoke`);
  await untilRevoked(file);
  await step('GET', file);
  await step('POST', `${file}/revoke`);
  await step('GET', `/api/ops/certs?username=${name}`);
  await step('GET', `${file}/download`);
  return answers.map((answer) => withoutWhatIsNew(answer, name));
}

const NEW = /^(id|serial|fingerprint|.*_at|effective_until|at|address|url|ca_certificate|qr_svg)$/;

function withoutWhatIsNew({ status, headers, body }: Answer, name: string): Answer {
  const text = JSON.stringify({ headers, body }, (key, value: unknown) =>
    NEW.test(key) && value !== null ? typeof value : value,
  )
    .replaceAll(name, 'NAME')
    .replaceAll(/token=[^&"]*/g, 'token=…')
    .replaceAll(/(password|registrationId)(\\":\\")[^\\]*/g, '$1$2…')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replaceAll(/\/users\/\d+/g, '/users/ID')
    .replaceAll(/<svg [^>]*>.*?<\/svg>/g, '<svg>')
    .replaceAll(/[0-9A-F]{2}(:[0-9A-F]{2}){31}/g, 'HASH')
    .replaceAll(/\d+(\.\d+)? ms/g, 'N ms');
  return { status, ...(JSON.parse(text) as Pick<Answer, 'headers' | 'body'>) };
}
