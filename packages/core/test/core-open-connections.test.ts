// The connections of one port: who gives way when it is full, and that one address alone cannot
// fill it.

import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { OpenConnections } from '../tls/connections.ts';

const [MANY, FEW] = ['192.0.2.1', '192.0.2.2'];

/** A port of four places, three of which one address may have. */
function port() {
  const open = new OpenConnections(4);
  return (from: string, work: 'busy' | 'idle' | 'handshake') => {
    const socket = new Socket();
    const answer = open.take(socket, from);
    if (answer.taken && work !== 'handshake') open[work](socket);
    return { ...answer, socket };
  };
}

it('an address that keeps all its connections at work leaves room for others', () => {
  const take = port();
  for (let n = 0; n < 3; n++) expect(take(MANY, 'busy').taken).toBe(true);
  expect(take(MANY, 'busy').taken).toBe(false);
  const other = take(FEW, 'idle');
  expect(other.taken).toBe(true);
  expect([take(MANY, 'busy').taken, take(FEW, 'busy').gaveWay]).toEqual([false, other.socket]);
});

it('an address that has its share loses its own oldest that does nothing, not that of others', () => {
  const take = port();
  const other = take(FEW, 'handshake');
  const [first, second] = [take(MANY, 'idle'), take(MANY, 'handshake')];
  take(MANY, 'busy');
  expect([take(MANY, 'busy').gaveWay, take(MANY, 'busy').gaveWay]).toEqual([second.socket, first.socket]);
  expect([other.socket.destroyed, first.socket.destroyed]).toEqual([false, true]);
});

it('a place is free again when its connection has closed', async () => {
  const take = port();
  const [first] = [take(MANY, 'busy'), take(MANY, 'busy'), take(MANY, 'busy')];
  first.socket.destroy();
  await new Promise((resolve) => first.socket.once('close', resolve));
  expect(take(MANY, 'busy')).toMatchObject({ taken: true });
});
