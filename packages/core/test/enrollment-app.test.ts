// Enrollment on 8446 as a client sees it: what it asks, what it gets, and what is left behind when
// something fails.

import { X509Certificate } from 'node:crypto';
import { DOMParser } from '@xmldom/xmldom';
import { strFromU8, unzipSync } from 'fflate';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { ADA_SIGNS_IN, type AskOptions, type EnrollmentWorld, enrollmentWorld } from './fake-core-enrollment.ts';
import { bare, opensslRequest } from './fake-signing-requests.ts';

const TLS = '/Marti/api/tls';
let world: EnrollmentWorld;
let request: string;
beforeAll(() => {
  request = opensslRequest().pem;
});
beforeEach(async () => {
  world = await enrollmentWorld();
});

const asAda = (path: string, options: AskOptions = {}): Promise<Response> =>
  world.ask(path, { ...options, headers: { authorization: ADA_SIGNS_IN, ...options.headers } });
const signClient = (query = '', options: AskOptions = {}): Promise<Response> =>
  asAda(`${TLS}/signClient/v2${query}`, { method: 'POST', body: request, ...options });
const lines = (pem: string): string => pem.replaceAll(/-----[^-]+-----/g, '').trim();
const logged = (event: string) => world.log.events.filter((each) => each.event === event).map(({ fields }) => fields);

describe('tls/config', () => {
  it('says in the very form that clients read what the subject must have', async () => {
    const answer = await asAda(`${TLS}/config`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/xml']);
    expect(await answer.text()).toBe(
      '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>' +
        '<ns2:certificateConfig xmlns="http://bbn.com/marti/xml/config" xmlns:ns2="com.bbn.marti.config">' +
        '<nameEntries><nameEntry name="O" value="Holdfast"/><nameEntry name="OU" value="CoT"/></nameEntries>' +
        '</ns2:certificateConfig>',
    );
  });

  it('answers HEAD without a body, and other methods with what it takes', async () => {
    const head = await asAda(`${TLS}/config`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const put = await asAda(`${TLS}/config`, { method: 'PUT' });
    expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    const get = await asAda(`${TLS}/signClient/v2`);
    expect([get.status, get.headers.get('allow')]).toEqual([405, 'POST']);
  });
});

describe('profiles', () => {
  it('switch channels on for the host that the device asked, in a data package that names its files', async () => {
    const answer = await asAda(`${TLS}/profile/enrollment?clientUid=ANDROID-1`);
    expect([answer.status, answer.headers.get('content-disposition')]).toEqual([
      200,
      'attachment; filename=profile.zip',
    ]);
    const files = unzipSync(new Uint8Array(await answer.arrayBuffer()));
    expect(Object.keys(files)).toEqual(['file0/enable-channels.pref', 'MANIFEST/manifest.xml']);
    const [preferences = '', manifest = ''] = Object.values(files).map((bytes) => strFromU8(bytes));
    const entries = [...preferences.matchAll(/<entry key="([^"]+)" class="class java.lang.\w+">([^<]+)</g)];
    expect(entries.map(([, key, value]) => [key, value])).toEqual([
      ['prefs_enable_channels', 'true'],
      ['prefs_enable_channels_host-cot.example.org', 'true'],
      ['deviceProfileEnableOnConnect', 'true'],
    ]);
    expect(manifest).toContain('zipEntry="file0/enable-channels.pref"');
  });

  it('are none for a tool: 204', async () => {
    const answer = await asAda(`${TLS}/profile/tool/maps`);
    expect([answer.status, await answer.text()]).toEqual([204, '']);
    expect((await asAda(`${TLS}/profile/tool/maps/file?relativePath=/a.xml`)).status).toBe(404);
    expect((await asAda(`${TLS}/profile/tool/maps/file?relativePath=/../a.xml`)).status).toBe(400);
    expect((await asAda(`${TLS}/profile/tool/maps?syncSecago=soon`)).status).toBe(400);
  });
});

describe('signClient/v2', () => {
  it('answers JSON with certificate and chain in lines of 64, without header lines', async () => {
    const answer = await signClient('?clientUid=ANDROID-1&version=3');
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json']);
    const body = (await answer.json()) as Record<string, string>;
    const [row] = world.certificates.rows;
    expect(body).toEqual({ signedCert: lines(row?.certificate ?? ''), ca0: lines(world.authority.chain[0] ?? '') });
    const wrapped = `-----BEGIN CERTIFICATE-----\n${body['signedCert']}\n-----END CERTIFICATE-----\n`;
    const certificate = new X509Certificate(wrapped);
    expect(certificate.subject).toBe('O=Holdfast\nOU=CoT\nCN=ada');
    expect(row).toMatchObject({
      clientUid: 'ANDROID-1',
      creatorDn: 'ada',
      userDn: 'ada',
      hash: certificate.fingerprint256,
    });
    expect(logged('enrollment.signed')).toEqual([
      {
        user: 'ada',
        client_uid: 'ANDROID-1',
        hash: certificate.fingerprint256,
        serial: certificate.serialNumber.toLowerCase(),
        address: '192.0.2.7',
      },
    ]);
  });

  it('answers XML to who asks for it', async () => {
    const answer = await signClient('', { headers: { accept: 'application/xml' } });
    expect(answer.headers.get('content-type')).toBe('application/xml');
    const root = new DOMParser().parseFromString(await answer.text(), 'application/xml').documentElement;
    const parts = [...(root?.childNodes ?? [])].map(({ nodeName, textContent }) => [nodeName, textContent]);
    expect([root?.nodeName, parts]).toEqual([
      'enrollment',
      [
        ['signedCert', lines(world.certificates.rows[0]?.certificate ?? '')],
        ['ca', lines(world.authority.chain[0] ?? '')],
      ],
    ]);
  });

  it('chooses by Accept with its weights, and refuses with 400 what it cannot write', async () => {
    const chosen: [string, string][] = [
      ['', 'application/json'],
      ['*/*', 'application/json'],
      ['text/plain', 'application/json'],
      ['APPLICATION/XML; charset=utf-8', 'application/xml'],
      ['application/json;q=0.5, application/xml', 'application/xml'],
      ['application/xml;q=0.1, application/json;q=0.9', 'application/json'],
      ['*/*, application/xml', 'application/xml'],
      ['application/json;q=0, */*;q=0.1, application/xml;q=0.05', 'application/xml'],
      ['application/json;q=0, */*', 'application/xml'],
      ['text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2', 'application/json'],
    ];
    for (const [accept, type] of chosen) {
      const answer = await signClient('', { headers: { accept } });
      expect([accept, answer.status, answer.headers.get('content-type')]).toEqual([accept, 200, type]);
    }
    const issued = world.certificates.rows.length;
    for (const accept of ['text/html', 'application/xml;q=0', 'image/*', 'nonsense']) {
      const answer = await signClient('', { headers: { accept } });
      expect([answer.status, await answer.json()]).toMatchObject([400, { status: 'BAD_REQUEST', code: 2 }]);
    }
    expect(world.certificates.rows).toHaveLength(issued);
  });

  it('marks channels when a version is told, be it empty', async () => {
    const usages = async (query: string): Promise<string[]> => {
      const { signedCert } = (await (await signClient(query)).json()) as { signedCert: string };
      return new X509Certificate(Buffer.from(signedCert, 'base64')).keyUsage;
    };
    const channels = '1.2.840.113549.1.9.7';
    expect(await usages('?version=3')).toContain(channels);
    expect(await usages('?version=')).toContain(channels);
    expect(await usages('?clientUid=x')).not.toContain(channels);
  });

  it('keeps an empty clientUid when none is told, and refuses what is none', async () => {
    await signClient();
    await signClient('?clientUid=ada%20(ETL)');
    expect(world.certificates.rows.map(({ clientUid }) => clientUid)).toEqual(['', 'ada (ETL)']);
    for (const clientUid of ['a%00b', 'a%0Ab', 'x'.repeat(256)])
      expect((await signClient(`?clientUid=${clientUid}`)).status).toBe(400);
    expect(world.certificates.rows).toHaveLength(2);
  });

  it('takes the spelling of the directory, and the request without header lines', async () => {
    const body = bare(opensslRequest({ subject: '/O=Holdfast/OU=CoT/CN=Ada' }).pem);
    expect((await signClient('', { body })).status).toBe(200);
    expect(world.certificates.rows[0]?.userDn).toBe('ada');
  });

  it('answers 500 with the reason when the request breaks a rule, and tells the log', async () => {
    const answer = await signClient('?clientUid=ANDROID-1', {
      body: opensslRequest({ subject: '/O=Holdfast/OU=CoT/CN=wanda' }).pem,
    });
    expect([answer.status, await answer.json()]).toEqual([
      500,
      { status: 'INTERNAL_SERVER_ERROR', code: 6, message: expect.stringMatching(/'wanda', but 'ada' is signed in/) },
    ]);
    expect(world.certificates.rows).toEqual([]);
    expect(logged('enrollment.failed')).toMatchObject([
      { kind: 'request', user: 'ada', client_uid: 'ANDROID-1', reason: expect.stringMatching(/'wanda'/) },
    ]);
  });

  it('takes 64 KB at most, told or not', async () => {
    const body = 'A'.repeat(64 * 1024 + 1);
    const reported = { 'content-length': String(body.length) };
    expect((await signClient('', { body, headers: reported })).status).toBe(413);
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        pulled += 1;
        controller.enqueue(new Uint8Array(1024).fill(65));
      },
    });
    expect((await signClient('', { body: endless })).status).toBe(413);
    expect(pulled).toBeLessThan(70);
    expect((await signClient('', { body: '\u{1F600}' })).status).toBe(500);
  });

  it('gives nothing out that the database has not kept', async () => {
    world.certificates.before = async () => {
      throw new AppError('unavailable', 'The database at 10.0.0.5 does not answer');
    };
    const answer = await signClient();
    expect(answer.status).toBe(503);
    const text = await answer.text();
    expect(text).not.toMatch(/MII|10\.0\.0\.5/);
    expect(logged('enrollment.failed')).toMatchObject([{ kind: 'unavailable', user: 'ada' }]);
  });

  it('gives nothing out to an account that is closed while the certificate is made', async () => {
    const ada = world.directory.people.get('ada');
    world.authority.before = async () => {
      if (ada !== undefined) ada.active = false;
    };
    const answer = await signClient();
    expect([answer.status, await answer.text()]).toEqual([401, expect.not.stringContaining('MII')]);
    expect(logged('enrollment.signed')).toEqual([]);
    expect(logged('enrollment.failed')).toMatchObject([{ kind: 'password', user: 'ada' }]);
  });

  it('does not sign for an account that is closed while the body comes', async () => {
    const ada = world.directory.people.get('ada');
    const body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          if (ada !== undefined) ada.active = false;
          controller.enqueue(new TextEncoder().encode(request));
          controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    expect((await signClient('', { body })).status).toBe(401);
    expect(world.certificates.rows).toEqual([]);
  });

  it('says nothing of what is wrong inside, but to the log', async () => {
    world.authority.before = async () => {
      throw new Error('/srv/core/certs/files/ca-do-not-share.key is missing');
    };
    const answer = await signClient();
    expect([answer.status, await answer.text()]).toEqual([500, expect.not.stringContaining('/srv')]);
    expect(logged('enrollment.failed')).toMatchObject([
      { kind: 'internal', reason: expect.stringMatching(/is missing/) },
    ]);
  });
});

describe('a name that no certificate can have', () => {
  it('is said to whoever enrolls with it, and counted as a fault of the request', async () => {
    world.authority.before = () => Promise.reject(new AppError('invalid', 'The common name "ada" is too long.'));
    const answer = await signClient();
    expect([answer.status, await answer.json()]).toEqual([
      500,
      { status: 'INTERNAL_SERVER_ERROR', code: 6, message: 'The common name "ada" is too long.' },
    ]);
    expect(logged('enrollment.failed')).toMatchObject([{ kind: 'request', user: 'ada' }]);
    expect(world.certificates.rows).toEqual([]);
  });
});

describe('signClient', () => {
  it('answers a bundle with the password that clients know, under the aliases they look for', async () => {
    const answer = await asAda(`${TLS}/signClient?clientUid=ANDROID-1&version=3`, { method: 'POST', body: request });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/octet-stream']);
    const { password, listed } = (await answer.json()) as { password: string; listed: [string, string][] };
    expect([password, listed.map(([name]) => name)]).toEqual(['atakatak', ['signedCert', 'ca0']]);
    const digest = (pem: string): string => new X509Certificate(pem).fingerprint256.replaceAll(':', '').toLowerCase();
    expect(listed.map(([, hash]) => hash)).toEqual(
      [world.certificates.rows[0]?.certificate ?? '', world.authority.chain[0] ?? ''].map(digest),
    );
  });
});

describe('the log', () => {
  it('is not filled by failures: a few lines a minute, then a count', async () => {
    for (let count = 0; count < 30; count++) await signClient('', { body: 'nonsense' });
    expect(logged('enrollment.failed')).toHaveLength(20);
    world.later(60_000);
    await signClient();
    expect(logged('enrollment.failed_more')).toEqual([{ request: 10 }]);
    expect(logged('enrollment.signed')).toHaveLength(1);
  });
});
