// The pages of what the core keeps for devices: profiles, video feeds, error logs, apps and plugins.

import { describe, expect, it } from 'vitest';
import { videoRelay } from '../../shared/core/contents/relay.ts';
import { actionsOf } from '../audit/fake-audit.ts';
import { visit, type Visitor } from '../pages/page-session.ts';
import { coreContentsContract } from './core-contents-contract.ts';
import { fakeContents } from './fake-contents.ts';

const HOSTILE = '"><script>alert(1)</script>';
const BOUNDARY = 'xxBOUNDARYxx';
const MULTIPART = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };

function formOf(filename: string, text: string): string {
  return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="${filename}"\r\nContent-Type: application/octet-stream\r\n\r\n${text}\r\n--${BOUNDARY}--\r\n`;
}

const placeOf = (answer: Response): string => answer.headers.get('location') ?? '';

async function withProfile(): Promise<Visitor & { path: string }> {
  const visitor = await visit();
  const path = placeOf(await visitor.post('/profiles', { name: 'Radio' })).split('?')[0] ?? '';
  return { ...visitor, path };
}

coreContentsContract('the fake', () => ({ contents: fakeContents(() => new Date()), group: 'All' }));

describe('profiles', () => {
  it('begin inactive, and are changed, filled and deleted, all of it audited', async () => {
    const { page, post, send, path, deps } = await withProfile();
    const { all } = deps.contents;
    expect(all.profiles).toMatchObject([{ name: 'Radio', active: false, groups: [] }]);
    const change = { active: 'yes', type: 'Connection', groups: ['Ops', 'Med'] };
    expect(placeOf(await post(path, change))).toBe(`${path}?done=changed`);
    expect(all.profiles).toMatchObject([{ active: true, type: 'Connection', tool: null, groups: ['Ops', 'Med'] }]);
    await post(path, { type: 'Tool', tool: 'maps', groups: ['all', 'Ops'] });
    expect(all.profiles).toMatchObject([{ active: false, type: 'Tool', tool: 'maps', groups: 'all' }]);

    expect(placeOf(await send(`${path}/files`, MULTIPART, formOf('map.xml', '<map/>')))).toBe(`${path}?done=file`);
    const lines = 'a.b = true\n(Integer) n=5\n# no\n\nname = Rock & <roll>';
    expect(placeOf(await post(`${path}/preferences`, { preferences: lines }))).toBe(`${path}?done=file`);
    const written = all.files.get('Radio')?.find(({ name }) => name === 'preferences.pref')?.text;
    expect(written).toContain('<entry key="a.b" class="class java.lang.Boolean">true</entry>');
    expect(written).toContain('<entry key="n" class="class java.lang.Integer">5</entry>');
    expect(written).toContain('<entry key="name" class="class java.lang.String">Rock &amp; &lt;roll&gt;</entry>');
    const html = await page(path);
    expect(html).toContain('map.xml');
    expect(html).toContain('a.b = true\n(Integer) n = 5\nname = Rock &amp; &lt;roll&gt;');
    const [file] = all.files.get('Radio') ?? [];
    expect(placeOf(await post(`${path}/files/${file?.id}/delete`))).toBe(`${path}?done=removed`);
    expect(placeOf(await post(`${path}/delete`))).toBe('/profiles?done=deleted');
    expect(all.profiles).toEqual([]);
    expect(actionsOf(deps).map(({ action }) => action)).toEqual(
      expect.arrayContaining([
        'profile.create',
        'profile.update',
        'profile.file.add',
        'profile.file.delete',
        'profile.delete',
      ]),
    );
  });

  it('say what is wrong, beside what was written', async () => {
    const { post, path, send, get } = await withProfile();
    const refused = async (answer: Response | Promise<Response>) => {
      const { status } = await answer;
      return [status, await (await answer).text()] as const;
    };
    for (const preferences of ['no value', '(Integer) n = x', '(Boolean) n = 1', '<b> = 1']) {
      const [status, html] = await refused(post(`${path}/preferences`, { preferences }));
      expect([status, html.includes('class="fault"')]).toEqual([422, true]);
    }
    expect((await refused(post(path, { type: 'Tool', tool: '' })))[0]).toBe(422);
    expect((await refused(post(path, { type: 'Nothing' })))[0]).toBe(422);
    expect((await refused(post('/profiles', { name: HOSTILE })))[0]).toBe(422);
    expect((await refused(post('/profiles', { name: 'Radio' })))[0]).toBe(409);
    expect((await send(`${path}/files`, { 'content-type': 'application/x-www-form-urlencoded' }, 'a=b')).status).toBe(
      415,
    );
    expect((await send(`${path}/files`, { ...MULTIPART, origin: 'https://elsewhere.example' }, '')).status).toBe(403);
    expect([
      (await get('/profiles/999')).status,
      (await post('/profiles/999', { type: 'Tool', tool: 'x' })).status,
    ]).toEqual([404, 404]);
  });
});

describe('video feeds', () => {
  it('are added for groups, shown as text, and deleted', async () => {
    const { page, post, deps } = await visit();
    const feed = { name: HOSTILE, url: 'rtsp://camera.example.org/live', groups: ['Ops'] };
    expect(placeOf(await post('/video', feed))).toBe('/video?done=added');
    expect(deps.contents.all.feeds).toMatchObject([{ groups: ['Ops'] }]);
    const html = await page('/video');
    expect(html).not.toContain('<script>alert');
    expect(html).toContain('rtsp://camera.example.org/live');
    for (const bad of [
      { ...feed, groups: [] },
      { ...feed, name: '' },
      { ...feed, url: 'rtsp://a:secret@b/c' },
    ])
      expect((await post('/video', bad)).status).toBe(422);
    expect(placeOf(await post('/video/delete', { uid: deps.contents.all.feeds[0]?.uid ?? '' }))).toBe(
      '/video?done=deleted',
    );
    expect((await post('/video/delete', { uid: 'gone' })).status).toBe(404);
    expect(JSON.stringify(actionsOf(deps))).not.toContain('secret');
  });
});

describe('the video relay', () => {
  const server =
    (body: unknown, status = 200) =>
    async (): Promise<Response> =>
      Response.json(body, { status });
  const item = { name: HOSTILE, ready: true, readyTime: '2026-01-02T03:04:05Z', tracks: ['H264'], readers: [{}, {}] };

  it('shows what is published, as text', async () => {
    const { page, deps } = await visit({ username: 'vera' });
    expect(await page('/video')).not.toContain('id="relay"');
    deps.videoRelay = videoRelay('http://video:9997/', server({ items: [item, { name: 'off', ready: false }] }));
    expect(await deps.videoRelay.streams()).toEqual([
      { name: HOSTILE, since: '2026-01-02T03:04:05.000Z', tracks: ['H264'], viewers: 2 },
    ]);
    const html = await page('/video');
    expect([html.includes('H264'), html.includes('<script>alert')]).toEqual([true, false]);
  });

  it('is missed without harm if it does not answer, or answers something else', async () => {
    const { page, deps } = await visit();
    const unreachable = async (): Promise<never> => Promise.reject(new Error('no route'));
    for (const fetch of [unreachable, server({}, 401), server({ items: 7 }), server('x'.repeat(2_000_000))]) {
      deps.videoRelay = videoRelay('http://video:9997', fetch);
      expect(await page('/video')).toContain('The video relay at video:9997 can&#39;t be asked');
    }
  });
});

describe('error logs', () => {
  const log = {
    id: 7,
    uid: HOSTILE,
    callsign: HOSTILE,
    username: 'ada',
    platform: HOSTILE,
    version: '5.5',
    bytes: 2048,
    at: '2026-01-02T03:04:05.000Z',
  };

  it('are on the page of the devices, by device; administrators download and delete them', async () => {
    const { page, post, deps } = await visit();
    deps.contents.all.logs = [log];
    const html = await page('/devices');
    expect(html).toContain('id="error-logs"');
    expect(html).not.toContain('<script>alert');
    const { headers } = await post('/devices/logs/7');
    expect(headers.get('content-disposition')).toBe('attachment; filename="error-log-7.txt"');
    expect(await (await post('/devices/logs/7')).text()).toBe('log 7');
    expect(placeOf(await post('/devices/logs/7/delete'))).toBe('/devices?done=log-deleted');
    expect([(await post('/devices/logs/7')).status, (await post('/devices/logs/x')).status]).toEqual([404, 404]);
    expect(await page('/devices')).not.toContain('id="error-logs"');
    expect(actionsOf(deps).map(({ action }) => action)).toContain('error-log.download');
  });

  it('of a core that keeps none are not missed, and viewers can do nothing with them', async () => {
    const { page, post, deps } = await visit({ username: 'vera' });
    deps.contents.all.logs = [log];
    expect(await page('/devices')).not.toContain('/devices/logs/7');
    expect((await post('/devices/logs/7')).status).toBe(403);
    deps.contents.all.logs = undefined;
    expect(await page('/devices')).not.toContain('error-logs');
  });
});

describe('apps and plugins for ATAK', () => {
  it('are uploaded and deleted beside the plugins of the core', async () => {
    const { page, post, send, deps } = await visit();
    expect(placeOf(await send('/plugins/packages', MULTIPART, formOf('a.apk', 'apk')))).toBe('/plugins?done=added');
    expect(await page('/plugins')).toContain('org.example.made');
    const refused = await send('/plugins/packages', MULTIPART, formOf('a.exe', 'x'));
    expect([refused.status, (await refused.text()).includes('no Android package')]).toEqual([422, true]);
    const [made] = deps.contents.all.packages ?? [];
    expect(placeOf(await post('/plugins/packages/delete', { hash: made?.hash ?? '' }))).toBe('/plugins?done=deleted');
    deps.contents.all.packages = undefined;
    expect(await page('/plugins')).not.toContain('/plugins/packages');
  });

  it('are not kept if the right of the uploader ends while the file comes', async () => {
    const { sendSlowly, deps } = await visit();
    const answer = await sendSlowly('/plugins/packages', MULTIPART, formOf('a.apk', 'apk'), async () => {
      deps.signIns.endAllOf('webadmin');
      await deps.authenticator.forget('webadmin');
    });
    expect([answer.status, deps.contents.all.packages]).toEqual([401, []]);
  });
});
