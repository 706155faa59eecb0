// A management process without a supervisor, as in a container, and servers for it to look at.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { ModuleBody } from '../../health/fake-health-body.ts';
import { answersPing, cleanEnvironment, eventually, freeOffset, home } from './embedded.ts';

const TOKEN = 'token-of-a-managed-process';

interface Managed {
  port: number;
  end: () => Promise<void>;
}

/** Runs with these settings from now on; the databases need not be there. */
async function startManaged(env: Record<string, string>): Promise<Managed> {
  const offset = await freeOffset();
  const port = 8080 + offset;
  const needed = {
    SERVER_ADDRESS: 'cot.example.org',
    DEPLOY_MODE: 'direct',
    DATABASE_URL: 'postgres://nobody:nothing@127.0.0.1:1/nowhere',
    METRICS_TOKEN: TOKEN,
    AUDIT_KEY: 'audit-key-of-a-managed-process-0123',
    SESSION_KEY: 'session-key-of-a-managed-process-0123',
    UPDATES_URL: 'off',
    API_PORT: String(port),
    PORTAL_PORT: String(3000 + offset),
  };
  const node = join(home, 'node_modules/.bin/node');
  const child = spawn(node, [join(home, 'dist/management.js')], {
    env: cleanEnvironment({ ...needed, ...env }),
    stdio: 'ignore',
  });
  const end = async (): Promise<void> => {
    child.kill('SIGTERM');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };
  return { port, end };
}

/** Runs one while `use` works with its port; whether it answers yet is not said. */
export async function manageAlone(env: Record<string, string>, use: (port: number) => Promise<void>): Promise<void> {
  const { port, end } = await startManaged(env);
  try {
    await use(port);
  } finally {
    await end();
  }
}

const SHARED_AT_MOST = 3;
/** By their settings; the one that was used last stands last. */
const shared = new Map<string, Managed>();

/**
 * The port of one that answers under these settings. It is shared by tests, which must leave it as
 * it is; the few that were used last run on until the tests of the file have ended.
 */
export async function managed(env: Record<string, string>): Promise<number> {
  const key = JSON.stringify(env);
  const found = shared.get(key) ?? (await startManaged(env));
  shared.delete(key);
  shared.set(key, found);
  for (const [old, { end }] of [...shared].slice(0, -SHARED_AT_MOST)) {
    shared.delete(old);
    await end();
  }
  await eventually('it answers', () => answersPing(`http://127.0.0.1:${found.port}`), 60_000);
  return found.port;
}

afterAll(async () => {
  for (const { end } of shared.values()) await end();
  shared.clear();
});

/** The portal of a process that was started alone, by the port of its API. */
export const portalBeside = (port: number): string => `http://127.0.0.1:${port - 8080 + 3000}`;

/**
 * What a module says, measured now, in the shared process of these settings; the data of every
 * module under `data`.
 */
export async function healthOf(env: Record<string, string>, module: string): Promise<ModuleBody> {
  const headers = { authorization: `Bearer ${TOKEN}` };
  const address = `http://127.0.0.1:${await managed(env)}/api/health/${module}`;
  const answer = (await (await fetch(address, { headers })).json()) as ModuleBody;
  return { ...answer, data: answer.data ?? { ...answer } };
}

/** A plain HTTP server on a port of its own. */
export function listenOn(listener: RequestListener): { url: Promise<string>; close(): void } {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  const url = once(server, 'listening').then(() => `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return { url, close: () => server.close() };
}
