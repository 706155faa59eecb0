// What a core keeps for devices, as the console asks for it: the same of the fake and of a real
// core.

import { expect, it } from 'vitest';
import { madeApk } from '../../packages/core/test/made-apk.ts';
import type { CoreContents, FormUpload } from '../../shared/core/contents/port.ts';

function formOf(filename: string, bytes: Uint8Array<ArrayBuffer> | string): FormUpload {
  const form = new FormData();
  form.append('file', new Blob([bytes]), filename);
  const { headers, body } = new Response(form);
  if (body === null) throw new Error('the form has no body');
  return { contentType: headers.get('content-type') ?? '', body };
}

/** `group` is one that the core knows. */
export function coreContentsContract(called: string, parts: () => { contents: CoreContents; group: string }): void {
  it(`${called} keeps profiles with files`, async () => {
    const { contents, group } = parts();
    const name = 'Radio (north)';
    await contents.addProfile(name);
    await expect(contents.addProfile(name)).rejects.toMatchObject({ code: 'conflict' });
    const own = async () => (await contents.profiles()).find((profile) => profile.name === name);
    expect(await own()).toMatchObject({ active: false, groups: [] });
    const id = (await own())?.id ?? 0;
    await contents.changeProfile({ id, name, active: true, type: 'Connection', tool: null, groups: [group] });
    expect(await own()).toMatchObject({ active: true, type: 'Connection', tool: null, groups: [group] });
    await contents.changeProfile({ id, name, active: true, type: 'Tool', tool: 'maps', groups: 'all' });
    expect(await own()).toMatchObject({ type: 'Tool', tool: 'maps', groups: 'all' });

    await contents.writeProfileFile(name, { name: 'a & b.pref', text: 'one' });
    await contents.writeProfileFile(name, { name: 'a & b.pref', text: 'three' });
    await contents.uploadProfileFile(name, formOf('map.xml', '<map/>'));
    const files = await contents.profileFiles(name);
    expect(files).toMatchObject([
      { name: 'a & b.pref', bytes: 5 },
      { name: 'map.xml', bytes: 6 },
    ]);
    expect(await contents.readProfileFile(name, files[0]?.id ?? 0)).toBe('three');
    await contents.removeProfileFile(name, files[0]?.id ?? 0);
    expect(await contents.profileFiles(name)).toHaveLength(1);
    await expect(contents.removeProfileFile(name, 999_999)).rejects.toMatchObject({ code: 'not_found' });
    await contents.removeProfile(id);
    expect(await own()).toBeUndefined();
    await expect(contents.removeProfile(id)).rejects.toMatchObject({ code: 'not_found' });
  });

  it(`${called} keeps video feeds of groups, without credentials`, async () => {
    const { contents, group } = parts();
    const feed = { name: 'Gate & <yard>', url: 'rtsp://camera.example.org:8554/live', groups: [group] };
    await contents.addVideoFeed(feed);
    const found = (await contents.videoFeeds()).find(({ name }) => name === feed.name);
    expect(found).toMatchObject({ urls: [feed.url], active: true });
    await expect(contents.addVideoFeed({ ...feed, url: 'rtsp://a:secret@b/c' })).rejects.toMatchObject({
      code: 'invalid',
    });
    await contents.removeVideoFeed(found?.uid ?? '');
    await expect(contents.removeVideoFeed(found?.uid ?? '')).rejects.toMatchObject({ code: 'not_found' });
  });

  it(`${called} keeps apps and plugins, and lists logs of failures`, async () => {
    const { contents } = parts();
    const apk = madeApk({ packageName: 'org.example.made' });
    await contents.uploadPackage(formOf('made.apk', apk));
    const [made] = (await contents.packages()) ?? [];
    expect(made).toMatchObject({ packageName: 'org.example.made', pluginApi: null, bytes: apk.length });
    await expect(contents.uploadPackage(formOf('made.exe', 'x'))).rejects.toMatchObject({ code: 'invalid' });
    await contents.removePackage(made?.hash ?? '');
    expect(await contents.packages()).toEqual([]);
    await expect(contents.removePackage(made?.hash ?? '')).rejects.toMatchObject({ code: 'not_found' });
    expect(await contents.errorLogs()).toEqual([]);
    await expect(contents.removeErrorLog(999_999)).rejects.toMatchObject({ code: 'not_found' });
    await expect(contents.errorLog(999_999)).rejects.toMatchObject({ code: 'not_found' });
  });
}
