// What devices get and send by HTTP on a real database: profiles, and logs of their failures.

import { createHash } from 'node:crypto';
import { strFromU8, unzipSync } from 'fflate';
import type postgres from 'postgres';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ServerEvent } from '../model/stream.ts';
import { ADA, BOB, type callsWorld, EVE, wellFormed } from './core-client-calls-world.ts';
import { type AdminAnswer, subscription } from './fake-core-admin.ts';

type Parts = () => { world: ReturnType<typeof callsWorld>; sql: postgres.Sql };

export function deviceCalls(parts: Parts): void {
  const world = () => parts().world;
  const sql = () => parts().sql;

  describe('device profiles', () => {
    const base = '/Marti/api/device/profile';
    const json = (value: unknown) => ({ json: value, headers: { 'content-type': 'application/json' } });
    const idOf = async (name: string): Promise<number> => (await world().ask('GET', `${base}/${name}`)).body.data.id;

    async function make(name: string, change: Record<string, unknown>, files: Record<string, string>): Promise<void> {
      expect((await world().ask('POST', `${base}/${name}?group=Ops`)).status).toBe(201);
      const whole = { id: await idOf(name), active: true, type: 'Connection', groups: ['Ops'], ...change };
      expect((await world().ask('PUT', `${base}/${name}`, json(whole))).status).toBe(200);
      for (const [file, body] of Object.entries(files))
        expect(
          (await world().ask('PUT', `${base}/${name}/file?filename=${encodeURIComponent(file)}`, { body })).status,
        ).toBe(200);
    }
    const entries = ({ bytes }: AdminAnswer): Record<string, string> =>
      Object.fromEntries(Object.entries(unzipSync(bytes)).map(([path, data]) => [path, strFromU8(data)]));

    beforeEach(() => sql()`DELETE FROM device_profile`);

    it('reach the devices of their groups at each connection, in a data package that names its files', async () => {
      await make('radio', {}, { 'plan & <1>.txt': 'one', 'map.xml': 'two' });
      const given = await world().ask('GET', `${base}/connection?syncSecago=-1&clientUid=x`, { as: ADA });
      const files = entries(given);
      expect(Object.keys(files)).toEqual([
        'file0/enable-channels.pref',
        'file1/plan & <1>.txt',
        'file2/map.xml',
        'MANIFEST/manifest.xml',
      ]);
      expect(files['file1/plan & <1>.txt']).toBe('one');
      wellFormed(files['MANIFEST/manifest.xml'] ?? '');
      expect(files['MANIFEST/manifest.xml']).toContain('zipEntry="file1/plan &amp; &lt;1&gt;.txt"');
      const others = entries(await world().ask('GET', `${base}/connection?clientUid=x`, { as: EVE }));
      expect(Object.keys(others)).toEqual(['file0/enable-channels.pref', 'MANIFEST/manifest.xml']);
    });

    it('are sent to connected devices of their groups, which fetch them', async () => {
      await make('radio', {}, { 'plan.txt': 'one' });
      const { options, subscriptions, ask } = world();
      subscriptions.push(subscription('ada'), subscription('eve', { groups: [{ name: 'Med', direction: 'OUT' }] }));
      const told: ServerEvent[] = [];
      options.toDevices = (devices, event) => {
        expect(devices.map(({ clientUid }) => clientUid)).toEqual(['uid-ada']);
        told.push(event);
      };
      const send = (uids: string[]) => ask('POST', `${base}/radio/send`, json(uids));
      expect((await send(['uid-ada'])).status).toBe(200);
      const package_ = await ask('GET', `${base}/radio/missionpackage`, { as: ADA });
      expect(entries(package_)['file0/plan.txt']).toBe('one');
      const hash = createHash('sha256').update(package_.bytes).digest('hex');
      expect(told).toMatchObject([{ type: 'b-f-t-r', uid: hash }]);
      expect(told[0]?.detail).toContain(`senderUrl="https://cot.example.org:8443${base}/radio/missionpackage"`);
      for (const uid of ['uid-eve', 'uid-nobody']) expect((await send(['uid-ada', uid])).status).toBe(400);
      expect((await ask('GET', `${base}/radio/missionpackage`, { as: EVE })).status).toBe(404);
      expect((await ask('POST', `${base}/radio/send`, { ...json([]), as: ADA })).status).toBe(403);
      subscriptions.splice(0);
    });

    it('take files of forms too', async () => {
      await make('radio', {}, {});
      const body = new FormData();
      body.append('file', new Blob(['<map/>']), 'C:\\maps\\map.xml');
      expect((await world().ask('POST', `${base}/radio/file`, { body })).body.data).toMatchObject({
        name: 'map.xml',
        bytes: 6,
      });
      expect((await world().ask('POST', `${base}/radio/file`, { body: 'x' })).status).toBe(400);
    });

    it('come again only when they have changed since, and not while they are off', async () => {
      await make('radio', {}, { a: '1' });
      const count = async (query: string) =>
        Object.keys(entries(await world().ask('GET', `${base}/connection?${query}`, { as: ADA }))).length;
      world().later(60_000);
      expect([await count('syncSecago=30'), await count('syncSecago=90'), await count('')]).toEqual([2, 3, 3]);
      await world().ask(
        'PUT',
        `${base}/radio`,
        json({ id: await idOf('radio'), active: false, type: 'Connection', groups: ['Ops'] }),
      );
      expect(await count('')).toBe(2);
      world().later(-60_000);
      expect(await world().ask('GET', `${base}/connection?syncSecago=x`, { as: ADA })).toMatchObject({ status: 400 });
    });

    it('of a tool are one file, a folder, or what is newer', async () => {
      await make(
        'maps',
        { type: 'Tool', tool: 'layers', groups: ['APPLY_TO_ALL_GROUPS'] },
        { 'a/one.xml': '1', 'a/two.xml': '2', three: '3' },
      );
      const tool = `${base}/tool/layers`;
      expect(Object.keys(entries(await world().ask('GET', tool, { as: EVE })))).toHaveLength(4);
      expect((await world().ask('GET', `${base}/tool/other`, { as: EVE })).status).toBe(204);
      const one = await world().ask('GET', `${tool}/file?relativePath=/a/one.xml`, { as: EVE });
      expect([one.status, one.text, one.headers.get('content-disposition')]).toEqual([
        200,
        '1',
        'attachment; filename="one.xml"',
      ]);
      expect(Object.keys(entries(await world().ask('GET', `${tool}/file?relativePath=/a`, { as: EVE })))).toEqual([
        'a/one.xml',
        'a/two.xml',
        'MANIFEST/manifest.xml',
      ]);
      const headers = { 'if-modified-since': one.headers.get('last-modified') ?? '' };
      expect((await world().ask('GET', `${tool}/file?relativePath=/a/one.xml`, { as: EVE, headers })).status).toBe(304);
      for (const path of ['/../a', '/a/../../b', 'C:%5Ca', '/', '%00'])
        expect((await world().ask('GET', `${tool}/file?relativePath=${path}`, { as: EVE })).status).toBe(400);
      expect((await world().ask('GET', `${tool}/file?relativePath=/gone`, { as: EVE })).status).toBe(404);
    });

    it('are listed with what they hold, and deleted with it', async () => {
      await make('<b>"x"', { type: 'Enrollment' }, { a: 'abc' });
      const { body } = await world().ask('GET', base);
      expect(body.data).toEqual([
        {
          id: expect.any(Number),
          name: '<b>"x"',
          active: true,
          type: 'Enrollment',
          tool: null,
          applyOnEnrollment: true,
          applyOnConnect: false,
          updated: expect.any(String),
          groups: ['Ops'],
        },
      ]);
      const name = encodeURIComponent('<b>"x"');
      const [file] = (await world().ask('GET', `${base}/${name}/files`)).body.data;
      expect(file).toEqual({ id: expect.any(Number), name: 'a', bytes: 3 });
      expect((await world().ask('GET', `${base}/${name}/file/${file.id}`)).text).toBe('abc');
      expect((await world().ask('DELETE', `${base}/${name}/file/${file.id}`)).status).toBe(200);
      expect((await world().ask('DELETE', `${base}/${name}/file/${file.id}`)).status).toBe(404);
      expect((await world().ask('DELETE', `${base}/${body.data[0].id}`)).status).toBe(200);
      expect((await world().ask('GET', base)).body.data).toEqual([]);
    });

    it('refuse what is no profile, and what is too much', async () => {
      await make('radio', {}, {});
      const id = await idOf('radio');
      const good = { id, active: true, type: 'Connection', groups: ['Ops'] };
      for (const wrong of [
        { ...good, type: 'Other' },
        { ...good, active: 'yes' },
        { ...good, id: id + 1 },
        { ...good, type: 'Tool' },
        { ...good, groups: 'Ops' },
        [],
        null,
      ])
        expect((await world().ask('PUT', `${base}/radio`, json(wrong))).status).toBe(400);
      for (const name of ['..%2Fa', 'a%2F..%2Fb', 'a%00', 'x'.repeat(200), ''])
        expect((await world().ask('PUT', `${base}/radio/file?filename=${name}`, { body: 'x' })).status).toBe(400);
      const large = new Uint8Array(10 * 1024 * 1024);
      expect(
        (await world().ask('PUT', `${base}/radio/file?filename=a`, { body: new Uint8Array(large.length + 1) })).status,
      ).toBe(413);
      for (const file of ['a', 'b', 'c', 'a'])
        expect((await world().ask('PUT', `${base}/radio/file?filename=${file}`, { body: large })).status).toBe(200);
      expect((await world().ask('PUT', `${base}/radio/file?filename=d`, { body: large })).status).toBe(409);
      expect((await world().ask('GET', `${base}/radio/files`)).body.data).toHaveLength(3);
      expect((await world().ask('POST', `${base}/tool`)).status).toBe(400);
      expect((await world().ask('PUT', `${base}/radio`, { ...json(good), as: ADA })).status).toBe(403);
    });
  });

  describe('error logs', () => {
    const send = (uid: string, body: string, as = ADA) =>
      world().ask(
        'POST',
        `/Marti/ErrorLog?platform=ATAK&uid=${uid}&callsign=A%3Cb%3E&majorVersion=5.5&minorVersion=1`,
        {
          as,
          body,
        },
      );
    const list = async () => (await world().ask('GET', '/Marti/api/errorlogs')).body.data;
    const zip = Buffer.from('PK\u0003\u0004 log').toString('base64').replace('P', '\nP');

    beforeEach(() => sql()`DELETE FROM error_logs`);

    it('are kept with whose certificate they came by, and read by administrators alone', async () => {
      expect(await send('u1', zip)).toMatchObject({ status: 200, text: '' });
      expect(await list()).toEqual([
        {
          id: expect.any(Number),
          uid: 'u1',
          callsign: 'A<b>',
          username: 'ada',
          platform: 'ATAK',
          majorVersion: '5.5',
          minorVersion: '1',
          filename: 'log.zip',
          bytes: 8,
          time: '2026-11-22T10:20:30.007Z',
        },
      ]);
      const [{ id }] = await list();
      expect((await world().ask('GET', `/Marti/ErrorLog?id=${id}`)).text).toBe('PK\u0003\u0004 log');
      for (const path of [`/Marti/ErrorLog?id=${id}`, '/Marti/api/errorlogs'])
        expect((await world().ask('GET', path, { as: ADA })).status).toBe(403);
      expect((await world().ask('DELETE', `/Marti/ErrorLog?id=${id}`)).status).toBe(200);
      expect((await world().ask('GET', `/Marti/ErrorLog?id=${id}`)).status).toBe(404);
    });

    it('are twenty of a person, whatever devices they name', async () => {
      for (let n = 0; n < 22; n++) await send(`u${n}`, 'YQ==');
      await send('b', 'YQ==', BOB);
      const all = await list();
      expect(all.map(({ uid }: { uid: string }) => uid)).toEqual([
        'b',
        ...Array.from({ length: 20 }, (_, n) => `u${21 - n}`),
      ]);
    });

    it('refuse what is no log', async () => {
      for (const body of ['', '<xml>', 'a b=c', 'YQ===']) expect((await send('u', body)).status).toBe(400);
      expect((await world().ask('POST', '/Marti/ErrorLog', { as: ADA, body: 'YQ==' })).status).toBe(400);
      expect((await send('x'.repeat(300), 'YQ==')).status).toBe(400);
      expect((await send('u', 'A'.repeat(8 * 1024 * 1024 + 4))).status).toBe(413);
      for (const id of ['x', '1;--', '99999999999', ''])
        expect((await world().ask('GET', `/Marti/ErrorLog?id=${id}`)).status).toBe(400);
      expect(await list()).toEqual([]);
    });
  });
}
