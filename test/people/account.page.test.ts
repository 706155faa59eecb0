import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { createApp } from '../../functions/app.ts';
import { browserName } from '../../functions/pages/account.tsx';
import { actionsOf } from '../audit/fake-audit.ts';
import { PASSWORD } from '../http/fake-deps.ts';
import { visit, type Visitor } from '../pages/page-session.ts';
import { peopleWorld } from './fake-people.ts';

const HOSTILE = '<script>alert(1)</script>';
const NEXT = 'four words make one';

async function nora(): Promise<Visitor> {
  const { deps, around } = await peopleWorld();
  return visit({ username: 'nora', face: 'portal', deps, around });
}

const changing = (visitor: Visitor, fields: Record<string, string> = {}): Promise<Response> =>
  visitor.post('/account/password', { current: PASSWORD, password: NEXT, again: NEXT, ...fields });

describe('the page of one’s own account', () => {
  it('shows role, groups and expiry, and hostile names as text', async () => {
    const people = await peopleWorld();
    const { deps, around } = people;
    const { id } = await people.person('ada', ['core_Blue', 'core_"><img src=x>']);
    await deps.identity.accounts.change(id, { name: HOSTILE });
    await deps.identity.accounts.changeAttributes(id, { app_expires: 1_900_000_000 });
    const html = await (await visit({ username: 'ada', deps, around })).page('/account');
    expect(html).toContain('core_&quot;&gt;&lt;img src=x&gt;, core_Blue');
    expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(html).not.toContain(HOSTILE);
    expect(html).toContain('Member: you can manage your own devices and password');
    expect(html).toContain('2030-03-17 17:46');
  });

  it('works without the identity provider, and says what is missing', async () => {
    const visitor = await nora();
    visitor.deps.identity.accounts.named = () => Promise.reject(new AppError('unavailable', 'It does not answer.'));
    const html = await visitor.page('/account');
    expect(html).toContain('Couldn&#39;t load the whole profile. It does not answer.');
    expect(html).toContain('<h2>Sessions</h2>');
  });
});

describe('changing one’s own password', () => {
  it('ends every session, removes the cookie and leads to the sign-in, which says so', async () => {
    const visitor = await nora();
    const id = (await visitor.deps.identity.accounts.named('nora'))?.id ?? 0;
    const answer = await changing(visitor);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/sign-in?done=password']);
    expect(answer.headers.get('set-cookie')).toMatch(/Max-Age=0/);
    expect((await visitor.get('/account')).status).toBe(303);
    expect(actionsOf(visitor.deps).at(-1)).toMatchObject({ action: 'user.password', target: 'nora', result: 'ok' });
    expect(id).toBeGreaterThan(0);
  });

  it.each([
    [
      'that is not typed twice the same',
      { again: 'something else here' },
      'again',
      'It must match the new password. Type both again.',
    ],
    ['that is too short', { password: 'short', again: 'short' }, 'password', 'at least 12'],
    [
      'after a wrong one',
      { current: 'no-such-secret' },
      'current',
      'This is not your current password. Nothing was changed',
    ],
  ])('to one %s is refused beside the field, with nothing that was typed', async (_, fields, name, words) => {
    const visitor = await nora();
    const answer = await changing(visitor, fields);
    const html = await answer.text();
    expect(answer.status).toBe(422);
    expect(html).toMatch(new RegExp(`id="${name}-fault">[^<]*${words}`));
    for (const typed of [PASSWORD, NEXT, 'no-such-secret', 'something else here']) expect(html).not.toContain(typed);
    expect((await visitor.get('/account')).status).toBe(200);
  });

  it('counts wrong ones for the lockout, and says how long it lasts', async () => {
    const visitor = await nora();
    for (let time = 0; time < 10; time++) await changing(visitor, { current: 'no' });
    const answer = await changing(visitor);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '900']);
    expect(await answer.text()).toContain('Too many wrong passwords');
  });
});

describe('one’s own sessions', () => {
  it('are listed with the browser and the address, and which of them this one is; a strange name is only text', async () => {
    const { deps, around } = await peopleWorld();
    const app = createApp(deps);
    const body = new URLSearchParams({ username: 'nora', password: PASSWORD }).toString();
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'user-agent': HOSTILE };
    const connection = { requestId: 'r', clientAddress: '192.0.2.99', secure: false };
    await app.request('/sign-in', { method: 'POST', headers, body }, connection);
    const html = await (await visit({ username: 'nora', deps, around })).page('/account');
    expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(html).not.toContain(HOSTILE);
    expect(html).toContain('192.0.2.99');
    expect(html.match(/\(current\)/g)).toHaveLength(1);
    expect(html.match(/\/account\/sessions\/[^"]+\/end"/g)).toHaveLength(1);
  });

  it('end one by one, also one that has already ended, and never those of others', async () => {
    const { deps, around } = await peopleWorld();
    const [visitor] = await Promise.all([visit({ username: 'nora', deps, around }), visit({ username: 'vera', deps })]);
    await visit({ username: 'nora', deps, around });
    const path = /action="(\/account\/sessions\/[^"]+\/end)"/.exec(await visitor.page('/account'))?.[1] ?? '';
    expect((await visitor.post(path)).headers.get('location')).toBe('/account?done=session');
    expect((await visitor.post(path)).headers.get('location')).toBe('/account?done=gone');
    const [foreign] = (await deps.signIns.sessions('vera', { page: 1, pageSize: 1 })).results;
    const answer = await visitor.post(`/account/sessions/${foreign?.id}/end`);
    expect(answer.headers.get('location')).toBe('/account?done=gone');
    expect((await deps.signIns.sessions('vera', { page: 1, pageSize: 1 })).count).toBe(1);
  });

  it('end all at once: this one too', async () => {
    const visitor = await nora();
    const answer = await visitor.post('/account/sessions/end');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/sign-in?done=sessions']);
    expect((await visitor.get('/account')).status).toBe(303);
  });
});

describe('the name of a browser', () => {
  it.each([
    ['Mozilla/5.0 (Android 14; Mobile; rv:130.0) Gecko/130.0 Firefox/130.0', 'Firefox on Android'],
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) Version/17.5 Mobile/15E148 Safari/604.1',
      'Safari on iPhone',
    ],
    ['Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/129.0 Safari/537.36 Edg/129.0', 'Edge on Windows'],
    ['Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/129.0 Safari/537.36', 'Chrome on Linux'],
    ['curl/8.9', 'curl/8.9'],
    ['', 'Unknown browser'],
  ])('%j is %s', (userAgent, name) => expect(browserName(userAgent)).toBe(name));
});
