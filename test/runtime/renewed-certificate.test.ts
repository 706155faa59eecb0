// A server of ours over real sockets while its certificate files are written anew.

import { once } from 'node:events';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node:tls';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type RunningServer, serveApp } from '../../shared/runtime/node-server.ts';
import { memoryLog } from '../http/fake-deps.ts';
import { issue, type Issued } from '../support/certificates.ts';

const LOOK_EVERY_MS = 20;
/** Below the ports that the system gives out, above those of the stacks under test. */
let port = 30_200 + Math.floor(Math.random() * 500);

let ca: Issued;
let first: Issued;
let second: Issued;
let directory: string;
let files: { certificateFile: string; keyFile: string };
let log: ReturnType<typeof memoryLog>;
let server: RunningServer;

const write = (file: string, content: string): void => {
  writeFileSync(`${file}.new`, content);
  renameSync(`${file}.new`, file);
};
/** The serial number that a new connection is shown. */
async function shown(): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber.toLowerCase();
}
const messagesOf = (event: string): number => log.events.filter((each) => each.event === event).length;
const serialOf = ({ certificate }: Issued): string => certificate.serialNumber;

beforeAll(async () => {
  ca = await issue('ca', undefined, { ca: true });
  [first, second] = await Promise.all([issue('first', ca), issue('second', ca)]);
});
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'holdfast-renewed-'));
  files = { certificateFile: join(directory, 'takserver.pem'), keyFile: join(directory, 'takserver.key') };
  write(files.certificateFile, first.pem + ca.pem);
  write(files.keyFile, first.key);
  log = memoryLog();
  port++;
  server = await serveApp(() => new Response('served'), [{ address: '127.0.0.1', port, tls: files }], log, {
    lookEveryMs: LOOK_EVERY_MS,
  });
});
afterEach(async () => {
  await server.close(0);
  rmSync(directory, { recursive: true });
});

/** A connection that is kept: what each request over it is answered, and whether it was a new one. */
function kept(): { ask(): Promise<{ body: string; reused: boolean }>; end(): void } {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  return {
    ask: () =>
      new Promise((resolve, reject) => {
        const request = get({ host: '127.0.0.1', port, agent }, (response) => {
          let body = '';
          response.on('data', (chunk: Buffer) => (body += chunk.toString()));
          response.once('end', () => resolve({ body, reused: request.reusedSocket }));
        }).once('error', reject);
      }),
    end: () => agent.destroy(),
  };
}

describe('a renewed certificate', () => {
  it('is shown to new connections without a restart, and those that are open go on', async () => {
    const connection = kept();
    expect(await connection.ask()).toEqual({ body: 'served', reused: false });
    expect(await shown()).toBe(serialOf(first));
    write(files.keyFile, second.key);
    write(files.certificateFile, second.pem + ca.pem);
    await expect.poll(shown).toBe(serialOf(second));
    expect(await connection.ask()).toEqual({ body: 'served', reused: true });
    connection.end();
    await delay(3 * LOOK_EVERY_MS);
    expect(log.events.filter(({ event }) => event === 'tls.renewed')).toEqual([
      expect.objectContaining({
        fields: { file: files.certificateFile, expires_at: second.certificate.notAfter.toISOString() },
      }),
    ]);
  });

  it.each([
    ['the key is not written yet', () => write(files.certificateFile, second.pem + ca.pem)],
    ['the certificate is not written yet', () => write(files.keyFile, second.key)],
    ['the certificate is cut off', () => write(files.certificateFile, second.pem.slice(0, 200))],
    ['the key is empty', () => write(files.keyFile, '')],
    ['the key is gone', () => rmSync(files.keyFile)],
  ])('is left alone while %s, which is said once, and taken when it fits', async (_, half) => {
    half();
    await expect.poll(() => messagesOf('tls.not_renewed')).toBe(1);
    await delay(3 * LOOK_EVERY_MS);
    expect([await shown(), messagesOf('tls.not_renewed'), messagesOf('tls.renewed')]).toEqual([serialOf(first), 1, 0]);
    write(files.certificateFile, second.pem + ca.pem);
    write(files.keyFile, second.key);
    await expect.poll(shown).toBe(serialOf(second));
  });

  it('that is the same as before is no news', async () => {
    write(files.certificateFile, first.pem + ca.pem);
    await delay(4 * LOOK_EVERY_MS);
    expect(log.events).toEqual([]);
  });

  it('is not looked for any more when the server has closed', async () => {
    await server.close(0);
    write(files.keyFile, second.key);
    await delay(3 * LOOK_EVERY_MS);
    expect(log.events).toEqual([]);
  });
});
