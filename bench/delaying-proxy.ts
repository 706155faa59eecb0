// A TCP proxy on 127.0.0.1 that keeps what clients send for some milliseconds before it goes on:
// the way to a core on another machine. node delaying-proxy.ts LISTEN TARGET MILLISECONDS; ends
// with whoever started it.

import { connect, createServer, type Socket } from 'node:net';

const [listen = 0, target = 0, milliseconds = 0] = process.argv.slice(2).map(Number);

createServer({ noDelay: true }, (client) => {
  const core = connect({ port: target, host: '127.0.0.1', noDelay: true });
  client.on('data', (bytes) => setTimeout(() => core.write(bytes), milliseconds));
  core.on('data', (bytes) => void client.write(bytes));
  const both: [Socket, Socket][] = [
    [client, core],
    [core, client],
  ];
  for (const [one, other] of both) {
    one.on('error', () => other.destroy());
    one.on('close', () => setTimeout(() => other.destroy(), milliseconds));
  }
}).listen(listen, '127.0.0.1', () => process.send?.('listening'));
process.on('disconnect', () => process.exit(0));
