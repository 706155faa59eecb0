import { describe, expect, it } from 'vitest';
import { DAY_MS } from '@holdfast/kit/time';
import { actionsOf } from '../audit/fake-audit.ts';
import { visit } from '../pages/page-session.ts';

const input = (more: object = {}) => ({ name: 'Nightly', scope: 'read', days: '30', ...more });
const textOf = (html: string): string => /<code id="token">(hft_[\w-]+)</.exec(html)?.[1] ?? '';

describe('the page of the API tokens', () => {
  it('shows the text of a new token once, in a response that is not cached', async () => {
    const { post, page, deps, around } = await visit();
    const answer = await post('/tokens', input());
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([201, 'no-store']);
    const html = await answer.text();
    expect(await deps.signIns.recognize('token', textOf(html))).toMatchObject({
      username: 'webadmin',
      scope: 'read',
      expiresAt: new Date(around.now.getTime() + 30 * DAY_MS).toISOString(),
    });
    expect(html).toContain('data-copy="token"');
    expect(html).toContain('It is shown only once');
    const list = await page('/tokens');
    expect(list).toContain('Nightly');
    expect(list).not.toContain(textOf(html));
    expect(actionsOf(deps).slice(-2)).toMatchObject([
      { action: 'token.create' },
      { action: 'token.create', result: 'ok' },
    ]);
  });

  it('creates one token of a form that is submitted twice, and says that its text is gone', async () => {
    const { post, page, deps } = await visit();
    const id = /name="id" value="([\da-f-]{36})"/.exec(await page('/tokens'))?.[1] ?? '';
    expect((await post('/tokens', { ...input(), id })).status).toBe(201);
    const again = await post('/tokens', { ...input(), id });
    const html = await again.text();
    expect([again.status, textOf(html), (await deps.signIns.tokens({ page: 1, pageSize: 9 })).count]).toEqual([
      409,
      '',
      1,
    ]);
    expect(html).toContain('was shown only then');
    expect(html).not.toContain(`value="${id}"`);
  });

  it.each([
    ['name', { name: ' ' }],
    ['name', { name: 'x'.repeat(65) }],
    ['scope', { scope: 'root' }],
    ['days', { days: '0' }],
    ['days', { days: '9999' }],
    ['days', { days: 'soon' }],
  ])('says beside the field what is wrong with the %s of %j, and keeps what was typed', async (field, change) => {
    const { post, deps } = await visit();
    const answer = await post('/tokens', input({ name: 'A & B', ...change }));
    const html = await answer.text();
    expect([answer.status, (await deps.signIns.tokens({ page: 1, pageSize: 9 })).count]).toEqual([422, 0]);
    expect(html).toContain(`id="${field}-fault"`);
    if (field !== 'name') expect(html).toContain('value="A &amp; B"');
  });

  it('revokes the token of any person after a confirmation, and accepts a repeated request', async () => {
    const { post, page, deps } = await visit();
    const expiresAt = '2099-01-01T00:00:00.000Z';
    const { id, text } = await deps.signIns.createToken({ name: 'x"y', scope: 'users', owner: 'vera', expiresAt });
    const html = await page('/tokens');
    expect(html).toMatch(/<details[^>]*>.*You can&#39;t undo this.*Revoke x&quot;y<\/button>/s);
    for (let time = 0; time < 2; time += 1) {
      const answer = await post(`/tokens/${id}/revoke`);
      expect([answer.status, answer.headers.get('location')]).toEqual([303, '/tokens?done=revoked']);
    }
    expect(await deps.signIns.recognize('token', text)).toBeUndefined();
    expect(await page('/tokens?done=revoked')).toContain('Token revoked');
  });

  it('explains tokens when there are none, marks those that expire soon, and has pages of 50', async () => {
    const { page, deps, around } = await visit();
    expect(await page('/tokens')).toContain('No tokens yet.');
    const expiresAt = new Date(around.now.getTime() + DAY_MS).toISOString();
    for (let made = 0; made < 51; made += 1)
      await deps.signIns.createToken({ name: `t${made}`, scope: 'read', owner: 'vera', expiresAt });
    const html = await page('/tokens');
    expect(html.match(/Expires soon/g)).toHaveLength(50);
    expect(html).toContain('1 to 50 of 51');
    expect(await page('/tokens?page=2')).toContain('<bdi>t0</bdi>');
  });
});
