import { describe, expect, it } from 'vitest';
import { readProxyHeader } from '../tls/proxy-header.ts';

const SIGNATURE = '0d0a0d0a000d0a515549540a';
const IPV4 = 'c6336409c0000201c3cb1f99';
const HELLO = '160301';

const read = (header: string, encoding: BufferEncoding = 'latin1') => readProxyHeader(Buffer.from(header, encoding));
const binary = (rest: string) => read(SIGNATURE + rest, 'hex');

describe('readProxyHeader', () => {
  it('reads version 1', () => {
    expect(read('PROXY TCP4 198.51.100.9 192.0.2.1 50123 8089\r\nrest')).toEqual({
      client: { address: '198.51.100.9', port: 50123 },
      bytes: 46,
    });
    expect(read('PROXY TCP6 2001:db8::1 2001:db8::2 50123 8089\r\n')).toEqual({
      client: { address: '2001:db8::1', port: 50123 },
      bytes: 47,
    });
    expect(read('PROXY UNKNOWN\r\n')).toEqual({ client: undefined, bytes: 15 });
    expect(read('PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n')).toEqual({ client: undefined, bytes: 35 });
  });

  it('reads version 2 and skips its extensions', () => {
    expect(binary(`2111000c${IPV4}${HELLO}`)).toEqual({ client: { address: '198.51.100.9', port: 50123 }, bytes: 28 });
    expect(binary(`21110013${IPV4}04000400000000${HELLO}`)).toMatchObject({ client: { port: 50123 }, bytes: 35 });
    const address = '20010db8000000000000000000000001';
    expect(binary(`21210024${address}${address}c3cb1f99`)).toEqual({
      client: { address: '2001:db8::1', port: 50123 },
      bytes: 52,
    });
  });

  it.each([
    ['LOCAL', '20000000', 16],
    ['LOCAL with addresses', `2011000c${IPV4}`, 28],
    ['PROXY without a family', '21000000', 16],
    ['a socket of the machine', `213100d8${'00'.repeat(216)}`, 232],
  ])('knows no client of %s', (_, rest, bytes) => {
    expect(binary(rest)).toEqual({ client: undefined, bytes });
  });

  it.each([
    ['version 3', `3111000c${IPV4}`],
    ['an unknown command', `2211000c${IPV4}`],
    ['datagrams', `2112000c${IPV4}`],
    ['too few bytes for its addresses', `2111000b${IPV4}`],
    ['too few bytes for its family', `2121000c${IPV4}`],
    ['more than 2,048 bytes behind its head', '21110801'],
  ])('refuses %s at once', (_, rest) => {
    expect(binary(rest)).toBeInstanceOf(Error);
  });

  it.each([
    'PROXY \r\n',
    'PROXY TCP4\r\n',
    'PROXY TCP4 198.51.100.9 192.0.2.1 50123\r\n',
    'PROXY TCP4 198.51.100.9 192.0.2.1 65536 1\r\n',
    'PROXY TCP4 198.51.100.9 192.0.2.1 -1 1\r\n',
    'PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n',
    'PROXY TCP6 198.51.100.9 192.0.2.1 1 2\r\n',
    'PROXY TCP4 198.51.100.9 192.0.2.1 1 2 3\r\n',
    'PROXY UDP4 198.51.100.9 192.0.2.1 1 2\r\n',
    'PROXY  TCP4 198.51.100.9 192.0.2.1 1 2\r\n',
    `PROXY TCP4 ${'1'.repeat(96)}`,
    `PROXY UNKNOWN ${' '.repeat(92)}\r\n`,
  ])('refuses %j', (header) => {
    expect(read(header)).toBeInstanceOf(Error);
  });

  it.each([
    ['version 1', Buffer.from('PROXY TCP6 ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n')],
    ['version 2', Buffer.from(`${SIGNATURE}21110013${IPV4}04000400000000`, 'hex')],
  ])('waits for the rest of %s wherever it is cut', (_, header) => {
    for (let at = 0; at < header.length; at++) expect(readProxyHeader(header.subarray(0, at))).toBe('more');
    expect(readProxyHeader(header)).not.toBe('more');
  });

  it('finds none in a handshake, a request, or what only begins like a header', () => {
    for (const other of ['\x16\x03\x01', 'GET / HTTP/1.1', 'PROXX', 'P\r\n', '\r\n\r\n\0\r\nQUIX'])
      expect(read(other)).toBe('none');
  });
});
