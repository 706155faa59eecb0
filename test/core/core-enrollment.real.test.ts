// Enrollment at a server that answers as a core may, or as none should; over real TLS.

import 'reflect-metadata';
import { createPrivateKey, createPublicKey, webcrypto, X509Certificate } from 'node:crypto';
import { rmSync } from 'node:fs';
import * as x509 from '@peculiar/x509';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HttpEnrollment } from '../../shared/core/devices/enrollment.ts';
import { failureOf, type OddCore, oddCore, type Routes, sendJson, sendPage } from './fake-odd-core.ts';
import { type TestPki, testPki } from './fake-test-pki.ts';

const CONFIG = 'GET /Marti/api/tls/config';
const SIGN = 'POST /Marti/api/tls/signClient/v2';
const KEY = { name: 'ECDSA', namedCurve: 'P-384' };
const PASSWORD = 'code & of: ada ü';
const ADA = { username: 'ada', password: PASSWORD };
const ORDER = { ...ADA, clientUid: 'holdfast & ada' };
const NOW = new Date('2026-11-22T10:00:00.000Z');
type Response = Parameters<typeof sendPage>[0];
let server: OddCore;
let enrollment: HttpEnrollment;

beforeAll(async () => {
  server = await oddCore({ clientCertificate: false });
});
afterAll(() => server.end());
beforeEach(() => {
  enrollment = new HttpEnrollment({ url: server.url, dataDir: server.dataDir, now: () => NOW });
});
afterEach(async () => {
  await enrollment.close();
  server.requests.length = 0;
  server.met.length = 0;
});

const config =
  (xml = document('<nameEntry name="O" value="R &amp; D"/><nameEntry name="OU" value="CoT, 1"/>')) =>
  (_: unknown, response: Response): void =>
    void response.writeHead(200, { 'content-type': 'application/xml' }).end(xml);

function document(entries: string, root = 'certificateConfig'): string {
  return (
    '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>' +
    `<ns2:${root} xmlns="http://bbn.com/marti/xml/config" xmlns:ns2="com.bbn.marti.config"><nameEntries>${entries}</nameEntries></ns2:${root}>`
  );
}

interface Input {
  pki?: TestPki;
  commonName?: string;
  /** Signs another key than the one of the request. */
  otherKey?: boolean;
  lines?: boolean;
}

/** Signs what is asked for, or almost. */
function signing({ pki = server.pki, commonName = 'ada', otherKey = false, lines = false }: Input = {}) {
  return (_: unknown, response: Response, body: string): void => {
    void (async () => {
      const request = new x509.Pkcs10CertificateRequest(body);
      const der = createPrivateKey(pki.ca.key).export({ type: 'pkcs8', format: 'der' });
      const keys = await webcrypto.subtle.generateKey(KEY, true, ['sign', 'verify']);
      const ca = new x509.X509Certificate(pki.ca.certificate);
      const made = await x509.X509CertificateGenerator.create({
        serialNumber: '00ab01',
        subject: `CN=${commonName}`,
        issuer: ca.subject,
        notBefore: new Date('2026-11-21T22:00:00.000Z'),
        notAfter: new Date('2027-11-22T10:00:00.000Z'),
        signingAlgorithm: { name: 'ECDSA', hash: 'SHA-384' },
        publicKey: otherKey ? keys.publicKey : await request.publicKey.export(),
        signingKey: await webcrypto.subtle.importKey('pkcs8', new Uint8Array(der), KEY, false, ['sign']),
      });
      const text = (each: x509.X509Certificate): string =>
        lines ? each.toString('pem') : Buffer.from(each.rawData).toString('base64').replaceAll(/.{64}/g, '$&\n');
      sendJson(response, { signedCert: text(made), ca0: text(ca), ca1: text(ca), more: 1 });
    })();
  };
}

const serve = (routes: Routes): void => server.serve({ [CONFIG]: config(), [SIGN]: signing(), ...routes });

describe('enrollment', () => {
  it.each(['a:b', ':', 'a\nb', 'a\0'])(
    'asks nothing for the name %j, whose password would count as wrong and in the end lock us out',
    async (username) => {
      serve({});
      for (const ask of [
        () => enrollment.rules({ username, password: PASSWORD }),
        () => enrollment.enroll({ ...ORDER, username }),
      ])
        await expect(ask()).rejects.toMatchObject({ code: 'invalid', message: expect.stringContaining('colon') });
      expect(server.requests).toEqual([]);
    },
  );

  it('sends a request with exactly the entries that the core wants, and gets a certificate for a key of its own', async () => {
    serve({});
    const enrolled = await enrollment.enroll(ORDER);
    const [requested, sent] = server.met;
    const request = new x509.Pkcs10CertificateRequest(sent?.body ?? '');
    expect(request.subject).toBe('O=R & D, OU=CoT\\, 1, CN=ada');
    expect(await request.verify()).toBe(true);
    expect(server.requests[1]).toBe(`${SIGN}?clientUid=holdfast+&+ada&version=3`);
    const authorization = `Basic ${Buffer.from(`ada:${PASSWORD}`).toString('base64')}`;
    expect([requested, sent].map((each) => each?.headers.authorization)).toEqual([authorization, authorization]);
    expect(sent?.headers.accept).toBe('application/json');

    const certificate = new X509Certificate(enrolled.certificatePem);
    const own = createPublicKey(createPrivateKey(enrolled.keyPem));
    expect(own.equals(certificate.publicKey)).toBe(true);
    expect(own.asymmetricKeyDetails?.namedCurve).toBe('prime256v1');
    expect(enrolled).toMatchObject({
      hash: certificate.fingerprint256,
      serial: 'ab01',
      issuedAt: NOW.toISOString(),
      expiresAt: '2027-11-22T10:00:00.000Z',
    });
    // The core sends its CA twice.
    expect(enrolled.chainPem.map((pem) => new X509Certificate(pem).fingerprint256)).toEqual([
      server.pki.ca.signed.hash,
    ]);
  });

  it('makes another key each time, and takes certificates with header lines and a name in another case', async () => {
    serve({ [SIGN]: signing({ lines: true, commonName: 'ADA' }) });
    const [one, two] = [await enrollment.enroll(ORDER), await enrollment.enroll(ORDER)];
    expect(one.keyPem).not.toBe(two.keyPem);
  });

  it('tells the rules without signing anything', async () => {
    serve({});
    expect(await enrollment.rules(ADA)).toEqual({ O: 'R & D', OU: 'CoT, 1' });
    expect(server.requests).toEqual([CONFIG]);
  });

  it('passes a request for a token on with each field written once, and gives back status, JSON and the cookies of the token', async () => {
    const given = { access_token: 'a.b.c', token_type: 'Bearer', expires_in: 60 };
    serve({
      'POST /oauth/token': (_: unknown, response: Response) =>
        void response
          .writeHead(200, {
            'content-type': 'application/json',
            'set-cookie': [
              'JSESSIONID=1; Path=/',
              'access_token_0=a.b; Path=/; Secure',
              'access_token_1=.c; Path=/; Secure',
              'x=access_token=1',
            ],
          })
          .end(JSON.stringify(given)),
    });
    const answer = await enrollment.token({ ...ADA, further: [['scope', 'a&username=eve']] });
    expect({ ...answer, json: JSON.parse(answer.json) }).toEqual({
      status: 200,
      json: given,
      cookies: ['access_token_0=a.b; Path=/; Secure', 'access_token_1=.c; Path=/; Secure'],
    });
    expect(server.requests).toEqual(['POST /oauth/token']);
    const [met] = server.met;
    expect([...new URLSearchParams(met?.body)]).toEqual([
      ['grant_type', 'password'],
      ['username', 'ada'],
      ['password', PASSWORD],
      ['scope', 'a&username=eve'],
    ]);
    expect(met?.headers['content-type']).toBe('application/x-www-form-urlencoded;charset=UTF-8');
  });

  it('passes on that the core refuses, be it a page, and not that it locks us out or fails', async () => {
    const order = { ...ADA, further: [] };
    const answering = (answer: (response: Response) => void) =>
      serve({ 'POST /oauth/token': (_: unknown, response: Response) => answer(response) });
    answering((response) => sendJson(response, { error: 'invalid_grant' }, 400));
    expect(await enrollment.token(order)).toEqual({
      status: 400,
      json: '{"error":"invalid_grant"}',
      cookies: [],
    });
    answering((response) => void response.writeHead(401).end());
    expect(await enrollment.token(order)).toMatchObject({ status: 401, cookies: [] });
    answering((response) => sendPage(response, 401, 'Unauthorized'));
    expect(JSON.parse((await enrollment.token(order)).json)).toMatchObject({ error: 'invalid_grant' });
    for (const [status, code] of [
      [200, 'upstream'],
      [302, 'upstream'],
      [404, 'upstream'],
      [429, 'unavailable'],
      [500, 'upstream'],
      [503, 'unavailable'],
    ] as const) {
      answering((response) => sendPage(response, status, `no ${PASSWORD}`));
      const failure = await failureOf(enrollment.token(order));
      expect([status, failure.code, failure.message.includes(PASSWORD)]).toEqual([status, code, false]);
    }
  });

  it('comes from an address of its own to a core on this machine', async () => {
    serve({});
    await enrollment.rules(ADA);
    expect(server.met[0]?.address).toBe('127.0.0.2');
  });

  it('keeps no certificate that is not what was asked for', async () => {
    const stranger = await testPki();
    for (const [input, words] of [
      [{ otherKey: true }, /has a different key/],
      [{ commonName: 'ada-doe' }, /is not issued to ada/],
      [{ pki: stranger }, /is not signed by the CA of ca\.pem/],
    ] as const) {
      serve({ [SIGN]: signing(input) });
      const failure = await failureOf(enrollment.enroll(ORDER));
      expect([failure.code, failure.message]).toEqual(['upstream', expect.stringMatching(words)]);
    }
    rmSync(stranger.directory, { recursive: true });
  });

  it.each([
    ['a document type', `<!DOCTYPE x [<!ENTITY a "b">]>${document('')}`],
    ['another root', document('', 'other')],
    ['an entry without a value', document('<nameEntry name="O"/>')],
    ['half a document', document('<nameEntry name="O" value="x"/>').slice(0, -20)],
    ['nothing', ''],
  ])('takes no rules from %s', async (_, xml) => {
    serve({ [CONFIG]: config(xml) });
    expect(await failureOf(enrollment.rules(ADA))).toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('without rules for signing requests'),
    });
  });

  it('takes no rules that no request can follow, and none from a page', async () => {
    serve({ [CONFIG]: config(document('<nameEntry name="No such" value="x"/>')) });
    expect(await failureOf(enrollment.enroll(ORDER))).toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('cannot be made'),
    });
    serve({ [CONFIG]: (_: unknown, response: Response) => sendPage(response, 200, 'Login') });
    expect(await failureOf(enrollment.rules(ADA))).toMatchObject({ code: 'upstream' });
  });
});

describe('a refusal', () => {
  const page =
    (status: number, headers: Record<string, string> = {}) =>
    (_: unknown, response: Response) => {
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      sendPage(response, status, 'HTTP Status');
    };

  it.each([
    [CONFIG, 401, {}, 'forbidden', /refused the username ada or its password/],
    [SIGN, 401, {}, 'forbidden', /refused the username ada or its password/],
    [CONFIG, 429, { 'retry-after': '840' }, 'unavailable', /Try again in 14 minutes/],
    [SIGN, 429, {}, 'unavailable', /Try again later/],
    [SIGN, 403, {}, 'upstream', /does not allow us POST .*\(403\)/],
    [SIGN, 500, {}, 'upstream', /internal error/],
    [SIGN, 503, {}, 'unavailable', /is starting, or a part of it is unavailable/],
    [SIGN, 200, {}, 'upstream', /not JSON/],
    [CONFIG, 302, { location: '/login' }, 'upstream', /redirect/],
    [CONFIG, 404, {}, 'upstream', /Correct CORE_ENROLLMENT_URL/],
  ] as const)('of %s by %i %j is `%s`', async (route, status, headers, code, words) => {
    serve({ [route]: page(status, headers) });
    const failure = await failureOf(enrollment.enroll(ORDER));
    expect([failure.code, failure.message]).toEqual([code, expect.stringMatching(words)]);
  });

  it('is quoted without the password', async () => {
    const basic = Buffer.from(`ada:${PASSWORD}`).toString('base64');
    const message = `lacks O=Holdfast; you sent ${PASSWORD} as ${basic}`;
    serve({ [SIGN]: (_: unknown, response: Response) => sendJson(response, { message }, 500) });
    const failure = await failureOf(enrollment.enroll(ORDER));
    expect(failure.message).toMatch(/lacks O=Holdfast; you sent \*\*\* as \*\*\*$/);
  });

  it('is quoted without the password where it calls itself well and is no JSON', async () => {
    const basic = Buffer.from(`ada:${PASSWORD}`).toString('base64');
    const text = `Hello; you sent ${PASSWORD} as ${basic}`;
    serve({
      [SIGN]: (_: unknown, response: Response) =>
        void response.writeHead(200, { 'content-type': 'text/plain;charset=UTF-8' }).end(text),
    });
    const failure = await failureOf(enrollment.enroll(ORDER));
    expect(failure.message).toMatch(/with a body that is not JSON: Hello; you sent \*\*\* as \*\*\*$/);
  });

  it('is quoted without a short password that lies in the name and password as they are sent', async () => {
    const basic = Buffer.from('ada:Y').toString('base64');
    expect(basic).toContain('Y');
    serve({
      [SIGN]: (_: unknown, response: Response) =>
        void response.writeHead(200, { 'content-type': 'text/plain' }).end(`You sent ${basic}`),
    });
    const failure = await failureOf(enrollment.enroll({ ...ORDER, password: 'Y' }));
    expect(failure.message).toMatch(/ou sent \*\*\*$/);
  });

  it('is what a server gets whose certificate is of nobody known', async () => {
    const other = await oddCore({ clientCertificate: false });
    const wrong = new HttpEnrollment({ url: other.url, dataDir: server.dataDir });
    expect(await failureOf(wrong.enroll(ORDER))).toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('certificate that is not trusted'),
    });
    expect(other.requests).toEqual([]);
    const elsewhere = new HttpEnrollment({ url: `https://localhost:${server.port}`, dataDir: server.dataDir });
    expect(await failureOf(elsewhere.rules(ADA))).toMatchObject({
      message: expect.stringContaining('ERR_TLS_CERT_ALTNAME_INVALID'),
    });
    await Promise.all([wrong.close(), elsewhere.close(), other.end()]);
  });
});
