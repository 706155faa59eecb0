// What is asked over HTTP: the release feed and the clock of a server, against real servers good and bad.

import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { httpClock, releaseFeed } from '../../shared/host/http.ts';
import type { ReleaseFeed } from '../../shared/host/port.ts';
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

const POSTGRES = { at: 'endoflife', product: 'postgresql' } as const;
const feedAt = (url: string): ReleaseFeed => releaseFeed({ endoflifeUrl: url, githubUrl: url, fetch });

describe('the release feed', () => {
  it('has the newest release of each cycle, and none of an unknown product', async () => {
    const requests: string[] = [];
    const url = await serving(({ url: path = '' }, response) => {
      requests.push(path);
      if (path.endsWith('/unknown.json')) response.writeHead(404).end('no such product');
      else
        response.end(
          JSON.stringify([
            { cycle: '17', latest: '17.10', latestReleaseDate: '2026-02-12', eol: '2029-11-08' },
            { cycle: 16, latest: '16.14' },
          ]),
        );
    });
    const feed = feedAt(`${url}/api/`);
    expect(await feed.releases(POSTGRES)).toEqual([
      { version: '17.10', releasedAt: new Date('2026-02-12'), notes: undefined },
      { version: '16.14', releasedAt: undefined, notes: undefined },
    ]);
    expect(await feed.releases({ at: 'endoflife', product: 'unknown' })).toEqual([]);
    expect(requests).toEqual(['/api/postgresql.json', '/api/unknown.json']);
  });

  it('reads the releases of a repository, without drafts and pre-releases', async () => {
    const requests: (string | undefined)[] = [];
    const url = await serving(({ url: path, headers }, response) => {
      requests.push(path, headers['user-agent']);
      response.end(
        JSON.stringify([
          { tag_name: 'version/2026.10.0-rc1', prerelease: true, published_at: '2026-10-01T00:00:00Z' },
          { tag_name: 'version/2026.8.4', published_at: '2026-09-01T10:00:00Z', body: 'x'.repeat(1_500_000) },
          { tag_name: 'v2026.8.3', draft: false, published_at: null },
          { tag_name: 'v9', draft: true },
        ]),
      );
    });
    const feed = feedAt(url);
    const tags = 'https://github.com/goauthentik/authentik/releases/tag';
    expect(await feed.releases({ at: 'github', product: 'goauthentik/authentik' })).toEqual([
      { version: '2026.8.4', releasedAt: new Date('2026-09-01T10:00:00Z'), notes: `${tags}/version%2F2026.8.4` },
      { version: '2026.8.3', releasedAt: undefined, notes: `${tags}/v2026.8.3` },
    ]);
    // Nothing that names this installation.
    expect(requests).toEqual(['/repos/goauthentik/authentik/releases', 'holdfast']);
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
    const feed = feedAt(await serving(listener));
    await expect(feed.releases(POSTGRES)).rejects.toMatchObject({
      code: 'upstream',
      message: expect.stringMatching(/UPDATES_URL/),
    });
  });

  it('tells a server that is not there from one that is not to be trusted', async () => {
    await expect(feedAt(await closed()).releases(POSTGRES)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/^Couldn't reach 127\.0\.0\.1:\d+ \(ECONNREFUSED\)$/),
    });
    const { pem, key } = await issue('somebody', undefined, { names: ['127.0.0.1'] });
    const url = await urlOf(
      createTlsServer({ cert: pem, key }, (_, response) => response.end('[]')),
      'https',
    );
    await expect(feedAt(url).releases(POSTGRES)).rejects.toMatchObject({
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
