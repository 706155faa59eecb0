// A TCP proxy in front of a PostgreSQL server that can lose answers, as a network does.

import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CuttingProxy {
  /** The URL with the port of the proxy. */
  url: string;
  /**
   * `lose`: the next answer to an INSERT does not arrive, and its connection ends; then `good` again. `closed`: nobody gets
   * through, and open connections end.
   */
  mood: (to: 'good' | 'lose' | 'closed') => void;
  /** Ends every connection now; new ones are taken. */
  cut: () => void;
  /** Answers that were lost. */
  lost: () => number;
  close: () => Promise<void>;
}

export async function cuttingProxy(target: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let mood: 'good' | 'lose' | 'closed' = 'good';
  let lost = 0;

  const cut = (): void => {
    for (const socket of open) socket.destroy();
  };
  const server = createServer((client) => {
    if (mood === 'closed') {
      client.destroy();
      return;
    }
    const upstream = connect(Number(port), hostname);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        open.delete(socket);
        other.destroy();
      });
    }
    client.on('data', (bytes) => upstream.write(bytes));
    upstream.on('data', (bytes) => {
      if (mood !== 'lose' || !bytes.includes('INSERT 0 ')) {
        client.write(bytes);
        return;
      }
      mood = 'good';
      lost++;
      client.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    mood(to) {
      mood = to;
      if (to === 'closed') cut();
    },
    cut,
    lost: () => lost,
    close: () => {
      cut();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
