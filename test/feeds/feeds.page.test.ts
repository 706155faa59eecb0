import { describe, expect, it } from 'vitest';
import { visit, type Visitor } from '../pages/page-session.ts';
import { peopleWorld } from '../people/fake-people.ts';
import { FEED } from './flow-files.ts';

const FORM = {
  name: 'planes',
  kind: 'adsb',
  url: 'http://192.0.2.9/aircraft.json',
  group: 'core_Blue',
  interval_s: '10',
  events_per_minute: '60',
  megabytes_per_day: '5',
};

async function at(username = 'webadmin'): Promise<Visitor> {
  const { deps, around } = await peopleWorld();
  const visitor = await visit({ username, deps, around });
  await visitor.deps.identity.groups.create('core_Blue');
  return visitor;
}

describe('the feeds on the page of the plugins', () => {
  it('are none at first; the form makes one, which is off', async () => {
    const { page, post, deps } = await at();
    const html = await page('/plugins');
    expect(html).toContain('No feeds yet.');
    expect(html).toContain('<option value="core_Blue">Blue</option>');
    const answer = await post('/plugins/feeds', { ...FORM, south: '1', west: '2', north: '3', east: '4' });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/plugins?done=feed-set']);
    expect(deps.feeds.stored).toMatchObject([
      { ...FEED, url: FORM.url, interval_s: 10, megabytes_per_day: 5, active: false, area: { south: 1, east: 4 } },
    ]);
    expect(await page('/plugins')).toMatch(/planes.*Off.*every 10 s, 60 events\/min/s);
  });

  it('takes the fields of any JSON, and a secret that it never shows again', async () => {
    const { page, post, deps } = await at();
    const json = { map_items: 'data', map_uid: 'id', map_lat: 'lat', map_lon: 'lon' };
    await post('/plugins/feeds', { ...FORM, kind: 'json', ...json, header_name: 'X-Key', header_value: 'hidden-key' });
    expect(deps.feeds.stored[0]).toMatchObject({
      header: { name: 'X-Key', value: 'hidden-key' },
      mapping: { items: 'data', uid: 'id', lat: 'lat', lon: 'lon', callsign: '', remarks: '', type: 'a-n-G' },
    });
    expect(await page('/plugins')).not.toContain('hidden-key');
  });

  it('shows what is wrong beside the field, and keeps the rest', async () => {
    const { post } = await at();
    const answer = await post('/plugins/feeds', { ...FORM, url: 'ftp://x', interval_s: '99' });
    const html = await answer.text();
    expect(answer.status).toBe(422);
    expect(html).toMatch(/id="feed-url-fault">\s*must begin with http:/);
    expect(html).toMatch(/id="feed-interval_s"[^>]*value="99"/);
  });

  it('is switched on and off, and deleted', async () => {
    const { page, post, deps } = await at();
    await post('/plugins/feeds', FORM);
    for (const [change, active] of [
      ['on', true],
      ['off', false],
    ] as const) {
      const answer = await post('/plugins/feeds/change', { name: 'planes', change });
      expect([answer.status, answer.headers.get('location')]).toEqual([303, `/plugins?done=feed-${change}`]);
      expect(deps.feeds.stored[0]?.active).toBe(active);
      expect(await page(`/plugins?done=feed-${change}`)).toContain('class="notice good"');
    }
    await post('/plugins/feeds/change', { name: 'planes', change: 'delete' });
    expect(deps.feeds.stored).toEqual([]);
    expect((await post('/plugins/feeds/change', { name: 'planes', change: 'on' })).status).toBe(404);
    expect((await post('/plugins/feeds/change', { name: 'planes', change: 'explode' })).status).toBe(422);
  });

  it('says that the flow engine does not run, and shows viewers nothing to press', async () => {
    const { page, post, deps } = await at('vera');
    deps.feeds.stored = [{ ...FEED, name: 'planes', header: { name: 'X', value: 'secret-of-it' } }];
    const html = await page('/plugins');
    expect(html).toMatch(/The flow engine does not report\. Start it: .*--flows/);
    expect(html).not.toMatch(/action="\/plugins\/feeds|secret-of-it/);
    expect((await post('/plugins/feeds', FORM)).status).toBe(403);
  });

  it('keep the names of their accounts from the page of the service accounts', async () => {
    const { post, deps } = await at();
    const answer = await post('/service-accounts', { name: 'feed_planes', kind: 'data' });
    expect([answer.status, await answer.text()]).toEqual([422, expect.stringContaining('which is kept for feeds')]);
    expect(await deps.identity.accounts.named('svc_feed_planes')).toBeUndefined();
  });

  it('shows what the engine reports', async () => {
    const { page, deps } = await at();
    deps.feeds.stored = [FEED];
    const now = deps.now().toISOString();
    const state = { connected: true, read_at: now, items: 7, sent_at: now, day: now.slice(0, 10) };
    deps.feeds.reported = {
      at: now,
      feeds: { planes: { ...state, sent_today: 12, refused_today: 3, bytes_today: 1_250_000, error: null } },
    };
    const html = await page('/plugins');
    expect(html).toMatch(/12 events, 1\.3 MB, 3 held back/);
    expect(html).toContain('3 events did not fit into the disk budget of 1 MB.');
  });
});
