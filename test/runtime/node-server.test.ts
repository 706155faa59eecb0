import { once } from 'node:events';
import { get, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createApp } from '../../functions/app.ts';
import { type RunningServer, serveApp } from '../../shared/runtime/node-server.ts';
import { ADMIN, fakeDeps, memoryLog } from '../http/fake-deps.ts';

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

describe('a request that stops in the middle', () => {
  it('is ended, and one that waits for its answer is not', async () => {
    const port = nextPort++;
    const handle = async (given: Request): Promise<Response> => {
      const { length } = await given.text();
      await delay(1_000);
      return new Response(`read ${length}`);
    };
    const server = await serveApp(handle, [{ address: '127.0.0.1', port }], memoryLog(), { stalledMs: 500 });
    try {
      const [moving, stopped] = await Promise.all([sent(port, 8, 8), sent(port, 8, 3)]);
      expect(moving).toBe('read 8');
      expect(stopped).toBe('ECONNRESET');
    } finally {
      await server.close(0);
    }
  });

  it('has no part in how long a connection is kept that has nothing to say', async () => {
    const port = nextPort++;
    const limits = { keepAliveMs: 100, stalledMs: 60_000 };
    const server = await serveApp(
      async () => new Response('done'),
      [{ address: '127.0.0.1', port }],
      memoryLog(),
      limits,
    );
    try {
      const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n'));
      socket.resume();
      await once(socket, 'close');
    } finally {
      await server.close(0);
    }
  });

  /** Says that it sends so many bytes, sends the first of them one in 50 ms, and waits for the answer. */
  async function sent(port: number, says: number, sends: number): Promise<string> {
    const outgoing = request({ host: '127.0.0.1', port, method: 'POST', headers: { 'content-length': says } });
    const answered = new Promise<string>((resolve) => {
      outgoing.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
      outgoing.once('response', (response) => {
        let body = '';
        response.on('data', (chunk: Buffer) => (body += chunk.toString())).once('end', () => resolve(body));
      });
    });
    for (let count = 0; count < sends; count++) {
      outgoing.write('x');
      await delay(50);
    }
    return answered;
  }
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

describe('a method that no route has', () => {
  it('is 404 for whoever is signed in, and 401 before, also TRACE, of which no Request can be made', async () => {
    const port = nextPort++;
    const app = createApp(fakeDeps());
    const server = await serveApp(
      (incoming, bindings) => app.fetch(incoming, { ...bindings, requestId: 'request-1' }),
      [{ address: '127.0.0.1', port }],
      memoryLog(),
    );
    const status = (method: string, path: string, headers: Record<string, string> = {}): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const sent = request({ host: '127.0.0.1', port, path, method, headers }, (response) => {
          response.resume().once('end', () => resolve(response.statusCode));
        });
        sent.once('error', reject).end();
      });
    try {
      for (const method of ['TRACE', 'PROPFIND']) {
        expect([method, await status(method, '/api/users', ADMIN)]).toEqual([method, 404]);
        expect([method, await status(method, '/people', ADMIN)]).toEqual([method, 404]);
        expect([method, await status(method, '/api/users')]).toEqual([method, 401]);
      }
      expect(await status('GET', '/api/users', ADMIN)).toBe(200);
    } finally {
      await server.close(0);
    }
  });
});
