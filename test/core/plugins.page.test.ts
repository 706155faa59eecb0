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
  it('says of each whether it runs and is started with the core, and asks before it stops one', async () => {
    const html = await (await at()).page('/plugins');
    expect(html).toMatch(/Running/);
    expect(html).toContain('is started');
    expect(html).toMatch(/<details[^>]*>.*What Echo does ends at once.*Stop Echo<\/button>/s);
  });

  it.each([
    ['start', { started: false }, { started: true }],
    ['stop', {}, { started: false }],
    ['enable', { enabled: false }, { enabled: true }],
    ['disable', {}, { enabled: false }],
  ])('can %s one, which is audited, and says so', async (change, before, after) => {
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

  it('is there while the process of the plugins is down, and says so in the place of the list', async () => {
    const { page, post, deps } = await at();
    const down = async (): Promise<never> => {
      throw new AppError('unavailable', 'The plugin process of the core is down.');
    };
    deps.core.plugins = down;
    deps.core.changePlugin = down;
    expect(await page('/plugins')).toContain(
      'The plugins cannot be listed now: The plugin process of the core is down.',
    );
    const answer = await post('/plugins', { name: 'Echo', change: 'stop' });
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('role="alert"')]);
  });

  it('says so when a plugin was told to start and did not, with its own words', async () => {
    const { post, deps } = await at({ started: false });
    deps.core.changePlugin = async () => ({ ...ECHO, started: false, error: 'No port <b>' });
    const answer = await post('/plugins', { name: 'Echo', change: 'start' });
    expect(answer.status).toBe(409);
    expect(await answer.text()).toContain('told to start Echo, and it did not. It says: No port &lt;b&gt;');
  });

  it('says what to do where there is none, and of one that is gone that it is', async () => {
    const { page, post, deps } = await at();
    expect((await post('/plugins', { name: 'Gone', change: 'stop' })).status).toBe(404);
    expect((await post('/plugins', { name: 'Echo', change: 'explode' })).status).toBe(422);
    deps.theCore.plugins = [];
    expect(await page('/plugins')).toContain('The core has no plugins.');
  });

  it('shows names as text, and nothing to press to who may only look', async () => {
    const { page } = await at({ name: '"><script>alert(1)</script>', error: '<img src=x>' }, 'vera');
    const html = await page('/plugins');
    expect(html).toContain('&quot;&gt;&lt;script&gt;alert(1)');
    expect(html).not.toMatch(/<script>|<img src=x|action="\/plugins"/);
  });
});
