// Audit logs in a real database, for the tests of one file, with a way to it that can be
// interrupted.

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join as path } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { migrate } from '@holdfast/kit/migrate';
import { Secret } from '@holdfast/kit/secret';
import { AuditLog } from '../../../shared/audit/audit-log.ts';
import type { Audit } from '../../../shared/audit/port.ts';
import { MIGRATIONS } from '../../../shared/runtime/migrations/index.ts';
import { endSignInsOf } from '../../../shared/sign-in/signed-sign-ins.ts';
import { memoryLog } from '../../http/fake-deps.ts';
import { query } from './embedded.ts';
import { emptyDatabase } from './empty-database.ts';

const DATABASE = { name: 'audit-test', called: 'our own database', variable: 'DATABASE_URL', withinMs: 3_000 };
export const KEY = 'the key of the audit log of a test';

export interface AuditBench {
  audit: Audit;
  ended: string[];
  log: ReturnType<typeof memoryLog>;
  headFile: string;
}

export interface AuditDatabase {
  /** A process of its own; `through` is the port of a way to the database. */
  process(options?: { key?: string; headFile?: string; through?: number; at?: string; minuteMs?: number }): AuditBench;
  /** Of the core: its owner has nothing to do with our own state. */
  foreignUrl: () => string;
  inDatabase: <T extends object>(text: string) => Promise<T[]>;
  url: () => string;
}

/**
 * Starts the database before the tests of the file, and ends it afterwards. The log is empty, and
 * nobody else writes to it.
 */
export function auditDatabase(): AuditDatabase {
  const { url: foreignUrl, stateUrl: url } = emptyDatabase();
  let count = 0;
  const place = mkdtempSync(path(tmpdir(), 'holdfast-audit-'));
  beforeAll(async () => {
    const run = keptDatabase(new Secret(url()), { ...DATABASE, withinMs: 20_000 });
    await run((sql) => migrate(sql, MIGRATIONS));
  });
  afterAll(() => rmSync(place, { recursive: true, force: true }));
  return {
    url,
    foreignUrl,
    inDatabase: (text) => query(url(), text),
    process({
      key = KEY,
      headFile = path(place, `head-${(count += 1)}.json`),
      through,
      at = url(),
      minuteMs = 60_000,
    } = {}) {
      const log = memoryLog();
      const ended: string[] = [];
      const run = keptDatabase(new Secret(throughPort(at, through)), DATABASE);
      const signInsEnded = (username: string): void => void ended.push(username);
      const audit = new AuditLog({
        run,
        key: key === '' ? undefined : new Secret(key),
        headFile,
        log,
        endSignInsOf,
        signInsEnded,
        minuteMs,
      });
      return { audit, ended, log, headFile };
    },
  };
}

function throughPort(url: string, port: number | undefined): string {
  const changed = new URL(url);
  if (port !== undefined) changed.port = String(port);
  return changed.href;
}

export interface Way {
  port: number;
  /** Cuts every connection, and lets none in until `open`. */
  close(): Promise<void>;
  open(): Promise<void>;
  /** The next COMMIT is done, but the answer to it does not arrive. */
  loseNextCommit(): void;
  /** True once it was lost. */
  hasLost(): boolean;
}

/** A way to the server of a database URL. */
export async function wayTo(url: string): Promise<Way> {
  const { hostname, port: target } = new URL(url);
  const sockets = new Set<Socket>();
  let losing = false;

  function relay(client: Socket): void {
    const server = connect(Number(target), hostname);
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        if (socket === client) server.end();
      });
    }
    client.on('data', (chunk) => server.write(chunk));
    server.on('data', (chunk) => {
      if (!losing || !chunk.includes('COMMIT')) return client.write(chunk);
      losing = false;
      return client.destroy();
    });
  }

  let listener: Server = createServer(relay).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address = listener.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    port,
    async close() {
      const closed = once(listener, 'close');
      listener.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    async open() {
      listener = createServer(relay).listen(port, '127.0.0.1');
      await once(listener, 'listening');
    },
    loseNextCommit: () => void (losing = true),
    hasLost: () => !losing,
  };
}
