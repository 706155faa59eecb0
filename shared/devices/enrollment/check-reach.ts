// Checks that a device can reach the enrollment port: the name, the port and its certificate, as
// seen from here. Behind a router that does not route its own address back inside, the port is
// checked where Holdfast itself enrolls.

import { bareHost, isIpAddress, isLoopbackHost, normalAddress, urlHost, urlsIn } from '@holdfast/kit/addresses';
import type { HostNames, TlsEndpoint, TlsEndpoints, TlsState } from '../../host/port.ts';
import { type Attempted, attempted, type Check, checkOf, type Found, notTried, well, wrong } from './check.ts';

export interface ReachDeps {
  monitored: {
    hostNames: HostNames;
    tls: TlsEndpoints;
    wanted: { publicAddresses: string[]; tlsEndpoints: TlsEndpoint[] };
  };
  settings: {
    SERVER_ADDRESS: string | undefined;
    CORE_ENROLLMENT_PORT: number;
    CORE_ENROLLMENT_URL: string | undefined;
  };
}

/** The inspection of an endpoint takes up to 5 s. */
const WITHIN_MS = 6_000;
const SET_ADDRESS = 'Set SERVER_ADDRESS to the name or address that devices use, and restart.';
const LOOK_AGAIN = 'Check again in a moment. GET /api/health/dns and GET /api/health/tls show the state of both.';

interface Sights {
  addresses: Attempted<Addresses>;
  /**
   * At SERVER_ADDRESS: with our own CA, and as a phone sees it that knows the public ones alone.
   */
  own: Attempted<TlsState>;
  plain: Attempted<TlsState>;
  /**
   * From inside of the stack: who answers devices in containers, asked by the public name, else
   * CORE_ENROLLMENT_URL; undefined where that is the same place or unset.
   */
  inside: Attempted<TlsState> | undefined;
  /** The same in containers, as a phone sees it. */
  insidePlain: Attempted<TlsState> | undefined;
}

interface Addresses {
  all: string[];
  /** None of this machine's, as far as it knows. */
  foreign: string[];
  /** On an interface of this machine. */
  local: string[];
  error: string | undefined;
}

/** `packageHint` says where the data package is. */
export async function checkReach(deps: ReachDeps, packageHint: string): Promise<[Check, Check, Check]> {
  const { SERVER_ADDRESS: host, CORE_ENROLLMENT_PORT: port } = deps.settings;
  if (host === undefined) {
    const because = 'SERVER_ADDRESS is not set';
    return [
      {
        stage: 'name',
        milliseconds: 0,
        ...wrong(`${because}, so a device does not know where to connect.`, SET_ADDRESS),
      },
      notTried('port', because, SET_ADDRESS),
      notTried('chain', because, SET_ADDRESS),
    ];
  }
  const sights = await look(deps, host);
  const place = `${host}:${port}`;
  const isHidden = !isReached(sights.own) && isReached(sights.inside) && !isLocal(sights.addresses);
  const seen = isHidden && sights.inside !== undefined ? sights.inside : sights.own;
  // In containers the public name was asked for inside, so that the certificate is the one that
  // phones see.
  const byName = isHidden ? sights.insidePlain : undefined;
  const where = byName === undefined ? 'at CORE_ENROLLMENT_URL' : 'inside the stack';
  return [
    checkOf('name', sights.addresses, LOOK_AGAIN, (addresses) =>
      judgeName(host, addresses, trustedState(sights.own), byName !== undefined),
    ),
    checkOf('port', sights.own, LOOK_AGAIN, (state) => judgePort(place, host, state, isHidden ? where : undefined)),
    isReached(seen)
      ? checkOf('chain', seen, LOOK_AGAIN, (state) =>
          judgeChain({
            host,
            state,
            plain: trustedState(byName ?? sights.plain),
            isHidden: isHidden && byName === undefined,
            packageHint,
          }),
        )
      : notTried('chain', `no certificate was seen at ${place}`, portRemedy(place)),
  ];
}

async function look({ monitored, settings }: ReachDeps, host: string): Promise<Sights> {
  const { CORE_ENROLLMENT_PORT: port, CORE_ENROLLMENT_URL: url } = settings;
  const inspect = (at: Place, trust: 'own' | 'public'): Promise<Attempted<TlsState>> =>
    attempted(WITHIN_MS, () => monitored.tls.inspect({ name: `${at.host}:${at.port}`, ...at, trust }));
  const place = { host, port };
  const answering = answeringInside(monitored.wanted.tlsEndpoints, `https://${urlHost(host)}:${port}`);
  const inside = answering ?? (url === undefined ? undefined : placeOf(url));
  const isElsewhere =
    inside !== undefined && (inside.address !== undefined || inside.host !== host || inside.port !== port);
  const [addresses, own, plain, insideState, insidePlain] = await Promise.all([
    attempted(WITHIN_MS, () => addressesOf(monitored, host)),
    inspect(place, 'own'),
    inspect(place, 'public'),
    isElsewhere ? inspect(inside, 'own') : undefined,
    answering === undefined ? undefined : inspect(answering, 'public'),
  ]);
  return { addresses, own, plain, inside: insideState, insidePlain };
}

type Place = Pick<TlsEndpoint, 'host' | 'port' | 'address' | 'others'>;

/** Who answers that public address in containers, at its own address there. */
function answeringInside(endpoints: readonly TlsEndpoint[], name: string): Place | undefined {
  const found = endpoints.find((each) => each.name === name);
  if (found?.address === undefined) return undefined;
  const { host, port, address } = found;
  return { host, port, address };
}

function placeOf(urls: string): Place | undefined {
  const [first, ...others] = urlsIn(urls).map((url) => {
    const { hostname, port } = new URL(url);
    return { host: bareHost(hostname), port: port === '' ? 443 : Number(port) };
  });
  return first && { ...first, ...(others.length > 0 && { others }) };
}

async function addressesOf({ hostNames, wanted }: ReachDeps['monitored'], host: string): Promise<Addresses> {
  const [{ addresses: all, error }, interfaces] = await Promise.all([
    isIpAddress(host) ? { addresses: [host], error: undefined } : hostNames.resolve(host),
    hostNames.ownAddresses(),
  ]);
  const own = new Set(interfaces.map(spelled));
  const known = new Set([...own, ...wanted.publicAddresses.map(spelled)]);
  const isOwn = (address: string): boolean => own.has(spelled(address)) || isLoopbackHost(address);
  return {
    all,
    foreign: all.filter((address) => !known.has(spelled(address)) && !isLoopbackHost(address)),
    local: all.filter(isOwn),
    error,
  };
}

function judgeName(host: string, { all, foreign, error }: Addresses, isOurs: boolean, isGuess: boolean): Found {
  const onlyHere = all.length > 0 && all.every(isLoopbackHost);
  const notes = onlyHere
    ? [
        `${host} leads only to this machine itself. Devices need a SERVER_ADDRESS that they can reach, and --listen with the embedded stack.`,
      ]
    : [];
  if (isIpAddress(host)) return well(`SERVER_ADDRESS is the address ${host}, so there is no name to resolve.`, notes);
  if (all.length === 0)
    return wrong(
      `${host} has no address (${error ?? 'none was found'}), so a device cannot find it.`,
      'Correct SERVER_ADDRESS, or the DNS record of the domain.',
    );
  if (foreign.length === 0) return well(`${host} leads to this machine (${all.join(', ')}).`, notes);
  if (isGuess)
    return well(`${host} leads to ${all.join(', ')}.`, [
      `A container cannot see whether ${all.join(', ')} is this machine. If it is, add it to PUBLIC_ADDRESSES.`,
    ]);
  // Whoever shows a certificate for this name that we trust is meant.
  if (isOurs) return well(`${host} leads to ${all.join(', ')}, which presents a certificate for it.`);
  return wrong(
    `${host} leads to ${foreign.join(', ')}, which is not an address of this machine.`,
    'Correct the DNS record. If a router translates the address to this machine, add it to PUBLIC_ADDRESSES and restart.',
  );
}

/** `seenAt`: where it was seen, when not at the place itself. */
function judgePort(place: string, host: string, { reachable, error }: TlsState, seenAt: string | undefined): Found {
  if (reachable) return well(`The enrollment port answers at ${place}.`);
  const says = `${host} ${error ?? 'does not answer'}`;
  if (seenAt === undefined) return wrong(`Couldn't enroll at ${place}: ${says}.`, portRemedy(place));
  return well(`The enrollment port answers ${seenAt}; from here, ${says}.`, [
    `${place} cannot be reached from this machine, which is usual behind a router. Test it from a device or computer in another network: openssl s_client -connect ${place} </dev/null`,
  ]);
}

function portRemedy(place: string): string {
  return `Check that the core runs (GET /api/health/tls, GET /api/health) and listens on the address of SERVER_ADDRESS (--listen with the embedded stack). Check that firewall and router allow ${place}, and that CORE_ENROLLMENT_PORT is right.`;
}

interface ChainSight {
  host: string;
  state: TlsState;
  /** Without our own CA it is trusted as well. */
  plain: boolean;
  isHidden: boolean;
  packageHint: string;
}

function judgeChain({ host, state, plain, isHidden, packageHint }: ChainSight): Found {
  const { trusted, error = 'is not trusted' } = state;
  // Seen at another name than phones use.
  const isOtherNameOnly = isHidden && /^is issued to [^;]*$/.test(error);
  if (!trusted && !isOtherNameOnly)
    return wrong(
      `The certificate of the enrollment port is not usable: it ${error}.`,
      'GET /api/health/tls names the steps: renew it, issue it to SERVER_ADDRESS, or have the CA of this core sign it. A restart of the embedded stack does this.',
    );
  const open = `Devices do not trust the CA of this stack yet: open the data package on the device first, then the link (${packageHint}).`;
  if (isHidden)
    return well('The certificate was seen at CORE_ENROLLMENT_URL and is valid.', [
      `Its name could not be compared with ${host}. ${open}`,
    ]);
  if (plain)
    return well(
      `The certificate is valid, issued to ${host}, and publicly trusted: devices accept it without further steps.`,
    );
  return well(`The certificate is valid, issued to ${host}, and signed by the CA of this stack.`, [open]);
}

function isReached(sight: Attempted<TlsState> | undefined): boolean {
  return sight !== undefined && 'value' in sight.got && sight.got.value.reachable;
}

function trustedState({ got }: Attempted<TlsState>): boolean {
  return 'value' in got && got.value.trusted;
}

/** An address of an interface that refuses is no matter of a router. */
function isLocal({ got }: Attempted<Addresses>): boolean {
  return 'value' in got && got.value.local.length > 0;
}

function spelled(address: string): string {
  return normalAddress(address) ?? address;
}
