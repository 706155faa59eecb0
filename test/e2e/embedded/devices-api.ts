// A running stack as its administrator asks it, for the tests of certificates and enrollment.

import { expect } from 'vitest';
import type { CertificateView } from '../../../shared/devices/certificates/view.ts';
import { basic } from '../../http/fake-deps.ts';
import { eventually, type TestStack } from './embedded.ts';

export interface User {
  id: number;
  username: string;
  is_active: boolean;
  certs: CertificateView[];
}

/** Killed in the middle of its work, the core is back after a second; the promise is a minute. */
const PROVEN_WITHIN_MS = 60_000;

export function asAdministrator(stack: () => TestStack) {
  const ask = (method: string, path: string, body?: unknown, authorization?: string): Promise<Response> =>
    askAt(stack().file().api, method, path, body, authorization);

  /** `api`: one of several management processes. */
  async function askAt(
    api: string,
    method: string,
    path: string,
    body?: unknown,
    authorization?: string,
  ): Promise<Response> {
    const { webadmin } = stack().file();
    const headers = {
      authorization: authorization ?? basic(webadmin.username, webadmin.password),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    return fetch(`${api}${path}`, { method, headers, ...sent });
  }

  /** The JSON of an answer, which must be a success. */
  async function json<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await ask(method, path, body);
    const message = response.ok ? '' : await response.clone().text();
    expect([method, path, response.ok, message]).toEqual([method, path, true, '']);
    return (await response.json()) as T;
  }

  const newUser = (username: string, more: object = {}): Promise<User> =>
    json<User>('POST', '/api/users', { username, name: username, ...more });

  const newCertificate = (username: string, name: string): Promise<CertificateView> =>
    json<CertificateView>('POST', '/api/ops/certs', { username, name });

  const certificate = (file: string): Promise<CertificateView> =>
    json<CertificateView>('GET', `/api/ops/certs/${encodeURIComponent(file)}`);

  async function download(file: string, query = ''): Promise<Buffer> {
    const response = await ask('GET', `/api/ops/certs/${encodeURIComponent(file)}/download${query}`);
    expect([file, query, response.status]).toEqual([file, query, 200]);
    return Buffer.from(await response.arrayBuffer());
  }

  async function revoked(file: string): Promise<void> {
    const isRevoked = async (): Promise<boolean> => (await certificate(file)).state === 'revoked';
    await eventually(`${file} is revoked`, isRevoked, PROVEN_WITHIN_MS);
  }

  return { ask, askAt, json, newUser, newCertificate, certificate, download, revoked };
}
