import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { Secret } from '@holdfast/kit/secret';
import { httpHeartbeat } from '../../shared/alerts/heartbeat.ts';
import { basic } from '../http/fake-deps.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

async function portOf(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

const NOW = new Date('2026-01-02T03:04:05.000Z');
const heartbeat = (url: string, withinMs = 10_000) => httpHeartbeat(new Secret(url), fetch, () => NOW, withinMs);
const failureOf = async (url: string, withinMs?: number): Promise<string> =>
  heartbeat(url, withinMs)
    .beat()
    .then(
      () => 'none',
      (error: Error) => error.message,
    );

describe('the heartbeat', () => {
  it('gets the address, with the user and the password that stand in it', async () => {
    const seen: [string | undefined, string | undefined][] = [];
    const port = await portOf(({ url, headers }, response) => {
      seen.push([url, headers.authorization]);
      response.end('thank you');
    });
    const beats = heartbeat(`http://me:p%40ss@127.0.0.1:${port}/ping/secret-1234?x=1`);
    await beats.beat();
    expect(seen).toEqual([['/ping/secret-1234?x=1', basic('me', 'p@ss')]]);
    expect(await beats.state()).toEqual({ last_ok_at: NOW.toISOString(), failures_in_row: 0, error: null });
  });

  it('counts failures in a row, and forgets them with the next success', async () => {
    let status = 500;
    const port = await portOf((_, response) => response.writeHead(status).end());
    const beats = heartbeat(`http://127.0.0.1:${port}/`);
    for (const failures of [1, 2]) {
      await expect(beats.beat()).rejects.toThrow('HEARTBEAT_URL answered 500');
      expect((await beats.state()).failures_in_row).toBe(failures);
    }
    status = 204;
    await beats.beat();
    expect(await beats.state()).toMatchObject({ failures_in_row: 0, error: null });
  });

  it('says why it fails, and never where it goes', async () => {
    const silent = await portOf(() => undefined);
    const looping = await portOf((_, response) => response.writeHead(302, { location: '/secret-1234' }).end());
    const closed = await portOf(() => undefined);
    await new Promise((done) => servers.pop()?.close(done));
    for (const [url, reason, withinMs] of [
      [`http://127.0.0.1:${silent}/secret-1234`, 'no answer in time', 300],
      [`http://127.0.0.1:${closed}/secret-1234`, 'ECONNREFUSED'],
      [`http://127.0.0.1:${looping}/secret-1234`, 'unreachable'],
      ['http://secret-1234.invalid/', /ENOTFOUND|EAI_AGAIN/],
      ['http://127.0.0.1:1/secret-1234', 'unreachable'],
    ] as const) {
      const message = await failureOf(url, withinMs);
      expect(message).toMatch(reason);
      expect(message).not.toContain('secret-1234');
    }
  });
});
