// Connects to a stack from another local address, so that a lockout there affects no other test.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';

export interface Way {
  /** Without a slash at the end. */
  base: string;
  close(): void;
}

/** All of 127.0.0.0/8 is this machine's own. */
export async function wayFrom(localAddress: string, base: string): Promise<Way> {
  const { hostname: host, port } = new URL(base);
  const server = createServer((inward) => {
    const onward = connect({ host, port: Number(port), localAddress });
    inward.pipe(onward).pipe(inward);
    for (const [one, other] of [
      [inward, onward],
      [onward, inward],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port: own } = server.address() as AddressInfo;
  return { base: `http://127.0.0.1:${own}`, close: () => server.close() };
}
