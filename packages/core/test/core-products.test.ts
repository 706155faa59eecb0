// Apps and plugins that ATAK installs from the server, icon sets, and what the server says of
// itself.

import { createHash } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { strFromU8, strToU8, unzipSync, zipSync } from 'fflate';
import { afterAll, describe, expect, it } from 'vitest';
import { ProductFiles } from '../store/products.ts';
import { adminWorld, byCertificate } from './fake-core-admin.ts';
import { binaryManifest, madeApk } from './made-apk.ts';

const PRODUCTS = '/Marti/api/update/products';
const ADA = byCertificate('ada');
const world = adminWorld();
afterAll(() => world.end());
world.people.addGroup('core_Ops');
world.people.addPerson('ada', 'x').groups.push('core_Ops');
world.people.addPerson('eve', 'x');

const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

function form(part: string, bytes: Uint8Array<ArrayBuffer>, filename = 'a.apk'): FormData {
  const body = new FormData();
  body.append(part, new Blob([bytes]), filename);
  return body;
}

const upload = (bytes: Uint8Array<ArrayBuffer>, query = '') =>
  world.ask('POST', `${PRODUCTS}${query}`, { body: form('file', bytes) });
const hashes = async (): Promise<string[]> =>
  (await world.ask('GET', PRODUCTS)).body.data.map(({ hash }: { hash: string }) => hash);
const listed = async (): Promise<string[][]> => {
  const { bytes } = await world.ask('GET', '/update/product.infz', { as: ADA });
  const lines = strFromU8(unzipSync(bytes)['product.inf'] ?? new Uint8Array()).split('\n');
  return lines.filter((line) => line !== '' && !line.startsWith('#')).map((line) => line.split(','));
};

describe('apps and plugins', () => {
  const plugin = madeApk({ api: 'com.atakmap.app@5.5.0.CIV', description: 'Marks, things' });

  it('are listed for every device in the thirteen columns that ATAK reads, each with its icon', async () => {
    expect((await upload(plugin)).status).toBe(200);
    const app = madeApk({ packageName: 'org.example.app', utf16: true, nameless: true });
    expect((await upload(app, '?name=My%20app')).status).toBe(200);
    const icon = 'icon.png';
    const [appHash, pluginHash] = [hashOf(app), hashOf(plugin)];
    expect(await listed()).toEqual([
      [
        'Android',
        'app',
        'org.example.app',
        'My app',
        '1.2 beta',
        '7',
        `${appHash}.apk`,
        icon,
        'My app',
        appHash,
        '21',
        '',
        String(app.length),
      ],
      [
        'Android',
        'plugin',
        'org.example.plugin',
        'Märker',
        '1.2 beta',
        '7',
        `${pluginHash}.apk`,
        icon,
        'Marks things',
        pluginHash,
        '21',
        'com.atakmap.app@5.5.0.CIV',
        String(plugin.length),
      ],
    ]);
    const archive = await world.ask('GET', '/update/product.infz', { as: ADA });
    expect(archive.headers.get('content-length')).toBe(String(archive.bytes.length));
    expect(Object.keys(unzipSync(archive.bytes))).toEqual(['product.inf', icon]);
    expect((await world.ask('GET', '/update/product.inf', { as: ADA })).text).toContain(pluginHash);
  });

  it('are downloaded whole and in parts', async () => {
    const path = `/update/${hashOf(plugin)}.apk`;
    const whole = await world.ask('GET', path, { as: ADA });
    expect([whole.status, hashOf(whole.bytes)]).toEqual([200, hashOf(plugin)]);
    const part = await world.ask('GET', path, { as: ADA, headers: { range: 'bytes=2-5' } });
    expect([part.status, part.bytes]).toEqual([206, plugin.slice(2, 6)]);
    expect((await world.ask('HEAD', path, { as: ADA })).headers.get('content-length')).toBe(String(plugin.length));
    expect((await world.ask('GET', path, { as: ADA, headers: { range: 'bytes=999999-' } })).status).toBe(416);
    for (const name of [`${'0'.repeat(64)}.apk`, '..%2Fnode-id', `${hashOf(plugin)}.json`, 'x'])
      expect((await world.ask('GET', `/update/${name}`, { as: ADA })).status).toBe(404);
  });

  it('give way to a newer revision for the same ATAK, and stay for another one', async () => {
    const newer = madeApk({ api: 'com.atakmap.app@5.5.0.CIV', revision: 8 });
    const other = madeApk({ api: 'com.atakmap.app@5.4.0.CIV', revision: 8 });
    await upload(newer);
    await upload(other);
    expect((await hashes()).toSorted()).toEqual(expect.arrayContaining([hashOf(newer), hashOf(other)].toSorted()));
    expect(await hashes()).not.toContain(hashOf(plugin));
    expect((await world.ask('DELETE', `${PRODUCTS}/${hashOf(other)}`)).status).toBe(200);
    expect((await world.ask('DELETE', `${PRODUCTS}/${hashOf(other)}`)).status).toBe(404);
    expect(await hashes()).not.toContain(hashOf(other));
  });

  it('are what Android would install, or are refused', async () => {
    const broken = binaryManifest({});
    for (const bytes of [
      strToU8('no zip'),
      zipSync({ 'a.txt': strToU8('a') }),
      zipSync({ 'AndroidManifest.xml': strToU8('<manifest package="a.b"/>') }),
      zipSync({ 'AndroidManifest.xml': broken.slice(0, 60) }),
      madeApk({ packageName: '<script>' }),
    ])
      expect(await upload(bytes)).toMatchObject({ status: 400, body: { code: 2 } });
    for (let at = 8; at < broken.length; at += 3) {
      const bytes = broken.slice();
      bytes[at] = 0xff;
      expect([200, 400]).toContain((await upload(zipSync({ 'AndroidManifest.xml': bytes }, { level: 0 }))).status);
    }
    expect((await upload(madeApk(), '?name=%00')).status).toBe(400);
    expect((await upload(new Uint8Array(7_000_000))).status).toBe(413);
    for (const [method, path] of [
      ['GET', PRODUCTS],
      ['POST', PRODUCTS],
      ['DELETE', `${PRODUCTS}/x`],
    ] as const)
      expect((await world.ask(method, path, { as: ADA })).status).toBe(403);
  });

  it('survive a restart, without what a crash has left', async () => {
    const directory = join(world.dataDir, 'update');
    writeFileSync(join(directory, `${'1'.repeat(64)}.apk`), 'half');
    writeFileSync(join(directory, 'x.json.new'), '{');
    const before = await hashes();
    const again = new ProductFiles(directory);
    expect((await again.list()).map(({ hash }) => hash)).toEqual(before);
    expect(readdirSync(directory)).toHaveLength(2 * before.length);
  });
});

describe('an icon set', () => {
  const set = (uid: string) => zipSync({ 'x/iconset.xml': strToU8(`<iconset name="X" uid="${uid}"/>`) });
  const send = (bytes: Uint8Array<ArrayBuffer>, as = ADA) =>
    world.ask('POST', '/Marti/api/iconset', { as, body: form('file', bytes, 'icons.zip') });

  it('is kept under its own uid, for the groups of who sends it', async () => {
    expect(await send(set('set-1'))).toMatchObject({ status: 200, body: { type: 'java.lang.String' } });
    const uids = async (as = ADA) => (await world.ask('GET', '/Marti/api/iconset/all/uid', { as })).body.data;
    expect([await uids(), await uids(byCertificate('eve'))]).toEqual([['set-1'], []]);
    const metadata = (as = ADA) => world.ask('GET', `/Marti/sync/${hashOf(set('set-1'))}/metadata`, { as });
    expect(JSON.parse((await metadata()).text)).toMatchObject({ UID: 'set-1', Tool: 'iconset', Name: 'icons.zip' });
    expect((await metadata(byCertificate('eve'))).status).toBe(404);
  });

  it('is refused if it is none', async () => {
    for (const bytes of [strToU8('x'), zipSync({ 'a.xml': strToU8('<a/>') }), set(''), set('a\u202e')])
      expect((await send(bytes)).status).toBe(400);
    expect((await world.ask('POST', '/Marti/api/iconset', { as: ADA, body: 'x' })).status).toBe(400);
    expect((await send(set('x'), byCertificate('ada', 'ROLE_READONLY'))).status).toBe(403);
  });
});

it('the server says how it is secured, without a password, to administrators alone', async () => {
  const read = async (path: string) => (await world.ask('GET', `/Marti/api/${path}`)).body.data;
  expect(await read('security/config')).toMatchObject({
    keystoreFile: 'server.pem',
    keystorePass: '',
    validityDays: 365,
  });
  expect(await read('authentication/config')).toMatchObject({
    url: 'ldaps://directory.example.org',
    groupPrefix: 'core_',
    serviceAccountCredential: '',
  });
  expect([await read('security/isSecure'), await read('security/verifyConfig')]).toEqual(['true', 'true']);
  for (const path of ['security/config', 'security/isSecure', 'security/verifyConfig', 'authentication/config'])
    expect((await world.ask('GET', `/Marti/api/${path}`, { as: ADA })).status).toBe(403);
  world.options.security.verify = () => {
    throw new Error('server.pem is missing');
  };
  expect(await world.ask('GET', '/Marti/api/security/verifyConfig')).toMatchObject({ status: 400 });
});
