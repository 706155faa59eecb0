// Checks that the public names resolve to this machine. In a container its own interfaces don't
// help: there, a name is proven by the certificate at its address, which must be that of our own
// proxy.

import { normalAddress } from '@holdfast/kit/addresses';
import { counted } from '@holdfast/kit/format';
import type { HostNames, TlsEndpoints } from '../../host/port.ts';
import type { Finding } from '../evaluate.ts';
import { healthModule } from '../module.ts';
import type { Monitored, WantedContainer } from '../monitored.ts';

interface NameState {
  name: string;
  addresses: string[];
  /** Addresses that do not belong to this machine. */
  foreign_addresses: string[];
  /** Addresses that could not be checked, with the reason; only in containers. */
  unproven_addresses: string[];
  unproven_because: string | null;
  error: string | null;
}

type Judged = Pick<NameState, 'foreign_addresses' | 'unproven_addresses' | 'unproven_because'>;
type JudgeAddresses = (name: string, addresses: readonly string[]) => Promise<Judged>;

export const dns = healthModule<{ names: NameState[] }>({
  name: 'dns',
  isLocal: true,

  remedy: [
    'Compare the addresses of the name (dig +short NAME A; dig +short NAME AAAA) with the addresses of this machine (ip -brief address).',
    'Correct the record at the DNS provider of the domain, and wait until the old one expires (its TTL).',
    "If a router forwards a public address to this machine, or containers can't reach it, add that address to PUBLIC_ADDRESSES in .env and restart.",
    'If no name resolves at all, check the resolver of this machine: cat /etc/resolv.conf, then resolvectl status.',
  ],

  // If the network drops packets from inside, each lookup runs into its own timeout.
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
        return [{ kind: 'failure', says: `${name} has no address (${error ?? 'none found'})` }];
      if (foreign.length === 0) return [...onlyFromHere(name, addresses), ...unproven(state)];
      const says = `${name} points to ${foreign.join(', ')}, which is not an address of this machine; correct the DNS record, or add the address to PUBLIC_ADDRESSES if a router forwards it here`;
      return [{ kind: 'failure', says }];
    });
  },

  well: ({ names }) =>
    names.length === 0
      ? 'No names to check: SERVER_ADDRESS is an IP address.'
      : `${counted(names.length, 'name')} ${names.length === 1 ? 'points' : 'point'} to this machine.`,

  trend: {
    name: 'wrong names',
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

/** At a correct name our proxy presents the same certificate as at its own address. */
function byCertificate(tls: TlsEndpoints, { proxyAddress, proxyPort }: WantedContainer): JudgeAddresses {
  return async (name, addresses) => {
    const shownAt = async (address: string, port = 443): Promise<string | undefined> =>
      (await tls.inspect({ name: `https://${name}`, host: name, port, trust: 'own', address })).fingerprint;
    if (addresses.length === 0) return { foreign_addresses: [], unproven_addresses: [], unproven_because: null };
    const own = proxyAddress === undefined ? undefined : await shownAt(proxyAddress, proxyPort);
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

const NO_OWN_PROXY = 'our own reverse proxy presents no certificate to compare with';
const NOT_FROM_INSIDE = 'nothing answers there from inside a container, which is normal on many networks';

/** Not a failure: devices may still reach it. */
function unproven({ name, unproven_addresses: unprovenOnes, unproven_because: why }: NameState): Finding[] {
  if (unprovenOnes.length === 0) return [];
  const says = `couldn't check that ${name} (${unprovenOnes.join(', ')}) points to this machine: ${why}; add the address to PUBLIC_ADDRESSES if it is right`;
  return [{ kind: 'fact', status: 'note', says }];
}

function spelled(address: string): string {
  return normalAddress(address) ?? address;
}

function onlyFromHere(name: string, addresses: readonly string[]): Finding[] {
  if (/(^|\.)localhost$/i.test(name) || !addresses.every(isLoopback)) return [];
  return [
    {
      kind: 'fact',
      status: 'note',
      says: `${name} points to ${addresses.join(', ')}, which only this machine can use`,
    },
  ];
}

function isLoopback(address: string): boolean {
  return address.startsWith('127.') || spelled(address) === '::1';
}
