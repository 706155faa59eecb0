// OpenSSL's own client: one handshake, one request, what came back.

import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface ClientOrder {
  port: number;
  caFile: string;
  protocol?: '-tls1_2' | '-tls1_3';
  certificate?: { certificateFile: string; keyFile: string } | undefined;
  /** A file for the session: written, or used. */
  sessionOut?: string;
  sessionIn?: string;
  path?: string;
}

export interface ClientResult {
  output: string;
  /** Status of the answer; undefined when no byte of one came. */
  status: number | undefined;
  resumed: boolean;
}

/** TLS 1.3 is through before the server refuses, so only an answer counts. */
export async function opensslClient(order: ClientOrder): Promise<ClientResult> {
  const { port, caFile, protocol = '-tls1_3', certificate, sessionOut, sessionIn, path = '/' } = order;
  const own = certificate === undefined ? [] : ['-cert', certificate.certificateFile, '-key', certificate.keyFile];
  const session = [
    ...(sessionOut === undefined ? [] : ['-sess_out', sessionOut]),
    ...(sessionIn === undefined ? [] : ['-sess_in', sessionIn]),
  ];
  const args = [
    's_client',
    '-connect',
    `127.0.0.1:${port}`,
    '-CAfile',
    caFile,
    '-ign_eof',
    protocol,
    ...own,
    ...session,
  ];
  const child = spawn('openssl', args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stdin.on('error', () => undefined);
  child.stdin.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await once(child, 'close');
  clearTimeout(timer);
  const [, status] = /HTTP\/1\.1 (\d{3}) /.exec(output) ?? [];
  return { output, status: status === undefined ? undefined : Number(status), resumed: /^Reused, /m.test(output) };
}
