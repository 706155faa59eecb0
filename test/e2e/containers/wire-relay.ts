// A way for tests into the networks of an engine that nothing is published from, as a machine
// beside the containers has it: the engine's host itself. Requests come from the gateway of the
// network, which is no trusted proxy. No port is bound there.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { eventually } from '../embedded/embedded.ts';
import type { ContainerEngine } from './engine.ts';

/** On the engine's side: a line with host and port, then what goes both ways. */
const FAR_SIDE = `
  const { createServer, connect } = require('node:net');
  createServer((near) => {
    near.on('error', () => undefined);
    near.once('data', (first) => {
      const end = first.indexOf(10);
      const [host, port] = first.subarray(0, end).toString().split(' ');
      const far = connect(Number(port), host);
      for (const [one, other] of [[near, far], [far, near]]) {
        one.on('error', () => other.destroy());
        one.on('close', () => other.destroy());
      }
      far.write(first.subarray(end + 1));
      near.pipe(far).pipe(near);
    });
  }).listen(process.argv[1]);
  process.stdin.resume().on('end', () => process.exit());
`;

/** Host and port as the engine's host reaches them, now. */
export type Place = () => { host: string; port: number };

export class WireRelay implements AsyncDisposable {
  readonly #path: string;
  readonly #far: ChildProcess;
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  constructor(engine: ContainerEngine) {
    this.#path = join(engine.directory, `relay-${process.hrtime.bigint()}.sock`);
    const inside = readFileSync(join(engine.directory, 'inside'), 'utf8').trim();
    const program = [process.execPath, '--eval', FAR_SIDE, this.#path];
    this.#far = spawn('nsenter', ['--target', inside, '--net', ...program], { stdio: ['pipe', 'ignore', 'inherit'] });
  }

  /** Opens a port on 127.0.0.1 that leads there. */
  async open(port: number, place: Place): Promise<void> {
    await eventually('the relay listens', () => existsSync(this.#path), 20_000);
    const server = createServer((near) => this.#lead(near, place));
    this.#servers.push(server);
    await new Promise<void>((listening, failed) => {
      server.once('error', failed).listen(port, '127.0.0.1', listening);
    });
  }

  #lead(near: Socket, place: Place): void {
    const { host, port } = place();
    const far = connect(this.#path);
    far.write(`${host} ${String(port)}\n`);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
    near.pipe(far).pipe(near);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#servers.map((server) => new Promise((closed) => server.close(closed))));
    this.#far.stdin?.end();
  }
}
