import { describe, expect, it } from 'vitest';
import { visit } from './page-session.ts';

describe('the frame of a page', () => {
  it('loads nothing from other sites, and holds no inline script or style', async () => {
    const { get } = await visit();
    const answer = await get('/more');
    expect(answer.headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    const html = await answer.text();
    expect(html).not.toMatch(/\son\w+=|style=|<style|javascript:|https?:\/\//i);
    expect(html).toMatch(/<script src="\/sign-in\/page\.js\?v=\w+" defer=""><\/script>/);
  });

  it('has a link past the navigation, one h1 and a title', async () => {
    const { page } = await visit();
    const html = await page('/more');
    expect(html).toContain('href="#content"');
    expect(html.match(/<h1>/g)).toHaveLength(1);
    expect(html).toContain('<title>All pages - Holdfast</title>');
    expect(html).toContain('<html lang="en">');
  });

  it('shows only the pages that the person may open', async () => {
    const admin = await (await visit()).page('/more');
    const viewer = await (await visit({ username: 'vera' })).page('/more');
    const member = await (await visit({ username: 'nora' })).page('/more');
    expect([admin, viewer, member].map((html) => html.includes('href="/audit"'))).toEqual([true, false, false]);
    expect([admin, viewer, member].map((html) => html.includes('href="/people"'))).toEqual([true, true, false]);
    expect(member).toContain('href="/account"');
  });

  it('is not sent again while it is the same', async () => {
    const { get } = await visit();
    const first = await get('/more');
    const tag = first.headers.get('etag') ?? '';
    expect(tag).not.toBe('');
    const again = await get('/more', { 'if-none-match': tag });
    expect([again.status, await again.text()]).toEqual([304, '']);
    expect((await get('/more', { 'if-none-match': 'W/"another"' })).status).toBe(200);
  });
});
