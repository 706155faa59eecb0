// A TLS server that answers as a test says, before a CA of its own: what a core, or something in its place, may do.

import { once } from 'node:events';
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import { AppError } from '@holdfast/kit/app-error';
import { privateKeyDer } from '@holdfast/pki/keys';
import { keyBundle } from '@holdfast/pki/pkcs12';
import { type TestCertificate, type TestPki, testPki } from './fake-test-pki.ts';

export interface OddCore {
  pki: TestPki;
  url: string;
  port: number;
  /** {data_dir}, with `ca.pem` and `svc_api.p12`. */
  dataDir: string;
  caFile: string;
  bundleFile: string;
  /** Method and path of every request, in order. */
  requests: string[];
  /** Of the certificate and the address of each request. */
  met: { name: string | undefined; address: string; headers: IncomingMessage['headers']; body: string }[];
  /** How many connections were made. */
  connections: () => number;
  /** Answers from now on. */
  answers: (request: IncomingMessage, response: ServerResponse, body: string) => void;
  /** Answers by method and path without query; what is not named is a page of 404, and what is no function is wrapped. */
  serve(routes: Routes): void;
  /** Another svc_api.p12. */
  writeBundle(certificate: TestCertificate, password?: string): Promise<void>;
  closeConnections(): void;
  end(): Promise<void>;
}

export type Routes = Record<string, unknown>;

const JSON_TYPE = { 'content-type': 'application/json' };

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, JSON_TYPE).end(JSON.stringify(value));
}

export function sendPage(response: ServerResponse, status: number, title: string): void {
  response.writeHead(status, { 'content-type': 'text/html;charset=utf-8' });
  response.end(`<!doctype html><html><head><title>${title}</title></head><body>x</body></html>`);
}

export const wrapped = (data: unknown): unknown => ({ version: '3', type: 'x', data, nodeId: 'n', more: [1] });

/** What the work fails with, which must be an AppError. */
export async function failureOf(work: Promise<unknown>): Promise<AppError> {
  const outcome = await work.catch((error: unknown) => error);
  expect(outcome).toBeInstanceOf(AppError);
  return outcome as AppError;
}

export async function oddCore({ clientCertificate = true } = {}): Promise<OddCore> {
  const pki = await testPki();
  const { certificate: cert, key } = await pki.server();
  const dataDir = join(pki.directory, 'core');
  const files = join(dataDir, 'certs', 'files');
  mkdirSync(files, { recursive: true });
  const [caFile, bundleFile] = [join(files, 'ca.pem'), join(files, 'svc_api.p12')];
  copyFileSync(pki.ca.certificateFile, caFile);
  const sockets = new Set<Socket>();
  let connections = 0;

  const server = createServer(
    { cert, key, ca: pki.ca.certificate, requestCert: clientCertificate, rejectUnauthorized: clientCertificate },
    (request, response) => {
      const socket = request.socket as Socket & { getPeerCertificate?: () => { subject?: { CN?: string } } };
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        core.requests.push(`${request.method} ${decodeURIComponent(request.url ?? '')}`);
        const name = clientCertificate ? socket.getPeerCertificate?.().subject?.CN : undefined;
        core.met.push({ name, address: socket.remoteAddress ?? '', headers: request.headers, body });
        core.answers(request, response, body);
      });
    },
  );
  server.on('secureConnection', () => (connections += 1));
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  const core: OddCore = {
    pki,
    port,
    url: `https://127.0.0.1:${port}`,
    dataDir,
    caFile,
    bundleFile,
    requests: [],
    met: [],
    connections: () => connections,
    answers: (_, response) => sendPage(response, 404, 'Not Found'),
    serve(routes) {
      core.answers = (request, response, body) => {
        const route = `${request.method} ${decodeURIComponent((request.url ?? '').replace(/\?.*/, ''))}`;
        const answer = routes[route];
        if (!Object.hasOwn(routes, route)) sendPage(response, 404, 'Not Found');
        else if (typeof answer === 'function') (answer as OddCore['answers'])(request, response, body);
        else sendJson(response, wrapped(answer));
      };
    },
    async writeBundle(certificate, password = 'atakatak') {
      const bundle = await keyBundle({
        privateKeyPkcs8Der: privateKeyDer(certificate.key),
        certificate: certificate.signed.der,
        chain: [],
        friendlyName: 'svc_api',
        password,
        iterations: 2048,
      });
      writeFileSync(bundleFile, bundle);
    },
    closeConnections() {
      for (const socket of sockets) socket.destroy();
    },
    async end() {
      core.closeConnections();
      server.close();
      await once(server, 'close');
      rmSync(pki.directory, { recursive: true, force: true });
    },
  };
  await core.writeBundle(await pki.client('svc_api'));
  return core;
}

/** A record as a release writes it; `wish` takes the place of members. */
export function takRecord(username: string, input: Record<string, unknown> = {}): Record<string, unknown> {
  const byte = (username.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(2, '0');
  return {
    id: 1,
    creatorDn: username,
    subjectDn: `CN=${username},OU=CoT,O=Holdfast`,
    userDn: username,
    certificate: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
    hash: Array.from({ length: 32 }, () => byte).join(':'),
    clientUid: `uid-${username}`,
    issuanceDate: '2026-11-22T10:20:30.7Z',
    effectiveDate: '2026-11-21T22:20:30.70Z',
    expirationDate: '2027-11-22T10:20:30.700Z',
    revocationDate: null,
    token: null,
    serialNumber: '00AB12',
    ...input,
  };
}
