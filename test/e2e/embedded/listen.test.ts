import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { newStack, stop, type TestStack } from './embedded.ts';

/**
 * Status of a GET; over TLS only the given CA is trusted, and a certificate that does not hold
 * rejects.
 */
async function statusOf(url: string, ca?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const answered = (response: IncomingMessage): void => {
      response.resume();
      resolve(response.statusCode ?? 0);
    };
    const options = { agent: false, ...(ca === undefined ? {} : { ca }) };
    const request = url.startsWith('https:')
      ? requestSecure(url, options, answered)
      : requestPlain(url, options, answered);
    request.once('error', reject).end();
  });
}

let stack: TestStack;
const caFile = (name: string): string => join(stack.data, 'core/certs/files', name);
const caOf = (): string => readFileSync(stack.file().ca_certificate, 'utf8');
const serverCertificate = (): string => readFileSync(caFile('takserver.pem'), 'utf8');
const port = (): number => 8080 + stack.offset;

beforeAll(async () => {
  stack = await newStack();
});

describe('--listen with an address', () => {
  beforeAll(async () => {
    const { code, output } = await stack.start(['--listen', '127.0.0.2']);
    expect(code).toBe(0);
    expect(output).toContain(`https://127.0.0.2:${port()}`);
  });

  it('serves the API over TLS there with a certificate of the stack, and loopback stays as it is', async () => {
    expect([stack.file().api, stack.file().portal]).toEqual([
      `http://127.0.0.1:${port()}`,
      `http://127.0.0.1:${3000 + stack.offset}`,
    ]);
    expect(await statusOf(`http://127.0.0.1:${port()}/api/ping`)).toBe(200);
    for (const each of [port(), 3000 + stack.offset])
      expect(await statusOf(`https://127.0.0.2:${each}/api/ping`, caOf())).toBe(200);
    expect(await statusOf(`https://127.0.0.2:${port()}/api/settings`, caOf())).toBe(401);
    await expect(statusOf(`http://127.0.0.2:${port()}/api/ping`)).rejects.toThrow();
  });

  it('makes certificates on P-256, verified by OpenSSL, private to their owner', () => {
    expect(
      execFileSync(
        'openssl',
        ['verify', '-CAfile', caFile('ca.pem'), '-purpose', 'sslserver', caFile('takserver.pem')],
        { encoding: 'utf8' },
      ),
    ).toContain('OK');
    const text = execFileSync('openssl', ['x509', '-noout', '-text', '-in', caFile('takserver.pem')], {
      encoding: 'utf8',
    });
    expect(text).toContain('NIST CURVE: P-256');
    expect(text).toContain('ecdsa-with-SHA256');
    for (const key of ['ca-do-not-share.key', 'takserver.key']) expect(statSync(caFile(key)).mode & 0o777).toBe(0o600);
  });

  it('answers what Node cannot make a URL of as a problem document, and logs it', async () => {
    for (const [path, host] of [
      ['/api/ping', 'a b'],
      ['/api\\settings', '127.0.0.1'],
    ] as const) {
      const answer = await rawRequest(port(), `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 40[01] /);
      expect(answer).toContain('application/problem+json');
      expect(answer).toContain('"request_id"');
    }
  });
});

describe('--listen 0.0.0.0, with a new SERVER_ADDRESS', () => {
  let ca: string;
  beforeAll(async () => {
    ca = caOf();
    await stop(stack.data);
    const { code } = await stack.start(['--listen', '0.0.0.0'], { env: { SERVER_ADDRESS: 'cot.example.org' } });
    expect(code).toBe(0);
  });

  it('serves every address over TLS, loopback as well, and stack.json says so', async () => {
    expect(stack.file().api).toBe(`https://127.0.0.1:${port()}`);
    for (const host of ['127.0.0.1', 'localhost'])
      expect(await statusOf(`https://${host}:${port()}/api/ping`, caOf())).toBe(200);
    await expect(statusOf(`http://127.0.0.1:${port()}/api/ping`)).rejects.toThrow();
  });

  it('leaves PostgreSQL on loopback', () => {
    const listening = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(
        (fields) => fields[3] === '0A' && Number.parseInt(fields[1]?.split(':')[1] ?? '', 16) === 5432 + stack.offset,
      )
      .map((fields) => fields[1]?.split(':')[0]);
    expect(listening).toEqual(['0100007F']);
  });

  it('names the new address in the certificate, under the same CA', () => {
    const server = new X509Certificate(serverCertificate());
    expect(server.checkHost('cot.example.org')).toBe('cot.example.org');
    expect(server.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(caOf()).toBe(ca);
  });
});

describe('--listen ::0, after ca.pem was lost', () => {
  let ca: string;
  let key: string;
  let server: string;
  beforeAll(async () => {
    await stop(stack.data);
    [ca, key, server] = [caOf(), readFileSync(caFile('ca-do-not-share.key'), 'utf8'), serverCertificate()];
    rmSync(caFile('ca.pem'));
    const { code } = await stack.start(['--listen', '::0'], { env: { SERVER_ADDRESS: 'cot.example.org' } });
    expect(code).toBe(0);
  });

  it('serves every address over TLS, while a mapped address is refused', async () => {
    expect(stack.file().api).toBe(`https://127.0.0.1:${port()}`);
    expect(await statusOf(`${stack.file().api}/api/ping`, caOf())).toBe(200);
    const { code, output } = await stack.start(['--listen', '::ffff:127.0.0.1']);
    expect([code, output.includes('must be an IP address of this machine')]).toEqual([2, true]);
  });

  it('keeps the certificate and restores ca.pem from the chain, never replaces it', async () => {
    await stop(stack.data);
    expect(serverCertificate()).toBe(server);
    expect(readFileSync(caFile('ca.pem'), 'utf8').trim()).toBe(ca.trim());
    expect(readFileSync(caFile('ca-do-not-share.key'), 'utf8')).toBe(key);
    rmSync(caFile('ca.pem'));
    rmSync(caFile('root-ca.pem'));
    writeFileSync(caFile('takserver.pem'), 'damaged');
    const { code, output } = await stack.start();
    expect(code).toBe(1);
    expect(output).toMatch(/ca\.pem is missing[^]*Remedy: restore ca\.pem from a backup/);
    expect(readFileSync(caFile('ca-do-not-share.key'), 'utf8')).toBe(key);
  });
});

async function rawRequest(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    socket
      .on('data', (chunk) => (answer += chunk.toString()))
      .once('error', reject)
      .once('close', () => resolve(answer));
  });
}
