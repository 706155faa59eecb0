// HTTP as it is written, over TLS: headers twice, in odd spellings, without a name in the
// handshake, from an address of choice.

import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';

export interface RawRequest {
  port: number;
  /** PEM; without it any certificate will do. */
  ca?: string | undefined;
  /** The name in the handshake, and in Host; `''` is none. */
  name: string;
  host?: string;
  from?: string;
  /** `GET /` */
  line?: string;
  /** Each as it is to be written. */
  headers?: string[];
  body?: string;
}

export interface RawAnswer {
  status: number;
  /** Lower case names. */
  headers: Map<string, string>;
  body: string;
}

/** The handshake is through, the certificate trusted. */
export async function openTls({ port, ca, name, from = '127.0.0.1' }: RawRequest): Promise<TLSSocket> {
  const tcp = connectPlain({ host: '127.0.0.1', port, localAddress: from });
  const trust = ca === undefined ? { rejectUnauthorized: false } : { ca };
  const socket = connectTls({
    socket: tcp,
    servername: name,
    ...trust,
    ...(name === '' ? { checkServerIdentity: () => undefined } : {}),
  });
  return new Promise((resolve, reject) => {
    tcp.once('error', reject);
    socket.once('error', reject);
    socket.once('secureConnect', () => resolve(socket));
  });
}

export function textOf({ name, host = name, line = 'GET /', headers = [], body }: RawRequest): string {
  const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  return [`${line} HTTP/1.1`, `Host: ${host}`, ...length, ...headers, '', body ?? ''].join('\r\n');
}

/** One request on a connection of its own. */
export async function ask(request: RawRequest): Promise<RawAnswer> {
  const socket = await openTls(request);
  const { headers = [] } = request;
  const closing = headers.some((header) => /^connection:/i.test(header)) ? headers : [...headers, 'Connection: close'];
  socket.write(textOf({ ...request, headers: closing }));
  return answerOf(socket);
}

/** The same in plain HTTP. */
export async function askPlain(request: RawRequest): Promise<RawAnswer> {
  const socket = connectPlain({ host: '127.0.0.1', port: request.port });
  socket.write(textOf({ ...request, headers: [...(request.headers ?? []), 'Connection: close'] }));
  return answerOf(socket);
}

/** Reads to the end of the answer: of its body, or of the connection. */
export async function answerOf(socket: Socket, withinMs = 20_000): Promise<RawAnswer> {
  let text = '';
  socket.setEncoding('utf8');
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no answer in ${withinMs} ms: ${text}`)), withinMs);
    const done = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(parsed(text));
    };
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (isWhole(text)) done();
    });
    socket.on('error', (error) => (text === '' ? reject(error) : done()));
    socket.on('close', done);
  });
}

function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end === -1) return false;
  const head = text.slice(0, end);
  if (head.startsWith('HTTP/1.1 101 ')) return true;
  const body = text.slice(end + 4);
  const [, length] = /^content-length: *(\d+)\r?$/im.exec(head) ?? [];
  if (length !== undefined) return Buffer.byteLength(body) >= Number(length);
  return /^transfer-encoding: *chunked\r?$/im.test(head) && body.endsWith('0\r\n\r\n');
}

function parsed(text: string): RawAnswer {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [first = '', ...lines] = head.split('\r\n');
  const headers = new Map<string, string>();
  for (const line of lines) {
    const at = line.indexOf(':');
    const name = line.slice(0, at).toLowerCase();
    const value = line.slice(at + 1).trim();
    headers.set(name, headers.has(name) ? `${headers.get(name)}, ${value}` : value);
  }
  const body = rest.join('\r\n\r\n');
  const chunked = /chunked/.test(headers.get('transfer-encoding') ?? '');
  return { status: Number(/ (\d{3})/.exec(first)?.[1] ?? 0), headers, body: chunked ? unchunked(body) : body };
}

function unchunked(text: string): string {
  let rest = text;
  let whole = '';
  for (;;) {
    const at = rest.indexOf('\r\n');
    const size = Number.parseInt(rest.slice(0, at), 16);
    if (at === -1 || !(size > 0)) return whole;
    whole += rest.slice(at + 2, at + 2 + size);
    rest = rest.slice(at + 4 + size);
  }
}
