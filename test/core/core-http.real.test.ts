// The client of the core's admin API before answers that a core, or something in its place, may give; over real TLS.

import { describe, expect, it } from 'vitest';
import { coreDate } from '../../shared/core/answers.ts';
import type { HttpCore } from '../../shared/core/http.ts';
import { failureOf, type OddCore, type Routes, sendJson, sendPage, takRecord, wrapped } from './fake-odd-core.ts';
import { withOddCore } from './with-odd-core.ts';

const CERTIFICATES = '/Marti/api/certadmin/cert';
let server: OddCore;
let core: HttpCore;
const serve = (routes: Routes): void => server.serve(routes);

withOddCore((odd, client) => {
  server = odd;
  core = client;
});

const [ada, ben] = [takRecord('ada'), takRecord('ben')];
const hashOf = (record: Record<string, unknown>): string => String(record['hash']);

describe('a date of the core', () => {
  it.each([
    ['2026-11-22T10:20:30.7Z', '2026-11-22T10:20:30.007Z'],
    ['2026-11-22T10:20:30.70Z', '2026-11-22T10:20:30.070Z'],
    ['2026-11-22T10:20:30.07Z', '2026-11-22T10:20:30.007Z'],
    ['2026-11-22T10:20:30.700Z', '2026-11-22T10:20:30.700Z'],
    ['2026-11-22T10:20:30.0Z', '2026-11-22T10:20:30.000Z'],
    ['2026-11-22T10:20:30.999Z', '2026-11-22T10:20:30.999Z'],
    ['2026-11-22T10:20:30Z', '2026-11-22T10:20:30.000Z'],
    ['2024-02-29T23:59:59.1Z', '2024-02-29T23:59:59.001Z'],
    ['2026-02-29T10:20:30.7Z', undefined],
    ['2026-11-22T24:00:00.0Z', undefined],
    ['2026-11-22T10:20:30.1234Z', undefined],
    ['2026-11-22T10:20:30.7', undefined],
    ['2026-11-22T10:20:30.Z', undefined],
    ['2026-11-22', undefined],
    ['', undefined],
  ])('%s is %s', (text, read) => {
    expect(coreDate(text)).toBe(read);
  });
});

describe('certificates', () => {
  it('are read with unpadded dates, members that are absent or null, and serial numbers in any spelling', async () => {
    const { pem, serial, hash } = (await server.pki.client('old')).signed;
    const odd = takRecord('odd', {
      clientUid: undefined,
      serialNumber: '00:AB:0C',
      revocationDate: '2026-11-23T01:02:03.12Z',
    });
    const old = takRecord('old', { certificate: pem, hash: null, serialNumber: null, issuanceDate: null });
    const broken = takRecord('zoe', { certificate: null, serialNumber: null });
    serve({ [`GET ${CERTIFICATES}`]: [ada, odd, old, broken] });
    expect(await core.certificates()).toEqual([
      {
        hash: hashOf(ada),
        serial: 'ab12',
        username: 'ada',
        clientUid: 'uid-ada',
        issuedAt: '2026-11-22T10:20:30.007Z',
        expiresAt: '2027-11-22T10:20:30.000Z',
        revokedAt: null,
        pem: ada['certificate'],
      },
      expect.objectContaining({
        username: 'odd',
        clientUid: '',
        serial: 'ab0c',
        revokedAt: '2026-11-23T01:02:03.012Z',
      }),
      expect.objectContaining({ username: 'old', serial, hash, issuedAt: '2026-11-21T22:20:30.070Z', pem }),
      expect.objectContaining({ username: 'zoe', serial: '', pem: '' }),
    ]);
  });

  it('of one user are those of exactly this name, whatever the core answers', async () => {
    serve({ [`GET ${CERTIFICATES}`]: [ada, takRecord('ADA'), takRecord('ada-doe'), ben] });
    expect((await core.certificates('Ada')).map(({ username }) => username)).toEqual(['ada', 'ADA']);
    expect(server.requests).toEqual([`GET ${CERTIFICATES}?username=Ada`]);
    await core.certificates('a&b=c ü');
    expect(server.requests.at(-1)).toBe(`GET ${CERTIFICATES}?username=a&b=c+ü`);
  });

  it('may be many: a list is read as far as 128 MB', async () => {
    const large = { certificate: `-----BEGIN CERTIFICATE-----\n${'é'.repeat(500_000)}` };
    serve({ [`GET ${CERTIFICATES}`]: Array.from({ length: 30 }, (_, n) => takRecord(`user ${n}`, large)) });
    const found = await core.certificates();
    expect(found.map(({ username }) => username).at(-1)).toBe('user 29');
    expect(new Set(found.map(({ pem }) => pem))).toEqual(new Set([large.certificate]));
  });

  it('that are revoked have a date, whatever else the list of the revoked holds', async () => {
    const gone = takRecord('gone', { revocationDate: '2026-11-22T10:20:30.1Z' });
    serve({ [`GET ${CERTIFICATES}/revoked`]: [ada, gone] });
    expect((await core.revokedCertificates()).map(({ username }) => username)).toEqual(['gone']);
  });

  it('are unknown when the core answers a page of 500 and does not list them', async () => {
    const fault = (_: unknown, response: Parameters<typeof sendPage>[0]): void =>
      sendPage(response, 500, 'HTTP Status 500 – Internal Server Error');
    serve({ [`GET ${CERTIFICATES}/${hashOf(ada)}`]: fault, [`GET ${CERTIFICATES}`]: [ben] });
    expect(await core.certificate(hashOf(ada))).toBeUndefined();
    expect(await failureOf(core.revoke(hashOf(ada)))).toMatchObject({ code: 'not_found' });
    expect(server.requests.filter((each) => each.startsWith('DELETE'))).toEqual([]);

    serve({ [`GET ${CERTIFICATES}/${hashOf(ada)}`]: fault, [`GET ${CERTIFICATES}`]: [ada, ben] });
    const hidden = await failureOf(core.certificate(hashOf(ada)));
    expect(hidden).toMatchObject({ code: 'upstream', message: expect.stringContaining('HTTP Status 500 – Internal') });

    serve({ [`GET ${CERTIFICATES}/${hashOf(ada)}`]: fault, [`GET ${CERTIFICATES}`]: fault });
    expect(await failureOf(core.certificate(hashOf(ada)))).toMatchObject({ code: 'upstream' });
  });

  it('are asked for by a hash alone: nothing else becomes part of an address', async () => {
    serve({});
    for (const odd of ['active', 'revoked', '', '../x', 'AA:BB', `${hashOf(ada)}/download`])
      expect(await core.certificate(odd)).toBeUndefined();
    expect(server.requests).toEqual([]);
    serve({ [`GET ${CERTIFICATES}/${hashOf(ada)}`]: ada });
    expect((await core.certificate(hashOf(ada).toLowerCase()))?.username).toBe('ada');
    serve({ [`GET ${CERTIFICATES}/${hashOf(ada)}`]: ben });
    expect(await failureOf(core.certificate(hashOf(ada)))).toMatchObject({ code: 'upstream' });
  });

  it('are revoked when the date is read back, not when the core says 200', async () => {
    let reads = 0;
    const path = `${CERTIFICATES}/${hashOf(ada)}`;
    const revoked = { ...ada, revocationDate: '2026-11-22T11:00:00.5Z' };
    const silent = (_: unknown, response: { end: () => void }): void => response.end();
    serve({
      [`DELETE ${path}`]: silent,
      // The third answer after the first has the date.
      [`GET ${path}`]: (_: unknown, response: Parameters<typeof sendJson>[0]) =>
        sendJson(response, wrapped(reads++ < 3 ? ada : revoked)),
    });
    expect(await core.revoke(hashOf(ada))).toMatchObject({ revokedAt: '2026-11-22T11:00:00.005Z' });
    expect(server.requests.filter((each) => each.startsWith('DELETE'))).toHaveLength(1);

    serve({ [`GET ${path}`]: revoked });
    expect(await core.revoke(hashOf(ada))).toMatchObject({ revokedAt: '2026-11-22T11:00:00.005Z' });
    expect(server.requests.filter((each) => each.startsWith('DELETE'))).toHaveLength(1);

    serve({ [`DELETE ${path}`]: silent, [`GET ${path}`]: ada });
    const never = await failureOf(core.revoke(hashOf(ada)));
    expect(never).toMatchObject({ code: 'upstream', message: expect.stringContaining('without a revocation date') });

    serve({
      [`DELETE ${path}`]: (_: unknown, response: Parameters<typeof sendPage>[0]) => sendPage(response, 403, 'Sign in'),
      [`GET ${path}`]: ada,
    });
    expect(await failureOf(core.revoke(hashOf(ada)))).toMatchObject({
      code: 'upstream',
      message: expect.stringMatching(/does not allow us .*403.*Sign in.*svc_api\.p12/),
    });
  });
});

describe('an answer that makes no sense', () => {
  const path = `GET ${CERTIFICATES}`;
  type Response = Parameters<typeof sendPage>[0];
  const type = { 'content-type': 'application/json' };
  const answers: [what: string, answer: unknown, code: string, words: RegExp][] = [
    [
      'a page of 200',
      (_: unknown, r: Response) => sendPage(r, 200, 'TAK Server login'),
      'upstream',
      /not JSON: TAK Server login/,
    ],
    [
      'a page of 403',
      (_: unknown, r: Response) => sendPage(r, 403, 'Sign in'),
      'upstream',
      /does not allow us .*\(403\): Sign in/,
    ],
    [
      'JSON of 401',
      (_: unknown, r: Response) => sendJson(r, { message: 'no\n\tway' }, 401),
      'upstream',
      /\(401\): no way/,
    ],
    ['nothing with 200', (_: unknown, r: Response) => r.end(), 'upstream', /with an empty body/],
    [
      'JSON that ends too early',
      (_: unknown, r: Response) => r.writeHead(200, type).end('{"data":[{'),
      'upstream',
      /broken or cut off/,
    ],
    [
      'JSON as text',
      (_: unknown, r: Response) => r.writeHead(200, { 'content-type': 'text/plain' }).end('{"data":[]}'),
      'upstream',
      /not JSON/,
    ],
    [
      'another shape',
      (_: unknown, r: Response) => sendJson(r, { data: [{ ...ada, expirationDate: 'soon' }] }),
      'upstream',
      /data\.0\.expirationDate/,
    ],
    ['no wrapper', (_: unknown, r: Response) => sendJson(r, [ada]), 'upstream', /unexpected shape/],
    [
      'a redirect',
      (_: unknown, r: Response) => r.writeHead(302, { location: 'https://elsewhere.example/x' }).end(),
      'upstream',
      /redirect to https:\/\/elsewhere\.example, which is not followed/,
    ],
    ['no such address', (_: unknown, r: Response) => sendPage(r, 404, 'Not Found'), 'upstream', /Correct CORE_API_URL/],
    [
      'a fault',
      (_: unknown, r: Response) => sendJson(r, { status: 'INTERNAL', code: 6, message: `x${'y'.repeat(900)}` }, 500),
      'upstream',
      /internal error .{200,400}\.\.\.$/,
    ],
    [
      'a part that is away',
      (_: unknown, r: Response) => sendJson(r, { status: 'NOT_FOUND', code: 0, message: 'm' }, 404),
      'unavailable',
      /can't reach a part of itself/,
    ],
    [
      'a proxy without a core',
      (_: unknown, r: Response) => sendPage(r, 502, 'Bad Gateway'),
      'unavailable',
      /starting, or a part of it is unavailable/,
    ],
    [
      'a pause',
      (_: unknown, r: Response) => r.writeHead(429, { 'retry-after': '900' }).end(),
      'unavailable',
      /Try again in 15 minutes/,
    ],
    ['the end of the connection', (_: unknown, r: Response) => r.destroy(), 'unavailable', /closed the connection/],
    [
      'the end in the middle',
      (_: unknown, r: Response) =>
        r.writeHead(200, { ...type, 'content-length': '999' }).write('{"data"', () => r.destroy()),
      'unavailable',
      /closed the connection|cannot be talked to/,
    ],
  ];

  it.each(answers)('is refused in one line: %s', async (_, answer, code, words) => {
    serve({ [path]: answer });
    const failure = await failureOf(core.certificates());
    expect([failure.code, failure.message]).toEqual([code, expect.stringMatching(words)]);
    expect(failure.message).not.toMatch(/[\n\t]/);
    expect(failure.message).toMatch(/^The core at 127\.0\.0\.1:\d+ /);
  });

  it('is no JSON because of its path: any JSON type is JSON, with or without a charset', async () => {
    for (const json of [
      'application/json;charset=UTF-8',
      'Application/JSON',
      'application/vnd.spring-boot.actuator.v3+json',
    ]) {
      serve({ [path]: (_: unknown, r: Response) => r.writeHead(200, { 'content-type': json }).end('{"data":[]}') });
      expect(await core.certificates()).toEqual([]);
    }
  });

  it('that never ends is not read to the end', async () => {
    let ended = false;
    serve({
      'GET /Marti/api/version': (_: unknown, response: Response) => {
        response.writeHead(200, { 'content-type': 'text/plain' });
        const chunk = 'x'.repeat(1024 * 1024);
        const more = (): void => void (ended || response.destroyed || response.write(chunk, more));
        response.on('close', () => (ended = true));
        more();
      },
    });
    expect(await failureOf(core.status())).toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('more than the size limit'),
    });
    await expect.poll(() => ended).toBe(true);
  });

  it('that does not come is waited for ten seconds', { timeout: 20_000 }, async () => {
    server.answers = () => undefined;
    const begun = performance.now();
    expect(await failureOf(core.status())).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('did not answer GET /Marti/api/version within 10 s'),
    });
    expect(performance.now() - begun).toBeGreaterThan(9_900);
  });
});
