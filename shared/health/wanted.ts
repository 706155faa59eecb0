// Derives from the settings the values that health checks: tuning, public names, TLS endpoints and
// the core.

import { bareHost, isIpAddress, isWildcardAddress, urlHost, urlsIn } from '@holdfast/kit/addresses';
import type { Secret } from '@holdfast/kit/secret';
import type { TlsEndpoint } from '../host/port.ts';
import type { WantedRetention } from '../retention/port.ts';
import type { Mode } from '../settings/rules.ts';
import type { Settings } from '../settings/table.ts';
import type { Wanted, WantedContainer } from './monitored.ts';

const STREAMING_PORT = 8089;
/** The port in the containers; CORE_ENROLLMENT_PORT is that of the machine. */
const ENROLLMENT_PORT = 8446;
/** The hosts of subdomain mode below SERVER_ADDRESS. */
const SUBDOMAINS = ['monitor', 'nodered', 'takserver'];

/** `listen` is the address of --listen, on which the API speaks TLS. */
export function wantedOf(settings: Settings, { listen, mode }: { listen: string | undefined; mode: Mode }): Wanted {
  const hosts = publicHosts(settings);
  const container = mode === 'embedded' ? undefined : containerOf(settings);
  return {
    tuning: {
      scaleFactor: settings.DB_AUTOVACUUM_SCALE_FACTOR,
      costLimit: settings.DB_AUTOVACUUM_COST_LIMIT,
      maintenanceWorkMem: settings.DB_MAINTENANCE_WORK_MEM,
    },
    retention: wantedRetention(settings),
    backups: settings.BACKUP_TARGET === undefined ? undefined : { cron: settings.BACKUP_CRON },
    databaseDirectory: settings.CORE_DATABASE_DIR,
    databaseHost: hostOf(settings.CORE_DATABASE_URL),
    publicNames: hosts.filter((host) => !isIpAddress(host)),
    publicAddresses: settings.PUBLIC_ADDRESSES ?? [],
    tlsEndpoints: [
      ...(container?.proxyAddress === undefined
        ? publishedHosts(settings, hosts)
        : throughProxy(settings, hosts, { address: container.proxyAddress, httpsPort: container.proxyPort })),
      ...ownEndpoints(settings, listen),
    ],
    container,
    coreEndpoints: {
      api: ownEndpoint(settings.CORE_API_URL),
      enrollment: ownEndpoint(settings.CORE_ENROLLMENT_URL),
      streaming: ownEndpoint(settings.CORE_STREAMING_URL),
    },
  };
}

/** Returns only the host of the URL: the rest contains a password. */
function hostOf(url: Secret | undefined): string | undefined {
  const host = url === undefined ? '' : bareHost(new URL(url.reveal()).hostname);
  return host === '' ? undefined : host;
}

/** The values of the retention variables. */
export function wantedRetention(settings: Settings): WantedRetention {
  return {
    cot: settings.COT_RETENTION_DAYS,
    geochat: settings.GEOCHAT_RETENTION_DAYS,
    cron: settings.RETENTION_CRON,
    unit: settings.CORE_RETENTION_UNIT,
  };
}

function publicHosts({ SERVER_ADDRESS: address, DEPLOY_MODE: mode }: Settings): string[] {
  if (address === undefined) return [];
  return mode === 'subdomain' ? [address, ...SUBDOMAINS.map((name) => `${name}.${address}`)] : [address];
}

function containerOf({ TRUSTED_PROXIES: proxies = [], PROXY_HTTPS_PORT: proxyPort }: Settings): WantedContainer {
  return { proxyAddress: proxies.find(isIpAddress), proxyPort };
}

function publishedHosts({ DEPLOY_MODE: mode }: Settings, hosts: readonly string[]): TlsEndpoint[] {
  return mode === 'subdomain' ? hosts.map((host) => endpointOf(`https://${host}`, 'public')) : [];
}

/**
 * The public names, checked at the proxy itself: many networks do not route a container back to its
 * own machine.
 */
function throughProxy(
  settings: Settings,
  hosts: readonly string[],
  { address, httpsPort }: { address: string; httpsPort: number },
): TlsEndpoint[] {
  const { SERVER_ADDRESS: name, DEPLOY_MODE: mode, CORE_ENROLLMENT_PORT: port } = settings;
  if (name === undefined) return [];
  const trust = mode === 'direct' ? 'own' : 'public';
  const shown = (of: string): string => `https://${urlHost(of)}`;
  const enrollment = { name: `${shown(name)}:${port}`, host: name, port: ENROLLMENT_PORT, trust, address } as const;
  return [...hosts.map((host) => ({ name: shown(host), host, port: httpsPort, trust, address }) as const), enrollment];
}

function ownEndpoints(settings: Settings, listen: string | undefined): TlsEndpoint[] {
  const own = [settings.CORE_API_URL, settings.CORE_ENROLLMENT_URL, settings.CORE_STREAMING_URL];
  const api = isWildcardAddress(listen ?? '') ? '127.0.0.1' : listen;
  if (api !== undefined)
    own.unshift(...[settings.API_PORT, settings.PORTAL_PORT].map((port) => `https://${urlHost(api)}:${port}`));
  return own.flatMap((urls) => ownEndpoint(urls) ?? []);
}

function ownEndpoint(urls: string | undefined): TlsEndpoint | undefined {
  if (urls === undefined) return undefined;
  const all = urlsIn(urls).map((url) => endpointOf(url, 'own'));
  const [first, ...others] = all;
  if (first === undefined || others.length === 0) return first;
  const name = all.map((each) => each.name).join(', ');
  return { ...first, name, others: others.map(({ host, port }) => ({ host, port })) };
}

/** Of an `https:` or `tls:` URL. */
export function endpointOf(url: string, trust: TlsEndpoint['trust']): TlsEndpoint {
  const { protocol, hostname, port } = new URL(url);
  const usual = protocol === 'tls:' ? STREAMING_PORT : 443;
  const host = bareHost(hostname);
  return { name: url.replace(/\/$/, ''), host, port: port === '' ? usual : Number(port), trust };
}
