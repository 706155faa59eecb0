// /Marti/api/certadmin/cert, against the reference.

import { X509Certificate } from 'node:crypto';
import { unzipSync } from 'fflate';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AppError, StackError } from '@holdfast/kit/app-error';
import { DAY_MS } from '@holdfast/kit/time';
import { adminWorld, byCertificate, NODE_ID, START } from './fake-core-admin.ts';

const BASE = '/Marti/api/certadmin/cert';

describe('certificates', () => {
  let world: ReturnType<typeof adminWorld>;
  beforeEach(() => {
    world = adminWorld();
  });
  afterEach(() => world.end());

  const ids = async (path: string): Promise<number[]> =>
    ((await world.ask('GET', BASE + path)).body as { data: { id: number }[] }).data.map(({ id }) => id);

  it('are shown in the wrapper, with every member, dates without padding, the serial in hex', async () => {
    const row = await world.enrolled('ada', { revocationDate: new Date(START + 1234) });
    const { status, type, body } = await world.ask('GET', BASE);
    expect([status, type]).toEqual([200, 'application/json']);
    expect(body).toEqual({
      version: '3',
      type: 'TakCert',
      data: [
        {
          id: 1,
          creatorDn: 'ada',
          subjectDn: 'CN=ada,OU=CoT,O=Holdfast',
          userDn: 'ada',
          certificate: row.certificate,
          hash: row.hash,
          clientUid: 'uid-ada',
          issuanceDate: '2026-11-22T10:20:30.7Z',
          effectiveDate: '2026-11-21T22:20:30.7Z',
          expirationDate: '2027-11-22T10:20:30.7Z',
          revocationDate: '2026-11-22T10:20:31.241Z',
          token: null,
          serialNumber: new X509Certificate(row.certificate).serialNumber.toLowerCase(),
        },
      ],
      nodeId: NODE_ID,
    });
  });

  it('are listed: all, active (revoked and expired ones too), replaced, expired, revoked, of one name', async () => {
    await world.enrolled('ada', { issuanceDate: new Date(START - DAY_MS) });
    await world.enrolled('ada', { revocationDate: new Date(START) });
    await world.enrolled('bob', { expirationDate: new Date(START - 1) });
    expect(await ids('')).toEqual([1, 2, 3]);
    expect(await ids('?username=ada')).toEqual([1, 2]);
    expect(await ids('?username=nobody')).toEqual([]);
    expect(await ids('/active')).toEqual([2, 3]);
    expect(await ids('/replaced')).toEqual([1]);
    expect(await ids('/expired')).toEqual([3]);
    expect(await ids('/revoked')).toEqual([2]);
  });

  it('are listed from memory until one is revoked; deleting does not clear it', async () => {
    await world.enrolled('ada');
    await world.enrolled('bob');
    await ids('');
    await ids('');
    expect(world.listed()).toBe(1);
    expect(await world.ask('DELETE', `${BASE}/delete/2`)).toMatchObject({ status: 200, text: '' });
    expect(await ids('')).toEqual([1, 2]);
    await world.ask('DELETE', `${BASE}/revoke/1`);
    expect(await ids('')).toEqual([1]);
    expect(await ids('/revoked')).toEqual([1]);
  });

  it('are listed anew after half a minute, and after a failure', async () => {
    await ids('');
    world.later(30_000);
    await ids('');
    expect(world.listed()).toBe(2);
  });

  it('are read by the hash, in any case and with encoded colons; an unknown hash is a page of 500', async () => {
    const { hash } = await world.enrolled('ada');
    for (const spelled of [hash, hash.toLowerCase(), hash.replaceAll(':', '%3A')])
      expect((await world.ask('GET', `${BASE}/${spelled}`)).body).toMatchObject({ type: 'TakCert', data: { id: 1 } });
    for (const path of [`/AA:BB`, '/AA:BB/download', '/revoke', '/%00'])
      expect(await world.ask('GET', BASE + path)).toMatchObject({ status: 500, type: 'text/html;charset=utf-8' });
    expect((await world.ask('DELETE', `${BASE}/AA:BB`)).status).toBe(500);
  });

  it('are downloaded one by one as PEM, many as a zip whose names lead nowhere', async () => {
    const ada = await world.enrolled('ada');
    const evil = await world.enrolled('../../etc/x');
    expect(await world.ask('GET', `${BASE}/${ada.hash}/download`)).toMatchObject({
      status: 200,
      type: 'text/plain;charset=utf-8',
      text: ada.certificate,
    });
    const { type, bytes } = await world.ask('GET', `${BASE}/download/2,1,99,99999999999`);
    expect(type).toBe('application/zip');
    const files = unzipSync(bytes);
    expect(Object.keys(files)).toEqual(['1_ada_ClientCert.pem', '2_.._.._etc_x_ClientCert.pem']);
    expect(Object.values(files).map((file) => Buffer.from(file).toString())).toEqual([
      ada.certificate,
      evil.certificate,
    ]);
  });

  it('are revoked by the hash: answered with the row as it is then, the own connection spared for the answer', async () => {
    const { hash } = await world.enrolled('ada');
    const socket = {};
    const { status, body } = await world.ask('DELETE', `${BASE}/${hash}`, { socket });
    expect([status, body.data.revocationDate]).toEqual([200, '2026-11-22T10:20:30.7Z']);
    expect(world.revoked).toHaveLength(1);
    expect(world.revoked[0]?.except).toBe(socket);
  });

  it('are revoked many at once: nothing said, unknown ids passed over, the own one last', async () => {
    const caller = byCertificate('svc_api', 'ROLE_ADMIN');
    await world.enrolled('svc_api', { hash: caller.certificate?.hash ?? '' });
    await world.enrolled('bob');
    const answer = await world.ask('DELETE', `${BASE}/revoke/1,77,2,1`, { as: caller });
    expect(answer).toMatchObject({ status: 200, text: '' });
    expect(world.revoked.map(({ id }) => id)).toEqual([2, 1]);
  });

  it('are all revoked although the list cannot be written, which is told; a database that is away ends it', async () => {
    for (const name of ['ada', 'bob', 'eve']) await world.enrolled(name);
    const tried: number[] = [];
    let failure: Error = new StackError('ca.crl cannot be written.', 'free space');
    world.revocations.revoke = async ({ id }) => {
      tried.push(id);
      throw failure;
    };
    expect((await world.ask('DELETE', `${BASE}/revoke/1,2,3`)).status).toBe(500);
    expect(tried).toEqual([1, 2, 3]);
    failure = new AppError('unavailable', 'The database does not answer');
    expect((await world.ask('DELETE', `${BASE}/revoke/1,2,3`)).status).toBe(503);
    expect(tried).toEqual([1, 2, 3, 1]);
  });

  it('are no longer revoked by somebody who was revoked meanwhile', async () => {
    const caller = byCertificate('mallory', 'ROLE_ADMIN');
    for (const name of ['ada', 'bob']) await world.enrolled(name);
    world.revocations.isRevoked = (serial) => serial === caller.certificate?.serial && world.revoked.length > 0;
    expect((await world.ask('DELETE', `${BASE}/revoke/1,2`, { as: caller })).status).toBe(403);
    expect(world.revoked.map(({ id }) => id)).toEqual([1]);
  });

  it('are forgotten without being revoked', async () => {
    await world.enrolled('ada');
    await world.ask('DELETE', `${BASE}/delete/1,5`);
    expect([world.certificates.rows, world.revoked]).toEqual([[], []]);
  });

  it.each(['/revoke/x', '/revoke/1,', '/delete/1;2', '/delete/-1', '/revoke/1e3', '/delete/1%2C%202'])(
    'refuses ids that are none: DELETE %s',
    async (path) => {
      await world.enrolled('ada');
      const { status, body } = await world.ask('DELETE', BASE + path);
      expect([status, body.status, body.code]).toEqual([400, 'BAD_REQUEST', 2]);
      expect(world.certificates.rows).toHaveLength(1);
    },
  );

  it('shows a row whose certificate cannot be read', async () => {
    await world.enrolled('ada', { certificate: 'garbage' });
    expect((await world.ask('GET', BASE)).body.data[0].serialNumber).toBeNull();
  });
});
