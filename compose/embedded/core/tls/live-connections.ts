// Every open connection that a client certificate has opened, by its serial number, so that a revocation can end them.

import type { LiveConnections } from '../parts.ts';

type Connection = Parameters<LiveConnections['add']>[0];

export function createLiveConnections(): LiveConnections {
  const bySerial = new Map<string, Set<Connection>>();

  return {
    add(socket, { serial }) {
      const connections = bySerial.get(serial) ?? new Set();
      bySerial.set(serial, connections.add(socket));
      socket.once('close', () => {
        connections.delete(socket);
        if (connections.size === 0 && bySerial.get(serial) === connections) bySerial.delete(serial);
      });
    },
    end(serial, except) {
      const ended = [...(bySerial.get(serial) ?? [])].filter((socket) => socket !== except);
      for (const socket of ended) socket.destroy();
      return ended.length;
    },
  };
}
