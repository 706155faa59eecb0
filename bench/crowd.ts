// Clients of the stream in a process of its own: node bench/crowd.ts JSON, where the JSON is a
// CrowdOrder. Prints `connected` when all are, and answers each message of its parent with a
// CrowdState.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createSecureContext } from 'node:tls';
import { type CotFiles, preparedEvent } from './cot-order.ts';

export interface CrowdOrder extends CotFiles {
  port: number;
  connections: number;
  /** Each client sends its position so often, in turn; none when it is not given. */
  everyMs?: number;
}

export interface CrowdState {
  /** Since they are connected. */
  bytes: number;
  sent: number;
  ended: number;
}

const AT_ONCE = 16;
const { port, ca, certificate, key, connections, everyMs } = JSON.parse(process.argv[2] ?? '{}') as CrowdOrder;
const secureContext = createSecureContext({
  ca: readFileSync(ca),
  cert: readFileSync(certificate),
  key: readFileSync(key),
  minVersion: 'TLSv1.3',
  ecdhCurve: 'X25519',
});
const state: CrowdState = { bytes: 0, sent: 0, ended: 0 };
const sockets: ReturnType<typeof connect>[] = [];

async function arrive(): Promise<void> {
  while (sockets.length < connections) {
    const socket = connect({ host: '127.0.0.1', port, secureContext });
    sockets.push(socket);
    await once(socket, 'secureConnect');
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => state.ended++);
    socket.on('data', (chunk: Buffer) => (state.bytes += chunk.length));
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, arrive));
state.bytes = 0;
process.on('message', () => process.send?.(state));
for (const signal of ['SIGTERM', 'disconnect']) process.once(signal, () => process.exit(0));
process.stdout.write('connected\n');
if (everyMs !== undefined) {
  const events = sockets.map((_, at) => preparedEvent(at).event);
  const begun = performance.now();
  setInterval(() => {
    const due = ((performance.now() - begun) / everyMs) * connections;
    for (; state.sent < due; state.sent++) {
      const at = state.sent % connections;
      sockets[at]?.write(events[at] ?? '');
    }
  }, 5);
}
