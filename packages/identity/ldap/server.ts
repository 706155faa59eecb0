// Serves LDAP for the embedded identity provider: two bases, read-only, simple binds. README.md
// lists scope and limits.

import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { Log } from '@holdfast/kit/log';
import type { Secret } from '@holdfast/kit/secret';
import type { CheckPassword, Roster } from '../model/roster.ts';
import { createBind } from './bind.ts';
import { Connection } from './connection.ts';
import { LdapEvents } from './events.ts';
import { DEFAULT_LIMITS, type LdapLimits } from './limits.ts';
import { createOperations } from './operations.ts';
import { RESULT } from './result.ts';
import { createTree } from './tree.ts';

export interface LdapServerOptions {
  roster: Roster;
  checkPassword: CheckPassword;
  /** On the core base passwords and app passwords count, on the web base only passwords. */
  bases: { core: string; web: string };
  /** Username of the account that may read everything. */
  searchAccount: string;
  /**
   * Its password of the settings: who brings it is judged even while guesses have locked the name.
   */
  searchPassword?: Secret | undefined;
  log: Log;
  limits?: Partial<LdapLimits>;
  now?: () => number;
}

export interface LdapServer {
  /** Port 0 takes a free one. Rejects when it cannot be had. */
  listen(port: number, address: string): Promise<number>;
  /** Takes no more clients, lets running requests end within `graceMs`, then cuts what is left. */
  close(graceMs: number): Promise<void>;
}

/**
 * Example: `const port = await createLdapServer({ roster, checkPassword, bases, searchAccount, log
 * }).listen(0, '127.0.0.1')`
 */
export function createLdapServer(options: LdapServerOptions): LdapServer {
  const now = options.now ?? Date.now;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const { roster, checkPassword, searchAccount, searchPassword, bases } = options;
  const trees = [createTree('core', bases.core), createTree('web', bases.web)];
  const events = new LdapEvents(options.log, now);
  const bind = createBind({ trees, checkPassword, searchAccount, searchPassword, limits, events, now });
  const operate = createOperations({ roster, trees, searchAccount, limits });
  const connections = new Set<Connection>();
  let sweeping: NodeJS.Timeout | undefined;

  const server = createServer({ noDelay: true, keepAlive: true }, accept);

  function accept(socket: Socket): void {
    const address = socket.remoteAddress;
    if (address === undefined || !makeRoom()) {
      socket.on('error', () => socket.destroy());
      socket.destroy();
      return;
    }
    const connection = new Connection(socket, address, { bind, operate, events, limits, now });
    connections.add(connection);
    socket.once('close', () => connections.delete(connection));
  }

  /**
   * When the server is full, the oldest client gives way that has not signed in and waits for
   * nothing, or only for a refusal.
   */
  function makeRoom(): boolean {
    if (connections.size < limits.connections) return true;
    events.count('turnedAway');
    const oldest = [...connections].find((each) => each.expendable);
    if (oldest === undefined) return false;
    connections.delete(oldest);
    oldest.destroy();
    return true;
  }

  function sweep(): void {
    const nowMs = now();
    for (const connection of connections) {
      const reason = connection.overdue(nowMs);
      if (reason === undefined) continue;
      events.count('timedOut');
      connection.end(RESULT.unavailable, reason);
    }
    events.tick();
  }

  return {
    async listen(port, address) {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, address, () => {
          server.off('error', reject);
          server.on('error', (error) => events.failed(error));
          resolve();
        });
      });
      const sweepMs = Math.min(1000, limits.anonymousIdleMs, limits.partialMessageMs, limits.unreadMs, limits.idleMs);
      sweeping = setInterval(sweep, Math.max(10, sweepMs / 4)).unref();
      return (server.address() as AddressInfo).port;
    },

    async close(graceMs) {
      clearInterval(sweeping);
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      for (const connection of connections) connection.finish();
      const cut = setTimeout(() => {
        for (const connection of connections) connection.destroy();
      }, graceMs);
      await closed;
      clearTimeout(cut);
    },
  };
}
