// How many connections the core holds follows from its memory and its file descriptors.

import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { connectionLimit, ownConnectionLimit } from '../tls/connection-limit.ts';
import { OpenConnections } from '../tls/connections.ts';

const MIB = 1024 ** 2;

it.each([
  { memoryMib: 512, files: 1_048_576, streaming: 3_072, http: 512, reason: '512 MiB of memory' },
  { memoryMib: 4_096, files: 20_000, streaming: 14_808, http: 2_468, reason: '20000 file descriptors (ulimit -n)' },
  { memoryMib: 65_536, files: 1_048_576, streaming: 100_000, http: 12_500, reason: 'the limits of one core' },
  { memoryMib: 16, files: 64, streaming: 256, http: 128, reason: '64 file descriptors (ulimit -n)' },
])('$memoryMib MiB and $files files are enough for $streaming devices', ({ memoryMib, files, ...limit }) => {
  expect(connectionLimit({ memoryBytes: memoryMib * MIB, files })).toEqual(limit);
});

it('of this process has room for devices, and says what it follows from', () => {
  const { streaming, http, reason } = ownConnectionLimit();
  expect([streaming >= 256, http >= 128]).toEqual([true, true]);
  expect(reason).toMatch(/memory|file descriptors|one core/);
});

it('is named to whoever reads why a connection was refused', () => {
  const open = new OpenConnections(2, '512 MiB of memory');
  const take = (from: string): unknown => {
    const socket = new Socket();
    const answer = open.take(socket, from);
    open.busy(socket);
    return answer;
  };
  for (const from of ['192.0.2.1', '192.0.2.1']) expect(take(from)).toEqual({ taken: true });
  expect(take('192.0.2.1')).toEqual({
    taken: false,
    full: 'one address may have at most 2 of the 2 connections of this port',
  });
  expect(take('192.0.2.2')).toEqual({
    taken: false,
    full: 'all 2 connections of this port are in use, the limit by 512 MiB of memory',
  });
});
