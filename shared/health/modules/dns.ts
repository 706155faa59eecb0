// The names that people and phones use lead to this machine. Inside a container its own interfaces say nothing: there a name is
// proven by the certificate that is shown where it leads, for it must be that of our own proxy.

import { normalAddress } from '@holdfast/kit/addresses';
import { counted } from '@holdfast/kit/format';
import type { HostNames, TlsEndpoints } from '../../host/port.ts';
import type { Finding } from '../evaluate.ts';
import { healthModule } from '../module.ts';
import type { Monitored, WantedContainer } from '../monitored.ts';

interface NameState {
  name: string;
  addresses: string[];
  /** Those that are none of this machine's. */
  foreign_addresses: string[];
  /** Those of which nobody here can say whose they are, and why; only in containers. */
  unproven_addresses: string[];
  unproven_because: string | null;
  error: string | null;
}

type Judged = Pick<NameState, 'foreign_addresses' | 'unproven_addresses' | 'unproven_because'>;
type JudgeAddresses = (name: string, addresses: readonly string[]) => Promise<Judged>;

export const dns = healthModule<{ names: NameState[] }>({
  name: 'dns',

  remedy: [
    'Compare where the name leads (dig +short NAME A; dig +short NAME AAAA) with the addresses of this machine (ip -brief address).',
    'Correct the record where the DNS of the domain is kept, and wait until the old one has run out (its TTL).',
    'If a router translates a public address to this machine, or containers cannot reach it, name that address in PUBLIC_ADDRESSES in .env and restart.',
    'If no name at all resolves, look at the resolver of this machine: cat /etc/resolv.conf, then resolvectl status.',
  ],

  // A network that drops what comes from inside lets each look run into its own limit.
  withinMs: 20_000,

  async read(monitored) {
    const { hostNames, wanted } = monitored;
    const judge = await judgeOf(monitored);
    return { names: await Promise.all(wanted.publicNames.map((name) => lookUp(name, hostNames, judge))) };
  },

  findings({ names }) {
    return names.flatMap((state): Finding[] => {
      const { name, addresses, foreign_addresses: foreign, error } = state;
      if (addresses.length === 0)
        return [{ kind: 'failure', says: `${name} has no address (${error ?? 'none was found'})` }];
      if (foreign.length === 0) return [...onlyFromHere(name, addresses), ...unproven(state)];
      const says = `${name} leads to ${foreign.join(', ')}, which is none of this machine's addresses; correct the DNS record, or name the address in PUBLIC_ADDRESSES if it is translated to this machine`;
      return [{ kind: 'failure', says }];
    });
  },

  well: ({ names }) =>
    names.length === 0
      ? 'There is no public name to resolve: SERVER_ADDRESS is an address.'
      : `${counted(names.length, 'name')} of this server ${names.length === 1 ? 'leads' : 'lead'} to this machine.`,

  trend: {
    name: 'names that lead elsewhere',
    unit: 'count',
    figureOf: ({ names }) =>
      names.length === 0
        ? null
        : names.filter(({ addresses, foreign_addresses: foreign }) => addresses.length === 0 || foreign.length > 0)
            .length,
  },
});

async function lookUp(name: string, hostNames: HostNames, judge: JudgeAddresses): Promise<NameState> {
  const { addresses, error } = await hostNames.resolve(name);
  const judged = await judge(
    name,
    addresses.filter((address) => !isLoopback(address)),
  );
  return { name, addresses, ...judged, error: error ?? null };
}

async function judgeOf({ hostNames, tls, wanted }: Monitored): Promise<JudgeAddresses> {
  const { publicNames, publicAddresses, container } = wanted;
  if (container !== undefined && publicAddresses.length === 0) return byCertificate(tls, container);
  const interfaces = publicNames.length === 0 ? [] : await hostNames.ownAddresses();
  const own = new Set([...interfaces, ...publicAddresses].map(spelled));
  return async (_, addresses) => ({
    foreign_addresses: addresses.filter((address) => !own.has(spelled(address))),
    unproven_addresses: [],
    unproven_because: null,
  });
}

/** Where our own proxy answers under a name it shows the certificate that it shows when it is asked at its own address. */
function byCertificate(tls: TlsEndpoints, { proxyAddress }: WantedContainer): JudgeAddresses {
  return async (name, addresses) => {
    const shownAt = async (address: string): Promise<string | undefined> =>
      (await tls.inspect({ name: `https://${name}`, host: name, port: 443, trust: 'own', address })).fingerprint;
    if (addresses.length === 0) return { foreign_addresses: [], unproven_addresses: [], unproven_because: null };
    const own = proxyAddress === undefined ? undefined : await shownAt(proxyAddress);
    if (own === undefined)
      return { foreign_addresses: [], unproven_addresses: [...addresses], unproven_because: NO_OWN_PROXY };
    const shown = await Promise.all(addresses.map(async (address) => ({ address, print: await shownAt(address) })));
    const silent = shown.filter(({ print }) => print === undefined);
    return {
      foreign_addresses: shown
        .filter(({ print }) => print !== undefined && print !== own)
        .map(({ address }) => address),
      unproven_addresses: silent.map(({ address }) => address),
      unproven_because: silent.length === 0 ? null : NOT_FROM_INSIDE,
    };
  };
}

const NO_OWN_PROXY = 'our own reverse proxy shows no certificate to compare with';
const NOT_FROM_INSIDE =
  'nothing answers there when it is asked from a container of this machine, as many a network has it';

/** Not a failure: phones may reach it all the same. */
function unproven({ name, unproven_addresses: unprovenOnes, unproven_because: why }: NameState): Finding[] {
  if (unprovenOnes.length === 0) return [];
  const says = `whether ${name} (${unprovenOnes.join(', ')}) leads to this machine is not known: ${why}; name the address in PUBLIC_ADDRESSES if it is right`;
  return [{ kind: 'fact', status: 'note', says }];
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
