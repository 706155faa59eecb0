// Reads the PROXY protocol, versions 1 and 2: the header by which a TCP load balancer reports the
// client of a connection (haproxy.org/download/3.0/doc/proxy-protocol.txt).

import { isIP, SocketAddress, type Socket } from 'node:net';

export interface Endpoint {
  address: string;
  port: number;
}

/** Undefined: the balancer speaks for itself, as its health checks do. */
export interface ProxyHeader {
  client: Endpoint | undefined;
  bytes: number;
}

const SIGNATURE_1 = Buffer.from('PROXY ');
const SIGNATURE_2 = Buffer.from('\r\n\r\n\0\r\nQUIT\n');
const MAX_BYTES_1 = 107;
const FIXED_BYTES_2 = 16;
/** Of addresses and extensions; the longest that the protocol has to name takes 536. */
const MAX_REST_BYTES_2 = 2_048;
const VERSION_2 = 0x20;
const [LOCAL, PROXY] = [0, 1];
const [UNSPECIFIED, UNIX_STREAM] = [0x00, 0x31];
/** Of a stream, by family: bytes of an address. */
const ADDRESS_BYTES: Readonly<Record<number, number>> = { 0x11: 4, 0x21: 16 };
const MAX_PORT = 65_535;

/**
 * The header at the start of what has come so far. `more` while it is too short to tell, `none`
 * when it begins with something else, an Error when it is no valid header.
 */
export function readProxyHeader(start: Buffer): ProxyHeader | 'more' | 'none' | Error {
  if (begins(start, SIGNATURE_2)) return start.length < FIXED_BYTES_2 ? 'more' : binaryHeader(start);
  if (begins(start, SIGNATURE_1)) return start.length < SIGNATURE_1.length ? 'more' : textHeader(start);
  return 'none';
}

/**
 * Takes the header from a connection and leaves what follows for its next reader. Resolves with
 * undefined when there is none; rejects when it is invalid, when the connection ends first, or
 * after `withinMs`.
 */
export async function takeProxyHeader(socket: Socket, withinMs: number): Promise<ProxyHeader | undefined> {
  let start = Buffer.alloc(0);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => finish(new Error('no PROXY header in time')), withinMs);
    const ended = (): void => finish(new Error(start.length === 0 ? NOTHING_SENT : 'ended within its PROXY header'));
    const read = (): void => {
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) return;
      start = Buffer.concat([start, chunk]);
      const header = readProxyHeader(start);
      if (header !== 'more') finish(header);
    };
    const finish = (header: ProxyHeader | 'none' | Error): void => {
      clearTimeout(timer);
      socket.off('readable', read).off('end', ended).off('close', ended);
      if (header instanceof Error) return reject(header);
      const rest = header === 'none' ? start : start.subarray(header.bytes);
      if (rest.length > 0) socket.unshift(rest);
      resolve(header === 'none' ? undefined : header);
    };
    socket.on('readable', read).once('end', ended).once('close', ended);
  });
}

/** The message of an error: somebody only looked whether the port is open. */
export const NOTHING_SENT = 'ended without a byte';

function begins(start: Buffer, signature: Buffer): boolean {
  const length = Math.min(start.length, signature.length);
  return start.subarray(0, length).equals(signature.subarray(0, length));
}

function textHeader(start: Buffer): ProxyHeader | 'more' | Error {
  const end = start.subarray(0, MAX_BYTES_1).indexOf('\r\n');
  if (end < 0) return start.length < MAX_BYTES_1 ? 'more' : new Error('a PROXY header without an end');
  const bytes = end + 2;
  const [, protocol = '', ...words] = start.toString('latin1', 0, end).split(' ');
  if (protocol === 'UNKNOWN') return { client: undefined, bytes };
  const [address = '', , port = ''] = words;
  const isComplete = words.length === 4 && /^TCP[46]$/.test(protocol) && isIP(address) === Number(protocol.at(3));
  if (!isComplete || !/^\d{1,5}$/.test(port) || Number(port) > MAX_PORT) return new Error('an invalid PROXY header');
  return { client: { address, port: Number(port) }, bytes };
}

function binaryHeader(start: Buffer): ProxyHeader | 'more' | Error {
  const [command, family, rest] = [start.readUInt8(12), start.readUInt8(13), start.readUInt16BE(14)];
  if ((command & 0xf0) !== VERSION_2 || (command & 0x0f) > PROXY) return new Error('a PROXY header of another version');
  if (rest > MAX_REST_BYTES_2) return new Error('a PROXY header that is too long');
  const bytes = FIXED_BYTES_2 + rest;
  if (start.length < bytes) return 'more';
  if ((command & 0x0f) === LOCAL || family === UNSPECIFIED || family === UNIX_STREAM) {
    return { client: undefined, bytes };
  }
  const size = ADDRESS_BYTES[family];
  if (size === undefined || rest < 2 * size + 4) return new Error('an invalid PROXY header');
  const address = textOf(start.subarray(FIXED_BYTES_2, FIXED_BYTES_2 + size));
  return { client: { address, port: start.readUInt16BE(FIXED_BYTES_2 + 2 * size) }, bytes };
}

function textOf(address: Buffer): string {
  if (address.length === 4) return address.join('.');
  const groups = Array.from({ length: 8 }, (_, at) => address.readUInt16BE(2 * at).toString(16));
  return new SocketAddress({ family: 'ipv6', address: groups.join(':') }).address;
}
