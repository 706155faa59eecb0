import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
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

const caOf = (stack: TestStack): string => readFileSync(stack.file().ca_certificate, 'utf8');

describe('--listen', () => {
  it('serves the API over TLS on that address with a certificate of the stack, and loopback stays as it is', async () => {
    const stack = await newStack();
    const { code, output } = await stack.start(['--listen', '127.0.0.2']);
    expect(code).toBe(0);
    const port = 8080 + stack.offset;
    expect(output).toContain(`https://127.0.0.2:${port}`);
    expect([stack.file().api, stack.file().portal]).toEqual([
      `http://127.0.0.1:${port}`,
      `http://127.0.0.1:${3000 + stack.offset}`,
    ]);
    expect(await statusOf(`http://127.0.0.1:${port}/api/ping`)).toBe(200);
    for (const each of [port, 3000 + stack.offset])
      expect(await statusOf(`https://127.0.0.2:${each}/api/ping`, caOf(stack))).toBe(200);
    expect(await statusOf(`https://127.0.0.2:${port}/api/settings`, caOf(stack))).toBe(401);
    await expect(statusOf(`http://127.0.0.2:${port}/api/ping`)).rejects.toThrow();
    await stop(stack.data);
  });

  it('0.0.0.0 serves every address over TLS, loopback as well, and stack.json says so', async () => {
    const stack = await newStack();
    expect((await stack.start(['--listen', '0.0.0.0'])).code).toBe(0);
    const { api } = stack.file();
    expect(api).toBe(`https://127.0.0.1:${8080 + stack.offset}`);
    for (const host of ['127.0.0.1', 'localhost']) {
      expect(await statusOf(`https://${host}:${8080 + stack.offset}/api/ping`, caOf(stack))).toBe(200);
    }
    await expect(statusOf(`http://127.0.0.1:${8080 + stack.offset}/api/ping`)).rejects.toThrow();
    await stop(stack.data);
  });

  it.each(['::0', '::ffff:127.0.0.1'])('%s is understood or refused, never half-way', async (address) => {
    const stack = await newStack();
    const { code, output } = await stack.start(['--listen', address]);
    if (address === '::0') {
      expect(code).toBe(0);
      expect(stack.file().api).toBe(`https://127.0.0.1:${8080 + stack.offset}`);
      expect(await statusOf(`${stack.file().api}/api/ping`, caOf(stack))).toBe(200);
    } else {
      expect([code, output.includes('must be an IP address of this machine')]).toEqual([2, true]);
    }
    await stop(stack.data);
  });

  it('leaves PostgreSQL on loopback', async () => {
    const stack = await newStack();
    await stack.start(['--listen', '0.0.0.0']);
    const listening = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(
        (fields) => fields[3] === '0A' && Number.parseInt(fields[1]?.split(':')[1] ?? '', 16) === 5432 + stack.offset,
      )
      .map((fields) => fields[1]?.split(':')[0]);
    expect(listening).toEqual(['0100007F']);
    await stop(stack.data);
  });
});

describe('the certificates', () => {
  it('are P-384, verified by OpenSSL, private to their owner, and kept over starts', async () => {
    const stack = await newStack();
    await stack.start();
    await stop(stack.data);
    const files = join(stack.data, 'core/certs/files');
    const before = readFileSync(join(files, 'takserver.pem'), 'utf8');
    expect(
      execFileSync(
        'openssl',
        ['verify', '-CAfile', join(files, 'ca.pem'), '-purpose', 'sslserver', join(files, 'takserver.pem')],
        { encoding: 'utf8' },
      ),
    ).toContain('OK');
    const text = execFileSync('openssl', ['x509', '-noout', '-text', '-in', join(files, 'takserver.pem')], {
      encoding: 'utf8',
    });
    expect(text).toContain('NIST CURVE: P-384');
    expect(text).toContain('ecdsa-with-SHA384');
    for (const key of ['ca-do-not-share.key', 'takserver.key'])
      expect(statSync(join(files, key)).mode & 0o777).toBe(0o600);
    await stack.start();
    await stop(stack.data);
    expect(readFileSync(join(files, 'takserver.pem'), 'utf8')).toBe(before);
  });

  it('name a new SERVER_ADDRESS after the next start, under the same CA', async () => {
    const stack = await newStack();
    await stack.start();
    const ca = caOf(stack);
    await stop(stack.data);
    await stack.start([], { env: { SERVER_ADDRESS: 'cot.example.org' } });
    const server = new X509Certificate(readFileSync(join(stack.data, 'core/certs/files/takserver.pem')));
    expect(server.checkHost('cot.example.org')).toBe('cot.example.org');
    expect(server.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(caOf(stack)).toBe(ca);
    await stop(stack.data);
  });
});

describe('a lost ca.pem', () => {
  it('is restored from the chain, never replaced', async () => {
    const stack = await newStack();
    await stack.start();
    await stop(stack.data);
    const files = join(stack.data, 'core/certs/files');
    const [ca, key] = ['ca.pem', 'ca-do-not-share.key'].map((name) => readFileSync(join(files, name), 'utf8'));
    rmSync(join(files, 'ca.pem'));
    expect((await stack.start()).code).toBe(0);
    await stop(stack.data);
    expect(readFileSync(join(files, 'ca.pem'), 'utf8').trim()).toBe(ca?.trim());
    expect(readFileSync(join(files, 'ca-do-not-share.key'), 'utf8')).toBe(key);
    rmSync(join(files, 'ca.pem'));
    rmSync(join(files, 'root-ca.pem'));
    writeFileSync(join(files, 'takserver.pem'), 'damaged');
    const { code, output } = await stack.start();
    expect(code).toBe(1);
    expect(output).toMatch(/ca\.pem is missing[^]*Remedy: restore ca\.pem from a backup/);
    expect(readFileSync(join(files, 'ca-do-not-share.key'), 'utf8')).toBe(key);
  });
});

describe('what Node cannot make a URL of', () => {
  it('is answered as a problem document and logged', async () => {
    const stack = await newStack();
    await stack.start();
    const port = 8080 + stack.offset;
    for (const [path, host] of [
      ['/api/ping', 'a b'],
      ['/api\\settings', '127.0.0.1'],
    ] as const) {
      const answer = await rawRequest(port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 40[01] /);
      expect(answer).toContain('application/problem+json');
      expect(answer).toContain('"request_id"');
    }
    await stop(stack.data);
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
