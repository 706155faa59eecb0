// Who the client is behind a reverse proxy. Headers of a connection count only where a proxy of
// TRUSTED_PROXIES holds its other end: anybody can write X-Forwarded-For.

import { BlockList, isIP } from 'node:net';
import type { Connection, HostFetch } from '../http/request-log.ts';

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const MAPPED_BITS = 96;

/**
 * The fetch with the connection as the proxies report it; without proxies the fetch itself.
 * `proxies` are addresses and networks, IPv4 or IPv6.
 */
export function behindProxies(fetch: HostFetch, proxies: readonly string[] = []): HostFetch {
  if (proxies.length === 0) return fetch;
  const trusted = trustedList(proxies);
  return (request, connection) => fetch(request, clientOf(request.headers, connection, trusted));
}

/** Whether an address is one of `proxies`; undefined without proxies. */
export function trustedProxies(proxies: readonly string[]): ((address: string) => boolean) | undefined {
  if (proxies.length === 0) return undefined;
  const trusted = trustedList(proxies);
  return (address) => isTrusted(address, trusted);
}

function trustedList(proxies: readonly string[]): BlockList {
  const list = new BlockList();
  for (const proxy of proxies) {
    const [address = '', prefix] = proxy.split('/');
    const plain = plainAddress(address);
    const isMapped = plain !== address && isIP(plain) === 4;
    const bits = prefix === undefined ? undefined : Number(prefix) - (isMapped ? MAPPED_BITS : 0);
    if (bits === undefined) list.addAddress(plain, familyOf(plain));
    else if (bits >= 0) list.addSubnet(plain, bits, familyOf(plain));
    else list.addSubnet(address, Number(prefix), 'ipv6');
  }
  return list;
}

function clientOf(headers: Headers, connection: Connection, trusted: BlockList): Connection {
  const { clientAddress: peer, secure } = connection;
  if (!isTrusted(peer, trusted)) return connection;
  return {
    ...connection,
    clientAddress: farthest(peer, headers.get('x-forwarded-for'), trusted),
    secure: schemeOf(headers.get('x-forwarded-proto')) ?? secure,
  };
}

/**
 * Read from the right, each proxy names who asked it: the first that is no proxy of ours is the
 * client. What is no address ends the reading; the last good one counts.
 */
function farthest(peer: string, forwarded: string | null, trusted: BlockList): string {
  let client = peer;
  for (const word of (forwarded ?? '').split(',').toReversed()) {
    const address = plainAddress(word.trim());
    if (isIP(address) === 0 || address.includes('%')) return client;
    client = address;
    if (!isTrusted(address, trusted)) return client;
  }
  return client;
}

/** Undefined when the proxy says nothing that is known. */
function schemeOf(forwarded: string | null): boolean | undefined {
  const scheme = forwarded?.split(',').at(-1)?.trim().toLowerCase();
  if (scheme === 'https') return true;
  return scheme === 'http' ? false : undefined;
}

function isTrusted(address: string, trusted: BlockList): boolean {
  const plain = address.replace(/%.*$/, '');
  return isIP(plain) !== 0 && trusted.check(plain, familyOf(plain));
}

/** IPv4 that is written as IPv6 becomes IPv4. */
function plainAddress(address: string): string {
  return MAPPED.exec(address)?.[1] ?? address;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}
