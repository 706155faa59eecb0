// Host names as this machine resolves them (its hosts file first, then DNS), and its own addresses.

import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import { normalAddress } from '../domain/host-name.ts';
import { codeOf, messageOf } from '../domain/thrown.ts';
import type { HostNames, Resolution } from '../ports/host-names.ts';
import { withinMs } from './time-limit.ts';

const REASONS: Record<string, string> = {
  ENOTFOUND: 'no such name',
  ENODATA: 'the name has no address',
  EAI_AGAIN: 'no name server answers for now',
};

/** The resolver of this machine. Each address appears once, in its normal spelling. */
export function hostNames(options: { withinMs?: number } = {}): HostNames {
  const { withinMs: limitMs = 5000 } = options;
  const lookups = new Map<string, Promise<LookupAddress[]>>();

  /** Each lookup holds a thread for as long as the name servers are silent: never two for one name. */
  function addressesOf(name: string): Promise<LookupAddress[]> {
    const running = lookups.get(name);
    if (running !== undefined) return running;
    const found = lookup(name, { all: true }).finally(() => lookups.delete(name));
    lookups.set(name, found);
    return found;
  }

  async function resolve(name: string): Promise<Resolution> {
    const late = (): Error => new Error(`no answer within ${limitMs / 1000} s`);
    try {
      // Node warns of the empty name, and finds no address for it.
      const found = name === '' ? [] : await withinMs(limitMs, addressesOf(name), late);
      const addresses = distinct(found.map(({ address }) => address));
      return { addresses, error: addresses.length === 0 ? REASONS['ENODATA'] : undefined };
    } catch (error) {
      return { addresses: [], error: REASONS[codeOf(error) ?? ''] ?? messageOf(error) };
    }
  }

  async function ownAddresses(): Promise<string[]> {
    return distinct(Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address)));
  }

  return { resolve, ownAddresses };
}

/** Without zones: an address of the local link is the same address on each interface. */
function distinct(addresses: readonly string[]): string[] {
  const plain = addresses.map((address) => address.replace(/%.*$/, ''));
  return [...new Set(plain.map((address) => normalAddress(address) ?? address))];
}
