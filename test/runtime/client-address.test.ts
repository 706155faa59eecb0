import { get, type IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createApp } from '../../functions/app.ts';
import { type Connection, withRequestLog } from '../../shared/http/request-log.ts';
import { behindProxies, trustedProxies } from '../../shared/runtime/client-address.ts';
import { serveApp } from '../../shared/runtime/node-server.ts';
import { ADMIN, basic, fakeDeps, memoryLog } from '../http/fake-deps.ts';

const PROXIES = ['10.0.0.1', '172.30.0.0/16', '2001:db8:1::/48', '::ffff:192.0.2.128/121'];

/** What the app is told of a connection from `peer` with these headers. */
function seen(peer: string, headers: Record<string, string> = {}, proxies = PROXIES, secure = false): Connection {
  let reported: Connection | undefined;
  const fetch = behindProxies((_, connection) => {
    reported = connection;
    return new Response();
  }, proxies);
  void fetch(new Request('http://h/', { headers }), { clientAddress: peer, secure });
  if (reported === undefined) throw new Error('the app was not asked');
  return reported;
}
const addressOf = (peer: string, forwarded: string): string =>
  seen(peer, { 'x-forwarded-for': forwarded }).clientAddress;

describe('X-Forwarded-For', () => {
  it('is not read where no proxy is trusted, and then nothing stands in the way', () => {
    const fetch = (): Response => new Response();
    expect(behindProxies(fetch, [])).toBe(fetch);
    expect(behindProxies(fetch)).toBe(fetch);
  });

  it.each(['10.0.0.2', '192.0.2.7', '2001:db8:2::1', '192.0.2.1', '', '127.0.0.1'])(
    'of the stranger "%s" is not read',
    (peer) => {
      const headers = { 'x-forwarded-for': '198.51.100.1', 'x-forwarded-proto': 'https' };
      expect(seen(peer, headers)).toEqual({ clientAddress: peer, secure: false });
    },
  );

  it.each([
    ['10.0.0.1', '198.51.100.1', '198.51.100.1'],
    ['172.30.255.255', '198.51.100.1', '198.51.100.1'],
    ['2001:db8:1:ffff::1', '2001:db8:9::1', '2001:db8:9::1'],
    ['::ffff:10.0.0.1', '198.51.100.1', '198.51.100.1'],
    ['192.0.2.129', '198.51.100.1', '198.51.100.1'],
    ['10.0.0.1', '::ffff:198.51.100.1', '198.51.100.1'],
    ['10.0.0.1', ' 198.51.100.1\t', '198.51.100.1'],
  ])('of the proxy %s, "%s", names %s', (peer, forwarded, client) => expect(addressOf(peer, forwarded)).toBe(client));

  it.each([
    ['what the client wrote itself', '203.0.113.9, 198.51.100.1', '198.51.100.1'],
    ['proxies of ours in a row', '203.0.113.9, 198.51.100.1, 172.30.0.5, 2001:db8:1::7', '198.51.100.1'],
    ['a client that claims to be a proxy of ours', '172.30.0.5, 198.51.100.1', '198.51.100.1'],
    ['nobody but proxies', '172.30.0.5, 10.0.0.1', '172.30.0.5'],
    ['no address on the right', '203.0.113.9, unknown', '10.0.0.1'],
    ['no address behind a proxy', '203.0.113.9, x, 172.30.0.5', '172.30.0.5'],
    ['an empty word', '203.0.113.9,', '10.0.0.1'],
    ['an address with a port', '203.0.113.9:4711', '10.0.0.1'],
    ['brackets', '[2001:db8::1]', '10.0.0.1'],
    ['an odd spelling', '0xc6336407', '10.0.0.1'],
    ['too many numbers', '1.2.3.4.5', '10.0.0.1'],
    ['a zone', 'fe80::1%eth0', '10.0.0.1'],
    ['nothing', '', '10.0.0.1'],
    ['a network', '198.51.100.0/24', '10.0.0.1'],
  ])('is read from the right as long as it can be: %s', (_, forwarded, client) =>
    expect(addressOf('10.0.0.1', forwarded)).toBe(client),
  );

  it('is the address of the proxy itself where it names nobody', () =>
    expect(seen('10.0.0.1').clientAddress).toBe('10.0.0.1'));
});

describe('X-Forwarded-Proto', () => {
  it.each([
    ['https', false, true],
    ['HTTPS', false, true],
    ['http', true, false],
    ['http, https', false, true],
    ['https, http', false, false],
    ['ftp', false, false],
    ['', true, true],
  ])('"%s" from a proxy that came over TLS: %s, is secure: %s', (scheme, secure, expected) =>
    expect(seen('10.0.0.1', { 'x-forwarded-proto': scheme }, PROXIES, secure).secure).toBe(expected),
  );

  it('that is missing leaves the connection what it is', () => {
    expect(seen('10.0.0.1', {}, PROXIES, true).secure).toBe(true);
    expect(seen('10.0.0.1').secure).toBe(false);
  });
});

describe('behind a trusted proxy', () => {
  it('the log, the audit and the lockout see the same client, over a real socket', async () => {
    const deps = fakeDeps();
    const log = memoryLog();
    const app = createApp(deps);
    const fetch = withRequestLog(
      (request, bindings) => app.fetch(request, bindings),
      log,
      () => 0,
      deps.requests,
    );
    const port = 31_600 + Math.floor(Math.random() * 100);
    const server = await serveApp(behindProxies(fetch, ['127.0.0.1']), [{ address: '127.0.0.1', port }], log);
    const ask = (headers: Record<string, string>): Promise<number> =>
      new Promise((resolve, reject) => {
        const answered = (response: IncomingMessage): void => {
          response.resume();
          resolve(response.statusCode ?? 0);
        };
        get({ host: '127.0.0.1', port, path: '/api/settings', headers }, answered).on('error', reject);
      });
    const wrong = { authorization: basic('webadmin', 'wrong'), 'x-forwarded-for': '203.0.113.1, 198.51.100.1' };
    for (let count = 0; count < 10; count++) expect(await ask(wrong)).toBe(401);
    expect(await ask({ ...ADMIN, 'x-forwarded-for': '198.51.100.1' })).toBe(429);
    expect(await ask({ ...ADMIN, 'x-forwarded-for': '203.0.113.1' })).toBe(200);
    await server.close(0);
    const logged = log.events.filter(({ event }) => event === 'http.request').map(({ fields }) => fields['address']);
    expect(logged).toEqual([...Array.from({ length: 11 }, () => '198.51.100.1'), '203.0.113.1']);
    expect(new Set(deps.audit.records.map(({ address }) => address))).toEqual(new Set(['198.51.100.1']));
    expect((await deps.authenticator.lockouts()).map(({ address }) => address)).toEqual(['198.51.100.1']);
  });

  it('a page of our own may write where TLS ends at the proxy, the same page without TLS may not', async () => {
    const app = createApp(fakeDeps());
    const fetch = behindProxies(
      (request, connection) => app.fetch(request, { ...connection, requestId: 'request-1' }),
      ['10.0.0.1'],
    );
    const status = async (origin: string): Promise<number> => {
      const headers = { ...ADMIN, origin, 'x-forwarded-proto': 'https', 'x-forwarded-for': '198.51.100.1' };
      const request = new Request('http://cot.example.org/api/nothing', { method: 'DELETE', headers });
      return (await fetch(request, { clientAddress: '10.0.0.1', secure: false })).status;
    };
    expect(await status('https://cot.example.org')).toBe(404);
    expect(await status('http://cot.example.org')).toBe(403);
    expect(await status('https://evil.org')).toBe(403);
  });
});

describe('trustedProxies', () => {
  it('tells the addresses of proxies from others, and is nothing without any', () => {
    const isTrusted = trustedProxies(['10.0.0.2', '2001:db8::/32']);
    const addresses = ['10.0.0.2', '2001:db8::9', '10.0.0.3', '', 'cot.example.org'];
    expect(addresses.map((address) => isTrusted?.(address))).toEqual([true, true, false, false, false]);
    expect(trustedProxies([])).toBeUndefined();
  });
});
