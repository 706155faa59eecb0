// Decides where a stack listens, and by which names and addresses others reach it.

import { networkInterfaces } from 'node:os';
import { coversLoopback, isWildcardAddress } from '@holdfast/kit/addresses';

/** Loopback, plus the address of --listen unless it includes loopback. */
export function listeningAddresses(listen: string | undefined): string[] {
  if (listen === undefined) return ['127.0.0.1'];
  return coversLoopback(listen) ? [listen] : ['127.0.0.1', listen];
}

/** The address that others use. For a wildcard: the first address of this machine. */
export function reachableAddress(listen: string | undefined): string {
  if (listen === undefined) return '127.0.0.1';
  if (!isWildcardAddress(listen)) return listen;
  return ownAddresses()[0] ?? '127.0.0.1';
}

function ownAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  const usable = all.filter((each) => !each.internal && !(each.family === 'IPv6' && each.address.startsWith('fe80')));
  return usable.toSorted((a, b) => a.family.localeCompare(b.family)).map((each) => each.address);
}

/** Names and addresses in the server certificate. */
export function serverNames(serverAddress: string | undefined, listen: string | undefined): string[] {
  const listening = listen === undefined ? [] : isWildcardAddress(listen) ? ownAddresses() : [listen];
  return [
    ...new Set([
      ...(serverAddress === undefined ? [] : [serverAddress]),
      ...listening,
      '127.0.0.1',
      '::1',
      'localhost',
    ]),
  ];
}
