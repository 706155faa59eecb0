// What is asked over HTTP: the release feed and the clock of a server, against real servers good and bad.

import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { httpClock, releaseFeed } from '../../shared/host/http.ts';
import { issue } from '../support/certificates.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

async function urlOf(server: Server, scheme = 'http'): Promise<string> {
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An address where nobody listens any more. */
async function closed(): Promise<string> {
  const server = createServer();
  const url = await urlOf(server);
  await new Promise((done) => server.close(done));
  return url;
}

const serving = (listener: RequestListener): Promise<string> => urlOf(createServer(listener));

describe('the release feed', () => {
  it('finds the newest release of a cycle, and says so when it knows none', async () => {
    const requests: string[] = [];
    const url = await serving(({ url: path = '' }, response) => {
      requests.push(path);
      if (path.endsWith('/unknown.json')) response.writeHead(404).end('no such product');
      else
        response.end(
          JSON.stringify([
            { cycle: '17', latest: '17.10', eol: '2029-11-08' },
            { cycle: 16, latest: '16.14' },
          ]),
        );
    });
    const feed = releaseFeed(`${url}/api/`, fetch);
    expect(await feed.newest('postgresql', '16')).toBe('16.14');
    expect(await feed.newest('postgresql', '9')).toBeUndefined();
    expect(await feed.newest('unknown', '1')).toBeUndefined();
    expect(requests).toEqual(['/api/postgresql.json', '/api/postgresql.json', '/api/unknown.json']);
  });

  it.each([
    ['a page of a captive portal', (_: unknown, response: { end(text: string): void }) => response.end('<html>')],
    ['another shape', (_: unknown, response: { end(text: string): void }) => response.end('{"releases":[]}')],
    [
      'an endless answer',
      (_: unknown, response: { write(text: string): boolean; destroyed: boolean }) => {
        const more = (): void => {
          if (!response.destroyed) setTimeout(more, response.write('[1,'.repeat(100_000)) ? 0 : 20);
        };
        more();
      },
    ],
  ])('refuses %s', async (_, listener) => {
    const feed = releaseFeed(await serving(listener), fetch);
    await expect(feed.newest('postgresql', '16')).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringMatching(/UPDATES_URL/),
    });
  });

  it('tells a server that is not there from one that is not to be trusted', async () => {
    await expect(releaseFeed(await closed(), fetch).newest('a', '1')).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/^Couldn't reach 127\.0\.0\.1:\d+ \(ECONNREFUSED\)$/),
    });
    const { pem, key } = await issue('somebody', undefined, { names: ['127.0.0.1'] });
    const url = await urlOf(
      createTlsServer({ cert: pem, key }, (_, response) => response.end('[]')),
      'https',
    );
    await expect(releaseFeed(url, fetch).newest('a', '1')).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringMatching(/SELF_SIGNED/),
    });
  });
});

describe('the clock of a server', () => {
  it('is its Date header, whatever the status', async () => {
    const url = await serving((_, response) => {
      response.writeHead(503, { date: 'Wed, 04 Mar 2026 05:06:07 GMT' }).end();
    });
    expect(await httpClock('provider', url, fetch).readMs()).toBe(Date.UTC(2026, 2, 4, 5, 6, 7));
  });

  it('is an error without that header, and when nobody answers', async () => {
    const silent = await serving((_, response) => {
      response.sendDate = false;
      response.end();
    });
    await expect(httpClock('provider', silent, fetch).readMs()).rejects.toThrow('The provider sent no Date header');
    await expect(httpClock('provider', await closed(), fetch).readMs()).rejects.toThrow(
      /^The provider does not answer on http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\)$/,
    );
  });
});
