// A management process without a supervisor, as in a container, and servers for it to look at.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { ModuleBody } from '../../health/fake-health-body.ts';
import { answersPing, cleanEnvironment, eventually, freeOffset, home } from './embedded.ts';

const TOKEN = 'token-of-a-managed-process';

/**
 * Runs one with these settings while `use` works with its port; the databases need not be there.
 */
export async function manageAlone(env: Record<string, string>, use: (port: number) => Promise<void>): Promise<void> {
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
  try {
    await use(port);
  } finally {
    child.kill('SIGTERM');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
}

/** The portal of a process that was started alone, by the port of its API. */
export const portalBeside = (port: number): string => `http://127.0.0.1:${port - 8080 + 3000}`;

/**
 * What a module says, measured now, under these settings; the data of every module under `data`.
 */
export async function healthOf(env: Record<string, string>, module: string): Promise<ModuleBody> {
  let body: ModuleBody | undefined;
  await manageAlone(env, async (port) => {
    await eventually('it answers', () => answersPing(`http://127.0.0.1:${port}`), 10_000);
    const headers = { authorization: `Bearer ${TOKEN}` };
    const answer = (await (
      await fetch(`http://127.0.0.1:${port}/api/health/${module}`, { headers })
    ).json()) as ModuleBody;
    body = { ...answer, data: answer.data ?? { ...answer } };
  });
  if (body === undefined) throw new Error('no answer');
  return body;
}

/** A plain HTTP server on a port of its own. */
export function listenOn(listener: RequestListener): { url: Promise<string>; close(): void } {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  const url = once(server, 'listening').then(() => `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return { url, close: () => server.close() };
}
