import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { actionsOf } from '../audit/fake-audit.ts';
import { visit, type Visitor } from '../pages/page-session.ts';

const ECHO = { name: 'Echo', description: 'Says it again', version: '1.0', enabled: true, started: true, error: null };

async function at(plugin: object = {}, username = 'webadmin'): Promise<Visitor> {
  const visitor = await visit({ username });
  visitor.deps.theCore.plugins = [{ ...ECHO, ...plugin }];
  return visitor;
}

describe('the page of the plugins', () => {
  it('shows which plugins run and start with the core, and confirms before it stops one', async () => {
    const html = await (await at()).page('/plugins');
    expect(html).toMatch(/Running/);
    expect(html).toContain('data-label="Starts with core">Yes<');
    expect(html).toMatch(/<details[^>]*>.*Echo stops immediately.*Stop Echo<\/button>/s);
  });

  it.each([
    ['start', { started: false }, { started: true }],
    ['stop', {}, { started: false }],
    ['enable', { enabled: false }, { enabled: true }],
    ['disable', {}, { enabled: false }],
  ])('can %s a plugin, audits it and confirms it', async (change, before, after) => {
    const { post, page, deps } = await at(before);
    const answer = await post('/plugins', { name: 'Echo', change });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, `/plugins?done=${change}`]);
    expect(deps.theCore.plugins[0]).toMatchObject(after);
    expect(actionsOf(deps).slice(-2)).toMatchObject([
      { action: `plugin.${change}`, target: 'Echo' },
      { action: `plugin.${change}`, result: 'ok' },
    ]);
    expect(await page(`/plugins?done=${change}`)).toContain('class="notice good"');
  });

  it('shows an error in place of the list while the plugin process is down', async () => {
    const { page, post, deps } = await at();
    const down = async (): Promise<never> => {
      throw new AppError('unavailable', 'The plugin process of the core is down.');
    };
    deps.core.plugins = down;
    deps.core.changePlugin = down;
    expect(await page('/plugins')).toContain('Couldn&#39;t list the plugins. The plugin process of the core is down.');
    const answer = await post('/plugins', { name: 'Echo', change: 'stop' });
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('role="alert"')]);
  });

  it('shows the error of a plugin that did not start', async () => {
    const { post, deps } = await at({ started: false });
    deps.core.changePlugin = async () => ({ ...ECHO, started: false, error: 'No port <b>' });
    const answer = await post('/plugins', { name: 'Echo', change: 'start' });
    expect(answer.status).toBe(409);
    expect(await answer.text()).toContain('The core did not start Echo. Its error: No port &lt;b&gt;');
  });

  it('explains how to add the first plugin, and answers 404 for a missing one', async () => {
    const { page, post, deps } = await at();
    expect((await post('/plugins', { name: 'Gone', change: 'stop' })).status).toBe(404);
    expect((await post('/plugins', { name: 'Echo', change: 'explode' })).status).toBe(422);
    deps.theCore.plugins = [];
    expect(await page('/plugins')).toContain('No plugins yet.');
  });

  it('shows names as text, and nothing to press to who may only look', async () => {
    const { page } = await at({ name: '"><script>alert(1)</script>', error: '<img src=x>' }, 'vera');
    const html = await page('/plugins');
    expect(html).toContain('&quot;&gt;&lt;script&gt;alert(1)');
    expect(html).not.toMatch(/<script>|<img src=x|action="\/plugins"/);
  });
});
