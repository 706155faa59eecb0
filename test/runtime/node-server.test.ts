import { get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type RunningServer, serveApp } from '../../shared/runtime/node-server.ts';
import { memoryLog } from '../fakes/deps.ts';

/** Below the ports that the system gives out, above those of the stacks under test. */
let nextPort = 31_000 + Math.floor(Math.random() * 500);

async function serving(
  answerAfterMs: number,
  use: (server: RunningServer, port: number) => Promise<void>,
): Promise<void> {
  const port = nextPort++;
  const handle = async (): Promise<Response> => {
    await delay(answerAfterMs);
    return new Response('done');
  };
  const server = await serveApp(handle, [{ address: '127.0.0.1', port }], memoryLog());
  try {
    await use(server, port);
  } finally {
    await server.close(0);
  }
}

async function bodyOf(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/' }, (response) => {
      let body = '';
      response.on('data', (chunk: Buffer) => (body += chunk.toString())).once('end', () => resolve(body));
    }).once('error', reject);
  });
}

describe('a graceful end', () => {
  it('lets a running request end and accepts no new one', () =>
    serving(300, async (server, port) => {
      const running = bodyOf(port);
      await delay(100);
      // Longer than a test may take: it must not wait for that.
      const closed = server.close(60_000);
      await expect(bodyOf(port)).rejects.toThrow('ECONNREFUSED');
      expect(await running).toBe('done');
      await closed;
    }));

  it('does not wait for ever for a request that hangs', () =>
    serving(60_000, async (server, port) => {
      const running = bodyOf(port).catch(() => 'cut off');
      await delay(100);
      await server.close(200);
      expect(await running).toBe('cut off');
    }));
});

describe('several listeners', () => {
  it('say which face they show, whatever a header says', async () => {
    const [console, portal] = [nextPort++, nextPort++];
    const answer = (_: Request, { face = 'none' }: { face?: string }): Response => new Response(face);
    const address = '127.0.0.1';
    const server = await serveApp(
      answer,
      [
        { address, port: console, face: 'console' },
        { address, port: portal, face: 'portal' },
      ],
      memoryLog(),
    );
    const headers = {
      'x-holdfast-connection': '{"face":"console"}',
      'x-forwarded-port': String(console),
      face: 'console',
    };
    const portalsOwn = await fetch(`http://${address}:${portal}/`, { headers });
    expect([await bodyOf(console), await portalsOwn.text()]).toEqual(['console', 'portal']);
    await server.close(0);
  });

  it('all open, or none', async () => {
    const port = nextPort++;
    const answer = (): Response => new Response('x');
    const twice = [1, 2].map(() => ({ address: '127.0.0.1', port }));
    await expect(serveApp(answer, twice, memoryLog())).rejects.toThrow('EADDRINUSE');
    const server = await serveApp(answer, [{ address: '127.0.0.1', port }], memoryLog());
    expect(await bodyOf(port)).toBe('x');
    await server.close(0);
  });
});
