// The names that people and phones use lead to this machine.

import { counted } from '../domain/amounts.ts';
import type { Finding } from '../domain/evaluate.ts';
import { normalAddress } from '../domain/host-name.ts';
import type { HostNames } from '../ports/host-names.ts';
import { healthModule } from './module.ts';

interface NameState {
  name: string;
  addresses: string[];
  /** Those that are none of this machine's. */
  foreign_addresses: string[];
  error: string | null;
}

export const dns = healthModule<{ names: NameState[] }>({
  name: 'dns',

  remedy: [
    'Compare where the name leads (dig +short NAME A; dig +short NAME AAAA) with the addresses of this machine (ip -brief address).',
    'Correct the record where the DNS of the domain is kept, and wait until the old one has run out (its TTL).',
    'If a router translates a public address to this machine, name that address in PUBLIC_ADDRESSES in .env and restart.',
    'If no name at all resolves, look at the resolver of this machine: cat /etc/resolv.conf, then resolvectl status.',
  ],

  async read({ hostNames, wanted }) {
    if (wanted.publicNames.length === 0) return { names: [] };
    const own = new Set([...(await hostNames.ownAddresses()), ...wanted.publicAddresses].map(spelled));
    return { names: await Promise.all(wanted.publicNames.map((name) => lookUp(name, own, hostNames))) };
  },

  findings({ names }) {
    return names.flatMap(({ name, addresses, foreign_addresses: foreign, error }): Finding[] => {
      if (addresses.length === 0)
        return [{ kind: 'failure', says: `${name} has no address (${error ?? 'none was found'})` }];
      if (foreign.length === 0) return onlyFromHere(name, addresses);
      const says = `${name} leads to ${foreign.join(', ')}, which is none of this machine's addresses; correct the DNS record, or name the address in PUBLIC_ADDRESSES if it is translated to this machine`;
      return [{ kind: 'failure', says }];
    });
  },

  well: ({ names }) =>
    names.length === 0
      ? 'There is no public name to resolve: SERVER_ADDRESS is an address.'
      : `${counted(names.length, 'name')} of this server ${names.length === 1 ? 'leads' : 'lead'} to this machine.`,
});

async function lookUp(name: string, own: ReadonlySet<string>, hostNames: HostNames): Promise<NameState> {
  const { addresses, error } = await hostNames.resolve(name);
  const foreign = addresses.filter((address) => !own.has(spelled(address)) && !isLoopback(address));
  return { name, addresses, foreign_addresses: foreign, error: error ?? null };
}

function spelled(address: string): string {
  return normalAddress(address) ?? address;
}

function onlyFromHere(name: string, addresses: readonly string[]): Finding[] {
  if (/(^|\.)localhost$/i.test(name) || !addresses.every(isLoopback)) return [];
  return [
    { kind: 'fact', status: 'note', says: `${name} leads to ${addresses.join(', ')}, which only this machine can use` },
  ];
}

function isLoopback(address: string): boolean {
  return address.startsWith('127.') || spelled(address) === '::1';
}
