// Everything that a stack has to keep, made in the light stack through its public doors, and looked
// at again.

import { mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { expect } from 'vitest';
import { basic } from '../../http/fake-deps.ts';
import { type CorePlace, type Device, keptCertificate, signingRequest } from '../embedded/core-client.ts';
import { eventually, query } from '../embedded/embedded.ts';
import { letIn } from '../embedded/stream-device.ts';
import type { LightAuthenticator } from './light-authenticator.ts';
import type { SharedLight } from './shared-light.ts';
import { administer, throughCaddy } from './through-caddy.ts';

const PASSWORD = 'a password of the world 7';
const ROWS = 25;
let worlds = 0;

interface Enrollment {
  url: string;
  ca_certificate: string;
}

export interface LightWorld {
  username: string;
  id: number;
  /** Literal secrets that no log may hold. */
  secrets: string[];
  device: Device;
  core: CorePlace;
  /**
   * Fails when anything of it is lost: a service may be healthy before each other one has found it
   * again. A restore ends the sessions of people.
   */
  isWhole(after?: 'restore'): Promise<void>;
}

/** The stream at its published port; devices trust the CA of the stack. */
export function corePlace(light: SharedLight, authenticator: LightAuthenticator): CorePlace {
  return {
    ...authenticator.stack.file().core,
    streaming: `tls://${light.engine.address}:${String(light.ports.streaming)}`,
    serverName: light.env['SERVER_ADDRESS'] ?? '',
    directory: join(authenticator.stack.data, 'core'),
  };
}

/** With the token of an enrollment, at 8446 as the world sees it. */
export async function enrollThroughCaddy(
  light: SharedLight,
  directory: string,
  username: string,
  token: string,
): Promise<Device> {
  const { keyFile, requestFile } = await signingRequest(directory, username);
  const { status, text } = await throughCaddy(light, `/Marti/api/tls/signClient/v2?clientUid=${username}&version=3`, {
    method: 'POST',
    port: light.ports.enrollment,
    headers: { authorization: basic(username, token) },
    body: readFileSync(requestFile, 'utf8'),
  });
  expect([status, text]).toEqual([200, expect.stringContaining('signedCert')]);
  return { keyFile, ...(await keptCertificate(directory, username, text)) };
}

export async function newEnrollment(light: SharedLight, id: number): Promise<Enrollment & { token: string }> {
  const made = await administer<Enrollment>(light, `/api/users/${String(id)}/enrollment`, { method: 'POST' });
  return { ...made, token: new URL(made.url).searchParams.get('token') ?? '' };
}

export async function newUser(light: SharedLight, username: string, groups: string[] = []): Promise<number> {
  const json = { username, name: username, groups };
  const { id } = await administer<{ id: number }>(light, '/api/users', { method: 'POST', json });
  await administer(light, `/api/users/${String(id)}/password`, { method: 'POST', json: { password: PASSWORD } });
  return id;
}

export async function certificateOfCaddy({ engine, env: settings, ports }: SharedLight): Promise<string> {
  const socket = connect({
    host: engine.address,
    port: ports.https,
    servername: settings['SERVER_ADDRESS'],
    rejectUnauthorized: false,
  });
  try {
    await new Promise<void>((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
    return socket.getPeerCertificate().fingerprint256;
  } finally {
    socket.destroy();
  }
}

export async function makeWorld(light: SharedLight, authenticator: LightAuthenticator): Promise<LightWorld> {
  const username = `world-${String((worlds += 1))}-${Date.now().toString(36)}`;
  const group = `Team-${username}`;
  await administer(light, '/api/groups', { method: 'POST', json: { name: group } });
  const id = await newUser(light, username, [group]);
  const { token: enrollmentToken } = await newEnrollment(light, id);
  const core = corePlace(light, authenticator);
  const device = await enrollThroughCaddy(
    light,
    mkdtempSync(join(authenticator.stack.data, 'world-')),
    username,
    enrollmentToken,
  );
  const { fingerprint } = await administer<{ fingerprint: string }>(light, '/api/ops/certs', {
    method: 'POST',
    json: { username, name: 'tablet' },
  });
  const expires_at = new Date(Date.now() + 86_400_000).toISOString();
  const own = basic('webadmin', light.env['CORE_WEBADMIN_PASSWORD'] ?? '');
  const { token } = await administer<{ token: string }>(light, '/api/tokens', {
    method: 'POST',
    json: { name: username, scope: 'read', expires_at },
    headers: { authorization: own },
  });
  const cookie = await cookieOf(light, username);
  await storeRows(core, device, username, authenticator);
  const certificate = await certificateOfCaddy(light);

  const statusOf = async (path: string, headers: Record<string, string>): Promise<number> =>
    (await throughCaddy(light, path, { headers })).status;
  async function lookedAt(after?: 'restore'): Promise<void> {
    const me = await throughCaddy(light, '/api/me', { headers: { authorization: basic(username, PASSWORD) } });
    expect([me.status, JSON.parse(me.text)]).toMatchObject([200, { id, groups: [`core_${group}`] }]);
    expect(await statusOf('/api/alerts', { authorization: `Bearer ${token}` })).toBe(200);
    expect(await statusOf('/api/me', { cookie })).toBe(after === 'restore' ? 401 : 200);
    const kept = await throughCaddy(light, `/api/ops/certs/${encodeURIComponent(fingerprint)}/download`, {
      headers: { authorization: own },
    });
    expect(kept.status).toBe(200);
    expect(await rowsOf(authenticator, username)).toBe(ROWS);
    expect(await administer(light, '/api/audit/verify')).toMatchObject({ ok: true });
    expect(await certificateOfCaddy(light)).toBe(certificate);
    (await letIn(core, device, username)).leave();
  }

  async function isWhole(after?: 'restore'): Promise<void> {
    const isFound = (): Promise<boolean> => lookedAt(after).then(() => true, () => false); // prettier-ignore
    await eventually('everything is there', isFound, 60_000).catch(() => lookedAt(after));
  }

  return { username, id, secrets: [PASSWORD, enrollmentToken, token, cookie], device, core, isWhole };
}

async function cookieOf(light: SharedLight, username: string): Promise<string> {
  const { status, headers } = await throughCaddy(light, '/sign-in', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ username, password: PASSWORD }).toString(),
  });
  const [set = ''] = headers['set-cookie'] ?? [];
  expect([status, set]).toEqual([303, expect.stringMatching(/^__Host-holdfast=[^;]+;.*Secure/)]);
  return set.split(';')[0] ?? '';
}

async function storeRows(
  core: CorePlace,
  device: Device,
  username: string,
  authenticator: LightAuthenticator,
): Promise<void> {
  const stream = await letIn(core, device, username);
  for (let row = 0; row < ROWS; row += 1) stream.report(47 + row / 1000);
  await eventually('its positions are stored', async () => (await rowsOf(authenticator, username)) === ROWS, 30_000);
  stream.leave();
}

async function rowsOf(authenticator: LightAuthenticator, username: string): Promise<number> {
  const text = `SELECT count(*)::int AS n FROM cot_router WHERE uid = 'ANDROID-${username}' AND cot_type = 'a-f-G-U-C'`;
  const [row] = await query<{ n: number }>(authenticator.stack.file().database, text);
  return row?.n ?? -1;
}
