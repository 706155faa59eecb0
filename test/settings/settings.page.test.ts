import { describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { world } from '../health/fake-monitored.ts';
import { fakeDeps, PASSWORD, TOKEN } from '../http/fake-deps.ts';
import { visit } from '../pages/page-session.ts';

const rowOf = (html: string, name: string): string =>
  new RegExp(`<tr role="row"><th[^>]*><code>${name}</code>.*?</tr>`, 's').exec(html)?.[0] ?? '';

describe('the page of the settings', () => {
  it('shows each with what it does and where it comes from, and of secrets only that they are set', async () => {
    const { page, deps } = await visit({ deps: fakeDeps({ ENROLLMENT_TTL_MINUTES: '45' }) });
    const html = await page('/settings');
    for (const { name } of deps.settingsShown) expect([name, rowOf(html, name)]).not.toEqual([name, '']);
    expect(rowOf(html, 'ENROLLMENT_TTL_MINUTES')).toMatch(/Lifetime of an enrollment password.*45.*environment/s);
    expect(rowOf(html, 'CORE_WEBADMIN_PASSWORD')).toContain('set (hidden)');
    expect(rowOf(html, 'VIEWER_GROUP')).toMatch(/stack_viewer.*default/s);
    expect(html).not.toContain(PASSWORD);
    expect(html).not.toContain(TOKEN);
  });

  it('marks what was changed since the start, settings and thresholds, and says how it comes into force', async () => {
    const around = world();
    around.changed = ['VIEWER_GROUP (the next start would refuse it)', 'modules.disk.warning'];
    const html = await (await visit({ around })).page('/settings');
    expect(html).toContain('Changed since the start. Restart to apply:');
    expect(rowOf(html, 'VIEWER_GROUP')).toContain('Restart needed');
    expect(rowOf(html, 'MON_DISK_WARNING')).toContain('Restart needed');
    expect(rowOf(html, 'ADMIN_GROUP')).not.toContain('Restart needed');
    expect(html).toContain('start.sh --embedded');
    expect(await (await visit()).page('/settings')).not.toContain('Restart to apply');
  });

  it('restarts containers by the script that looks first and proves after', async () => {
    const around = world();
    around.wanted.container = { proxyAddress: undefined, proxyPort: 443 };
    const html = await (await visit({ around })).page('/settings');
    expect(html).toContain('<code>./scripts/start.sh</code>');
    expect(html).not.toContain('docker compose up -d');
  });

  it('is there although the files of the settings cannot be read', async () => {
    const { deps, page } = await visit();
    deps.monitored.configurationFiles.changedSinceStart = async () => {
      throw new AppError('unavailable', 'The disk hangs.');
    };
    expect(await page('/settings')).toContain('Couldn’t check for changed settings: The disk hangs.');
  });

  it('finds by name and by what it does, keeps the words, and says so when there is nothing', async () => {
    const { page } = await visit();
    const html = await page('/settings?search=lifetime+enrollment');
    expect(rowOf(html, 'ENROLLMENT_TTL_MINUTES')).not.toBe('');
    expect(rowOf(html, 'VIEWER_GROUP')).toBe('');
    const none = await page('/settings?search=%22%3E%3Cscript%3E');
    expect(none).toContain('value="&quot;&gt;&lt;script&gt;"');
    expect(none).toContain('No settings matching');
    expect(rowOf(await page('/settings?only=set'), 'VIEWER_GROUP')).toBe('');
    expect(rowOf(await page('/settings?only=set'), 'METRICS_TOKEN')).not.toBe('');
  });

  it('shows every threshold with its variable', async () => {
    const html = await (await visit()).page('/settings');
    expect(rowOf(html, 'MON_DATABASE_WARNING')).toContain('25 GB');
    expect(rowOf(html, 'MON_AUTOVACUUM_MIN_DEAD_TUPLES')).toContain('1000');
    expect(rowOf(html, 'MON_PROBE_INTERVAL')).toContain('measured every 5 minutes');
  });

  it('says how often to the second', async () => {
    const deps = fakeDeps();
    const often = (module: string, interval: number) => {
      const own = deps.thresholds.modules[module];
      return own === undefined ? {} : { [module]: { ...own, interval } };
    };
    const modules = { ...deps.thresholds.modules, ...often('disk', 90), ...often('probe', 1) };
    const html = await (
      await visit({ deps: { ...deps, thresholds: { ...deps.thresholds, modules } } })
    ).page('/settings');
    expect(rowOf(html, 'MON_DISK_INTERVAL')).toContain('measured every 90 seconds');
    expect(rowOf(html, 'MON_PROBE_INTERVAL')).toContain('measured every 1 second<');
  });
});
