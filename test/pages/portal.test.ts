import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { singleFlight } from '@holdfast/kit/concurrency';
import { issueCertificate } from '../../shared/devices/certificates/issue.ts';
import type { FakeDeps } from '../http/fake-deps.ts';
import { ACTOR, peopleWorld } from '../people/fake-people.ts';
import { visit, type Visitor } from './page-session.ts';

const HOSTILE = '"><img src=x onerror=alert(1)>';

async function portal(username = 'nora', prepare: (deps: FakeDeps) => void = () => {}): Promise<Visitor> {
  const { deps, around } = await peopleWorld();
  prepare(deps);
  return visit({ username, face: 'portal', deps, around });
}

describe('one’s own devices', () => {
  it('are an empty list with a link to add the first one', async () => {
    const html = await (await portal()).page('/');
    expect(html).toContain('No devices yet.');
    expect(html).toContain('href="/add-device"');
  });

  it('are only one’s own, with the callsign of a connected one', async () => {
    const { page } = await portal('nora', ({ theCore }) => {
      theCore.enrolledByDevice('nora', 'ANDROID-nora');
      theCore.enrolledByDevice('vera', 'ANDROID-vera');
      theCore.enrolledByDevice('nora-b', 'ANDROID-nora-b');
      Object.assign(theCore.online('nora', 'ANDROID-nora'), { callsign: 'NORA 1' });
      Object.assign(theCore.online('vera', 'ANDROID-vera'), { callsign: 'VERA 1' });
    });
    const html = await page('/');
    expect(html).toMatch(/<h2>NORA 1<\/h2>[^]*Connected/);
    expect(html).toContain('ANDROID-nora<');
    for (const foreign of ['VERA 1', 'ANDROID-vera', 'ANDROID-nora-b']) expect(html).not.toContain(foreign);
  });

  it('cost the core one list of clients for all who look at the same moment', async () => {
    let lists = 0;
    const { page } = await portal('nora', (deps) => {
      deps.together = singleFlight();
      const { core } = deps;
      const before = { ...core };
      core.clients = () => {
        lists += 1;
        return before.clients();
      };
    });
    await Promise.all(Array.from({ length: 20 }, () => page('/')));
    expect(lists).toBeLessThanOrEqual(2);
  });

  it('say that they are not connected, and show what a device calls itself as text alone', async () => {
    const html = await (await portal('nora', ({ theCore }) => theCore.enrolledByDevice('nora', HOSTILE))).page('/');
    expect(html).toContain('Not connected');
    expect(html).toContain('&quot;&gt;&lt;img src=x onerror=alert(1)&gt;');
    expect(html).not.toContain('<img src=x');
  });

  it('include connections that match none of the certificates', async () => {
    const html = await (
      await portal('nora', ({ theCore }) => Object.assign(theCore.online('nora', 'unknown'), { callsign: HOSTILE }))
    ).page('/');
    expect(html).toContain('Other connections');
    expect(html).not.toContain('<img src=x');
  });

  it('can be revoked only by their owner, and are then listed as revoked', async () => {
    const visitor = await portal('nora', ({ theCore }) => {
      theCore.enrolledByDevice('nora', 'ANDROID-nora');
      theCore.enrolledByDevice('vera', 'ANDROID-vera');
    });
    const action = /action="(\/my-devices\/[^"]+\/revoke)"/.exec(await visitor.page('/'))?.[1] ?? '';
    const answer = await visitor.post(action);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, expect.stringMatching(/^\/\?done=revok/)]);
    const [own, foreign] = visitor.deps.theCore.certificates;
    expect([own?.revokedAt === null, foreign?.revokedAt]).toEqual([false, null]);
    const refused = await visitor.post(`/my-devices/${encodeURIComponent(foreign?.hash ?? '')}/revoke`);
    expect([refused.status, foreign?.revokedAt]).toEqual([404, null]);
    expect(await visitor.page('/?done=revoked')).toContain('The device can no longer connect.');
  });

  it('can be downloaded when their key is stored, only by their owner', async () => {
    const visitor = await portal();
    const other = await visit({ username: 'vera', face: 'portal', deps: visitor.deps });
    const context = { deps: visitor.deps, actor: { ...ACTOR, username: 'nora' } };
    await issueCertificate(context, { username: 'nora', name: 'laptop', own: true });
    const html = await visitor.page('/');
    const path = /href="(\/my-devices\/[^"]+\/download\?format=p12)"/.exec(html)?.[1] ?? '';
    const answer = await visitor.get(path);
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect((await other.get(path)).status).toBe(404);
  });

  it('are shown as Holdfast recorded them while the core is unavailable, with a notice', async () => {
    const visitor = await portal('nora', ({ theCore }) => {
      theCore.enrolledByDevice('nora', 'ANDROID-nora');
    });
    visitor.deps.theCore.mood = 'down';
    const html = await visitor.page('/');
    expect(html).toContain('This list may be incomplete.');
    expect(html).not.toContain('No devices yet.');
  });

  it('stay the same page, for who polls it, until something changes', async () => {
    const visitor = await portal('nora', ({ theCore }) => {
      theCore.enrolledByDevice('nora', 'ANDROID-nora');
    });
    const etag = (await visitor.get('/')).headers.get('etag') ?? '';
    expect((await visitor.get('/', { 'if-none-match': etag })).status).toBe(304);
    visitor.deps.theCore.online('nora', 'ANDROID-nora');
    expect((await visitor.get('/', { 'if-none-match': etag })).status).toBe(200);
  });
});

describe('the account in the portal', () => {
  it('is warned early that it expires', async () => {
    const people = await peopleWorld();
    const { deps, around } = people;
    const { id } = await people.person('ada');
    const seconds = Math.floor(around.now.getTime() / 1000) + 2 * 86_400 + 60;
    const visitor = await visit({ username: 'ada', face: 'portal', deps, around });
    await deps.identity.accounts.changeAttributes(id, { app_expires: seconds });
    expect(await visitor.page('/')).toContain('Your access expires in 2 days');
    await deps.identity.accounts.changeAttributes(id, { app_expires: seconds + 30 * 86_400 });
    expect(await visitor.page('/')).not.toContain('Your access expires');
  });

  it('that is hidden is called a system account, and gets no link to add a device', async () => {
    const people = await peopleWorld();
    const { deps, around } = people;
    await people.person('svc_gate');
    const html = await (await visit({ username: 'svc_gate', face: 'portal', deps, around })).page('/');
    expect(html).toContain('svc_gate is a system account.');
    expect(html).not.toMatch(/class="button primary" href="\/add-device"/);
  });

  it.each([
    ['webadmin', true],
    ['vera', true],
    ['nora', false],
  ])('of %s leads to the console: %s', async (username, leads) => {
    const html = await (await portal(username)).page('/');
    expect(html.includes('href="https://monitor.cot.example.org/"')).toBe(leads);
  });
});

describe('the guides', () => {
  it.each(['atak', 'itak', 'wintak'])('/guides/%s names the real address, ports and CA of this server', async (app) => {
    const { deps, around } = await peopleWorld({ SERVER_ADDRESS: 'cot.example.org', CORE_ENROLLMENT_PORT: '18446' });
    const html = await (await visit({ username: 'nora', face: 'portal', deps, around })).page(`/guides/${app}`);
    for (const fact of [
      'cot.example.org',
      '18446',
      '8089',
      deps.theCore.ca,
      '/enrollment/package?app=',
      'Troubleshooting',
    ])
      expect(html).toContain(fact);
    expect(html.match(/<h1>/g)).toHaveLength(1);
  });

  it('put the package first when devices don’t trust the server without it', async () => {
    const titles = async (values: Record<string, string>): Promise<string[]> => {
      const { deps, around } = await peopleWorld({ SERVER_ADDRESS: 'cot.example.org', ...values });
      const html = await (await visit({ username: 'nora', face: 'portal', deps, around })).page('/guides/atak');
      return [...html.matchAll(/<h2>([^<]+)<\/h2>/g)].map(([, title = '']) => title);
    };
    expect((await titles({}))[0]).toBe('1. Open the package first');
    expect((await titles({ DEPLOY_MODE: 'subdomain' }))[0]).toBe('1. Scan the code');
  });

  it('work without the CA and say so, and answer 404 for an unknown app', async () => {
    const visitor = await portal();
    visitor.deps.coreAuthority.certificate = () => Promise.reject(new AppError('unavailable', 'ca.pem is missing'));
    expect(await visitor.page('/guides')).toContain('Couldn&#39;t read the CA fingerprint. ca.pem is missing');
    expect(await visitor.page('/guides/constructor', 404)).toContain('No guide for this app');
  });

  it('say that devices can’t be set up while the server has no address', async () => {
    expect(await (await portal()).page('/guides/itak')).toContain('SERVER_ADDRESS');
  });
});
