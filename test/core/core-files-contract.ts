// What phones see of files on 8443, held against the files in memory and against the tables.

import { createHash, randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  ADMIN,
  type AdminAnswer,
  adminWorld,
  type AskOptions,
  byCertificate,
} from '../../packages/core/test/fake-core-admin.ts';
import { MAX_UPLOAD_BYTES } from '../../packages/core/test/fake-core-resources.ts';

type World = ReturnType<typeof adminWorld>;
const ADA = byCertificate('ada');
const BOB = byCertificate('bob');
const EVE = byCertificate('eve');

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export function formOf(bytes: Uint8Array<ArrayBuffer>, filename = 'plan.zip', part = 'assetfile'): FormData {
  const form = new FormData();
  form.append('note', 'of no use'.repeat(20_000));
  form.append('another', new Blob([new Uint8Array(100_000)]), 'another.bin');
  form.append(part, new Blob([bytes], { type: 'application/x-zip-compressed' }), filename);
  return form;
}

export function coreFilesContract(what: string, make: () => Promise<World>): void {
  describe(`files on 8443 (${what})`, () => {
    let world: World;
    const ask = (method: string, path: string, input: AskOptions = {}): Promise<AdminAnswer> =>
      world.ask(method, path, { as: ADA, ...input });
    const spooled = (): string[] => readdirSync(join(world.dataDir, 'uploads'));
    const fetched = (hash: string, requested: AskOptions = {}): Promise<AdminAnswer> =>
      ask('GET', `/Marti/sync/content?hash=${hash}`, requested);

    beforeAll(async () => {
      world = await make();
      const people = { ada: 'core_Ops', bob: 'core_Ops', eve: 'core_Other', ron: 'core_Ops_READ' };
      for (const [name, group] of Object.entries(people)) {
        world.people.addGroup(group);
        world.people.addPerson(name, 'x').groups.push(group);
      }
    });

    it.each([
      ['nothing', 0],
      ['one byte', 1],
      ['a part and a byte', 393_217],
      ['5 MB', 5_000_000],
    ])('come back byte for byte: %s', async (_, size) => {
      const bytes = new Uint8Array(randomBytes(size));
      const hash = sha256(bytes);
      const path = `/Marti/sync/upload?name=raw-${size}.bin&keywords=a,b&creatorUid=UID-1`;
      const up = await ask('POST', path, { body: bytes, headers: { 'content-type': 'image/jpeg' } });
      expect([up.status, up.type]).toEqual([200, 'text/json']);
      const shown = JSON.parse(up.text) as Record<string, unknown>;
      expect(shown).toEqual({
        UID: expect.stringMatching(/^[0-9a-f-]{36}$/),
        SubmissionDateTime: '2026-11-22T10:20:30.007Z',
        Keywords: ['a', 'b'],
        MIMEType: 'image/jpeg',
        SubmissionUser: 'ada',
        PrimaryKey: expect.stringMatching(/^\d+$/),
        Hash: hash,
        CreatorUid: 'UID-1',
        Name: `raw-${size}.bin`,
        Size: String(size),
        Tool: 'public',
        EXPIRATION: '-1',
      });
      const down = await fetched(hash);
      expect([down.status, down.type, sha256(down.bytes)]).toEqual([200, 'image/jpeg', hash]);
      expect(down.headers.get('content-length')).toBe(String(size));
      expect(sha256((await ask('GET', `/Marti/api/files/${hash}`)).bytes)).toBe(hash);
      const byUid = await ask('GET', `/Marti/sync/content?uid=${String(shown['UID'])}`, { as: BOB });
      expect(sha256(byUid.bytes)).toBe(hash);
      const head = await ask('HEAD', `/Marti/sync/content?hash=${hash.toUpperCase()}`);
      expect([head.status, head.text, head.headers.get('content-length')]).toEqual([200, '', String(size)]);
      expect(spooled()).toEqual([]);
    });

    it('have parts for who asks for them, and 416 for what is not there', async () => {
      const bytes = new Uint8Array(randomBytes(300_000));
      const hash = sha256(bytes);
      await ask('POST', '/Marti/sync/upload?name=range', { body: bytes });
      for (const [range, from, end] of [
        ['bytes=0-0', 0, 1],
        ['bytes=131070-262145', 131_070, 262_146],
        ['bytes=299999-', 299_999, 300_000],
        ['bytes=-5', 299_995, 300_000],
        ['bytes=10-999999999', 10, 300_000],
      ] as const) {
        const part = await fetched(hash, { headers: { range } });
        expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes ${from}-${end - 1}/300000`]);
        expect(Buffer.from(part.bytes).equals(bytes.subarray(from, end))).toBe(true);
      }
      const beyond = await fetched(hash, { headers: { range: 'bytes=300000-' } });
      expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, 'bytes */300000']);
      const other = await fetched(hash, { headers: { range: 'bytes=0-0', 'if-range': '"another"' } });
      expect([other.status, other.bytes.length]).toEqual([200, 300_000]);
    });

    it('make a mission package known by its hash, once in a group, and say nothing of it to others who bring the same', async () => {
      const bytes = new Uint8Array(randomBytes(1000));
      const hash = sha256(bytes);
      const url = `https://cot.example.org:8443/Marti/sync/content?hash=${hash}`;
      const path = `/Marti/sync/missionupload?filename=plan.zip&hash=${hash}&creatorUid=UID-1`;
      expect((await ask('GET', `/Marti/sync/missionquery?hash=${hash}`)).status).toBe(404);
      const up = await ask('POST', path, { body: formOf(bytes), headers: { host: 'evil.example' } });
      expect([up.status, up.type, up.text]).toEqual([200, 'text/plain;charset=utf-8', url]);
      expect(await ask('GET', `/Marti/sync/missionquery?hash=${hash}`, { as: BOB })).toMatchObject({ text: url });
      for (const hidden of [`/Marti/sync/missionquery?hash=${hash}`, `/Marti/sync/content?hash=${hash}`])
        expect((await ask('GET', hidden, { as: EVE })).status).toBe(404);
      expect((await ask('DELETE', `/Marti/api/files/${hash}`, { as: EVE })).status).toBe(404);
      const hers = { as: EVE, body: formOf(bytes) };
      expect(await ask('POST', `${path}&keyword=kept`, hers)).toMatchObject({ status: 200, text: url });
      expect(await ask('POST', path, { as: BOB, body: formOf(bytes) })).toMatchObject({ status: 200, text: url });
      const seen = await ask('GET', `/Marti/sync/search?hash=${hash}`, { as: EVE });
      expect(JSON.parse(seen.text)).toMatchObject({ resultCount: 1, results: [{ SubmissionUser: 'eve' }] });
      expect(sha256((await fetched(hash, { as: EVE })).bytes)).toBe(hash);
      const search = await ask('GET', `/Marti/sync/search?keywords=missionpackage&tool=public&hash=${hash}`);
      expect(search.type).toBe('text/json');
      const { resultCount, results } = JSON.parse(search.text) as { resultCount: number; results: object[] };
      expect(resultCount).toBe(1);
      expect(results[0]).toMatchObject({
        UID: hash,
        Name: 'plan.zip',
        Keywords: ['missionpackage'],
        SubmissionUser: 'ada',
      });
    });

    it('are refused with both hashes when they are not what the caller says, and nothing is kept', async () => {
      const bytes = new Uint8Array(randomBytes(10));
      const claimed = 'ab'.repeat(32);
      const path = `/Marti/sync/missionupload?filename=x.zip&hash=${claimed}`;
      const { status, body } = await ask('POST', path, { body: formOf(bytes) });
      expect([status, body.code]).toEqual([400, 2]);
      expect(body.message).toContain(claimed);
      expect(body.message).toContain(sha256(bytes));
      expect((await fetched(sha256(bytes))).status).toBe(404);
      expect(spooled()).toEqual([]);
    });

    it('go to the groups that are named, if the sender may send there', async () => {
      const bytes = new Uint8Array(randomBytes(10));
      const up = (groups: string, as = ADA): Promise<AdminAnswer> =>
        ask('POST', `/Marti/sync/upload?name=g&Groups=${groups}`, { as, body: bytes });
      expect((await up('Other')).body).toMatchObject({ code: 10, status: 'FORBIDDEN' });
      expect((await up('Other', ADMIN)).status).toBe(200);
      expect((await fetched(sha256(bytes))).status).toBe(404);
      expect((await fetched(sha256(bytes), { as: EVE })).status).toBe(200);
      expect((await up('Ops')).status).toBe(200);
      expect((await fetched(sha256(bytes))).status).toBe(200);
      const reader = byCertificate('ron');
      expect((await ask('POST', '/Marti/sync/upload?name=r', { as: reader, body: bytes })).status).toBe(403);
    });

    it('have versions under one uid: the newest is fetched', async () => {
      const path = '/Marti/sync/upload?name=v&uid=shared-uid';
      for (const text of ['first', 'second']) await ask('POST', path, { body: text });
      expect((await ask('GET', '/Marti/sync/content?uid=shared-uid')).text).toBe('second');
    });

    it('are never run by a browser, whatever they are called', async () => {
      const names = ['a"b.zip', 'Übung 🦊.zip', '../../etc/passwd', 'C:\\temp\\x.zip', '..'];
      const wanted = ['a_b.zip', '_bung _.zip', 'passwd', 'x.zip', 'file'];
      for (const [index, name] of names.entries()) {
        const bytes = new Uint8Array(randomBytes(9));
        const headers = { 'content-type': index % 2 === 0 ? 'text/html' : 'image/svg+xml' };
        const path = `/Marti/sync/upload?name=${encodeURIComponent(name)}`;
        expect((await ask('POST', path, { body: bytes, headers })).status).toBe(200);
        const down = await fetched(sha256(bytes));
        expect([down.type, down.headers.get('x-content-type-options')]).toEqual([
          'application/octet-stream',
          'nosniff',
        ]);
        expect(down.headers.get('content-disposition')).toMatch(`attachment; filename="${wanted[index]}"`);
      }
      const down = await ask('POST', '/Marti/sync/upload?name=a%0d%0aset-cookie:x', { body: 'x' });
      expect([down.status, down.body.message]).toEqual([
        400,
        'Invalid Request: name has characters that cannot be shown',
      ]);
    });

    it.each([
      [`name=${'x'.repeat(129)}`, 'name has more than 128 characters'],
      [`name=x&keywords=${'k'.repeat(129)}`, 'keyword has more than 128 characters'],
      [`name=x&keywords=${Array.from({ length: 65 }, (_, index) => index).join()}`, 'at most 64 keywords'],
      ['name=x&creatorUid=%00', 'creatorUid has characters'],
      ['name=x&uid=%ed%a0%80%e2%80%ae', 'uid has characters'],
      ['name=x&latitude=91', 'latitude must be a number from -90 to 90'],
    ])('are refused with %s', async (query, why) => {
      const { status, body } = await ask('POST', `/Marti/sync/upload?${query}`, { body: 'x' });
      expect(status).toBe(400);
      expect(body.message).toContain(why);
      expect(spooled()).toEqual([]);
    });

    it('are refused beyond the limit, with and without a length, in a form and without one', async () => {
      const large = new Uint8Array(MAX_UPLOAD_BYTES + 1);
      const headers = { 'content-length': String(MAX_UPLOAD_BYTES + 300_000) };
      for (const wantedFile of [{ body: 'x', headers }, { body: large }, { body: formOf(large) }])
        expect((await ask('POST', '/Marti/sync/upload?name=x', wantedFile)).status).toBe(413);
      expect(spooled()).toEqual([]);
    });

    it('are refused in what is no form, or a form without a file', async () => {
      const path = '/Marti/sync/missionupload?filename=x.zip';
      const odd: AskOptions[] = [
        { body: 'x' },
        { body: formOf(new Uint8Array(3), 'x.zip', 'other') },
        { body: 'x', headers: { 'content-type': 'multipart/form-data' } },
        { body: 'x', headers: { 'content-type': 'multipart/form-data; boundary=b' } },
        {
          body: '--b\r\ncontent-disposition: form-data; name="assetfile"; filename="x"\r\n\r\nnot closed',
          headers: { 'content-type': 'multipart/form-data; boundary=b' },
        },
      ];
      for (const wantedInput of odd) expect((await ask('POST', path, wantedInput)).body).toMatchObject({ code: 2 });
      expect(spooled()).toEqual([]);
    });

    it('are found the newest first, without the names of their groups, which only the list shows', async () => {
      for (const name of ['first', 'second'])
        await ask('POST', `/Marti/sync/upload?name=${name}&tool=searched`, { body: name });
      const { resources } = world.options;
      const query = { groups: 'all' as const, tool: 'searched' };
      const found = await resources.search(query, 10);
      expect(found.map(({ name }) => name)).toEqual(['second', 'first']);
      expect(found.some((file) => 'groups' in file)).toBe(false);
      expect(await resources.search(query, 1)).toEqual(found.slice(0, 1));
      const listed = await resources.list(query, { order: 'time', ascending: false, limit: 10, offset: 0 });
      expect(listed).toEqual(found.map((file) => ({ ...file, groups: ['Ops'] })));
    });

    it('are listed for those who may see them', async () => {
      const bytes = new Uint8Array(2600);
      await ask('POST', '/Marti/sync/missionupload?filename=listed-me.zip&tool=t1', { body: formOf(bytes) });
      const query = 'name=LISTED-ME&missionPackage=true&sort=size&ascending=true&limit=5&page=1';
      const { body } = await ask('GET', `/Marti/api/files/metadata?${query}`);
      expect(body).toMatchObject({ version: '3', type: 'Files' });
      expect(body.data).toEqual([
        {
          Name: 'listed-me.zip',
          User: 'ada',
          Creator: '',
          Size: '3kB',
          Time: '2026-11-22T10:20:30.007Z',
          MimeType: 'application/x-zip-compressed',
          Keywords: ['missionpackage'],
          Expiration: -1,
          Hash: sha256(bytes),
          Groups: ['Ops'],
          Tool: 't1',
        },
      ]);
      const count = (as = ADA): Promise<AdminAnswer> =>
        ask('GET', '/Marti/api/files/metadata/count?name=listed-me', { as });
      expect([(await count()).body.data, (await count(EVE)).body.data]).toEqual([1, 0]);
      expect((await ask('GET', '/Marti/api/files/metadata?limit=1&page=99')).body.data).toEqual([]);
      expect((await ask('GET', '/Marti/api/files/metadata?sort=constructor')).status).toBe(400);
      const found = await ask('GET', `/Marti/api/sync/search?tool=t1`);
      expect(found.body.data).toMatchObject([{ hash: sha256(bytes), size: 2600, filename: 'listed-me.zip' }]);
      expect((await ask('GET', '/Marti/sync/search?bbox=1,2,3,4')).status).toBe(501);
      expect((await ask('GET', '/Marti/sync/search?startTime=yesterday')).status).toBe(400);
      const late = await ask('GET', '/Marti/sync/search?startTime=2030-01-01T00:00:00Z');
      expect(JSON.parse(late.text)).toEqual({ resultCount: 0, results: [] });
    });

    it('are described anew by who submitted them; the tool by all who see them', async () => {
      const hash = sha256(new TextEncoder().encode('described'));
      await ask('POST', '/Marti/sync/upload?name=d', { body: 'described' });
      const put = (what: string, body: string, as = ADA): Promise<AdminAnswer> =>
        ask('PUT', `/Marti/api/sync/metadata/${hash}/${what}`, { as, body });
      expect([(await put('tool', 'private', BOB)).status, (await put('mimetype', 'a/b', BOB)).status]).toEqual([
        200, 403,
      ]);
      expect((await put('tool', 'x', EVE)).status).toBe(404);
      expect((await put('mimetype', 'Application/ZIP')).status).toBe(200);
      expect((await put('keywords', '["x","y"]', ADMIN)).status).toBe(200);
      expect((await put('expiration?expiration=4102444800', '')).status).toBe(200);
      for (const [what, body] of [
        ['mimetype', 'no type'],
        ['expiration', 'soon'],
        ['keywords', '{}'],
        ['tool', 'a\nb'],
      ] as const)
        expect((await put(what, body)).status).toBe(400);
      expect((await put('hash', 'x')).status).toBe(404);
      const { text } = await ask('GET', `/Marti/sync/search?hash=${hash}`);
      expect(JSON.parse(text)).toMatchObject({
        results: [{ Tool: 'private', MIMEType: 'application/zip', Keywords: ['x', 'y'], EXPIRATION: '4102444800' }],
      });
    });

    it('are deleted by who submitted them, and by administrators', async () => {
      const hashOf = async (text: string): Promise<string> => {
        await ask('POST', '/Marti/sync/upload?name=gone', { body: text });
        return sha256(new TextEncoder().encode(text));
      };
      const hash = await hashOf('gone 1');
      expect((await ask('DELETE', `/Marti/api/files/${hash}`, { as: BOB })).body).toMatchObject({ code: 10 });
      expect((await ask('DELETE', `/Marti/api/files/${hash}`)).status).toBe(200);
      expect((await fetched(hash)).status).toBe(404);
      const second = await hashOf('gone 2');
      expect((await ask('DELETE', `/Marti/sync/delete?hash=${second}`, { as: ADMIN })).type).toBe(
        'text/html;charset=utf-8',
      );
      expect((await fetched(second)).status).toBe(404);
      expect((await ask('POST', '/Marti/sync/delete?PrimaryKey=99999999999')).status).toBe(400);
      expect((await ask('POST', '/Marti/sync/delete?PrimaryKey=2147483647')).status).toBe(404);
      expect((await ask('POST', '/Marti/sync/delete')).status).toBe(400);
    });
  });
}
