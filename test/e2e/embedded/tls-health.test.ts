// A TLS endpoint that is expired, untrusted or unreachable is never ok: asked of a running
// management process.

import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY_MS } from '@holdfast/kit/time';
import type { ModuleBody } from '../../health/fake-health-body.ts';
import { issue, type Issued } from '../../support/certificates.ts';
import { freePort } from '../../support/free-port.ts';
import { healthOf } from './managed.ts';

const inDays = (days: number): Date => new Date(Date.now() + days * DAY_MS);
const NAMES = { names: ['localhost', '127.0.0.1'] };
const sockets = new Set<Socket>();
let server: Server | undefined;
let port: number;
const place = mkdtempSync(join(tmpdir(), 'holdfast-tls-health-'));
let ca: Issued;
let foreign: Issued;

beforeAll(async () => {
  port = await freePort();
  ca = await issue('own', undefined, { ca: true });
  foreign = await issue('foreign', undefined, { ca: true });
  mkdirSync(join(place, 'certs/files'), { recursive: true });
  writeFileSync(join(place, 'certs/files/ca.pem'), ca.pem);
});
afterAll(async () => {
  await end(server);
  rmSync(place, { recursive: true, force: true });
});

async function end(old: Server | undefined): Promise<void> {
  if (old === undefined) return;
  await new Promise((resolve) => {
    old.close(resolve);
    for (const socket of sockets) socket.destroy();
  });
}

/** Takes the place of the server before, at the address that is looked at. */
async function serve(next: Server | undefined): Promise<void> {
  await end(server);
  server = next;
  if (next === undefined) return;
  next.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  await once(next.listen(port, '127.0.0.1'), 'listening');
}

const endpoint = (): string => `https://127.0.0.1:${port}`;

/** What is said of a server there; of none, where nothing listens. */
async function judged(next: Server | undefined): Promise<ModuleBody> {
  await serve(next);
  return healthOf({ CORE_DATA_DIR: place, CORE_ENROLLMENT_URL: endpoint() }, 'tls');
}

const serving = ({ pem, key }: Issued): Server => createServer({ cert: pem, key });

describe('the module tls', () => {
  it('is ok with a certificate of our own CA and enough days, and says how many', async () => {
    const { status, message, data } = await judged(serving(await issue('a', ca, { ...NAMES, to: inDays(90.5) })));
    expect([status, data['least_days_left'], message]).toEqual(['ok', 90, expect.stringMatching(/expires in 90 days/)]);
  });

  it.each([
    [30.5, 'warning'],
    [7.5, 'critical'],
  ])('with %d days left is %s', async (days, status) => {
    const seen = await judged(serving(await issue('a', ca, { ...NAMES, to: inDays(days) })));
    expect(seen.status).toBe(status);
  });

  it('is critical with an expired certificate', async () => {
    const expired = await issue('a', ca, { ...NAMES, from: inDays(-20), to: inDays(-2) });
    expect(await judged(serving(expired))).toMatchObject({
      status: 'critical',
      message: expect.stringMatching(/expired on/),
    });
  });

  it('is critical with a certificate of an unknown authority, a self-signed one, and one for another name', async () => {
    const bad = [
      await issue('a', foreign, NAMES),
      await issue('a', undefined, NAMES),
      await issue('a', ca, { names: ['other.example.org'] }),
    ];
    for (const certificate of bad) expect((await judged(serving(certificate))).status).toBe('critical');
  });

  it('is critical where nothing listens, where nothing answers, and where no TLS is spoken', async () => {
    expect((await judged(undefined)).message).toMatch(new RegExp(`refuses connections on port ${port}`));
    expect((await judged(createPlainServer())).message).toMatch(/sends nothing within/);
    const plain = createPlainServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    expect((await judged(plain)).status).toBe('critical');
  });

  it('never lets a good endpoint hide a bad one', async () => {
    await serve(serving(await issue('a', ca, { ...NAMES, to: inDays(90) })));
    const env = {
      CORE_DATA_DIR: place,
      CORE_ENROLLMENT_URL: endpoint(),
      CORE_API_URL: 'https://127.0.0.1:1',
    };
    expect(await healthOf(env, 'tls')).toMatchObject({
      status: 'critical',
      message: expect.stringMatching(/^https:\/\/127\.0\.0\.1:1 /),
    });
  });
});
