// What health can and cannot see from inside a container: its own interfaces, files and routes are not those of the machine.

import { describe, expect, it } from 'vitest';
import { placeOf } from '../../shared/alerts/transports.ts';
import { MemoryHealthCache } from '../../shared/health/cache.ts';
import type { Measurement } from '../../shared/health/port.ts';
import { wantedOf } from '../../shared/health/wanted.ts';
import type { TlsState } from '../../shared/host/port.ts';
import { loadSettings } from '../../shared/settings/load.ts';
import { runningContainer } from '../host/fake-container.ts';
import { measure as measureAnywhere } from './fake-measure.ts';
import type { World } from './fake-monitored.ts';

const NAME = 'cot.example.org';
const PROXY = '172.16.64.2';
const PUBLIC = '198.51.100.7';
const YEARS_AHEAD = '2099-01-01T00:00:00Z';
const silent: TlsState = {
  reachable: false,
  trusted: false,
  error: 'does not answer on port 443 within 5 s',
  expires_at: undefined,
  subject: undefined,
  issuer: undefined,
};
const shows = (fingerprint: string): TlsState => ({
  ...silent,
  reachable: true,
  error: undefined,
  trusted: true,
  fingerprint,
});

const measure = (name: string, change: (of: World) => void): Promise<Measurement> =>
  measureAnywhere(name, (of) => {
    of.wanted.container = { proxyAddress: PROXY, proxyPort: 443 };
    change(of);
  });

describe('dns inside a container', () => {
  const dns = async (
    addresses: string[],
    shown: Record<string, TlsState>,
    change: (of: World) => void = () => undefined,
  ) =>
    measure('dns', (of) => {
      of.wanted.publicNames = [NAME];
      of.addresses = { [NAME]: addresses };
      // The interfaces of a container are nobody's public addresses.
      of.ownAddresses = ['127.0.0.1', '172.16.64.130'];
      of.tls = Object.fromEntries(Object.entries(shown).map(([at, state]) => [`https://${NAME} at ${at}`, state]));
      change(of);
    });

  it('is ok where the name leads to the certificate of our own proxy', async () => {
    const { status, message } = await dns([PUBLIC], { [PROXY]: shows('AA'), [PUBLIC]: shows('AA') });
    expect([status, message]).toEqual(['ok', '1 name points to this machine.']);
  });

  it('complains of an address that shows another certificate', async () => {
    const addresses = [PUBLIC, '203.0.113.9'];
    const shown = { [PROXY]: shows('AA'), [PUBLIC]: shows('AA'), '203.0.113.9': shows('BB') };
    const { status, message } = await dns(addresses, shown);
    expect([status, message]).toEqual(['warning', expect.stringContaining('points to 203.0.113.9')]);
  });

  it('is a note, neither ok nor an alarm, where nothing answers from inside, and where our proxy shows nothing', async () => {
    for (const shown of [
      { [PROXY]: shows('AA'), [PUBLIC]: silent },
      { [PROXY]: silent, [PUBLIC]: shows('AA') },
    ]) {
      const { status, message } = await dns([PUBLIC], shown);
      expect([status, message]).toEqual(['note', expect.stringMatching(/^couldn't check that .*PUBLIC_ADDRESSES/)]);
    }
    const unknown = await dns(
      [PUBLIC],
      {},
      (of) => (of.wanted.container = { proxyAddress: undefined, proxyPort: 443 }),
    );
    expect(unknown.status).toBe('note');
  });

  it('asks our own proxy at its own port, and a public address at 443', async () => {
    const shown = { [`${PROXY}:8443`]: shows('AA'), [PUBLIC]: shows('AA') };
    const { status } = await dns([PUBLIC], shown, (of) => {
      of.wanted.container = { proxyAddress: PROXY, proxyPort: 8443 };
    });
    expect(status).toBe('ok');
  });

  it('compares with PUBLIC_ADDRESSES alone where they are named, and asks nobody', async () => {
    const named = (of: World): void => void (of.wanted.publicAddresses = [PUBLIC]);
    expect((await dns([PUBLIC], {}, named)).status).toBe('ok');
    expect((await dns(['203.0.113.9'], {}, named)).status).toBe('warning');
  });

  it('complains of a name without an address', async () => expect((await dns([], {})).status).toBe('warning'));
});

describe('config inside a container', () => {
  it('does not claim to know .env', async () => {
    const { status, message } = await measure('config', () => undefined);
    expect([status, message]).toEqual([
      'ok',
      expect.stringMatching(/can't be seen from inside a container. To apply them: .\/scripts\/start.sh/),
    ]);
  });
});

describe('tls inside a container', () => {
  const address = { host: NAME, port: 443, trust: 'public', address: PROXY } as const;
  const tls = async (runsForMs: number, shown: TlsState, other: TlsState = shows('AA')): Promise<Measurement> =>
    measure('tls', (of) => {
      of.runsForMs = runsForMs;
      of.wanted.tlsEndpoints = [
        { name: `https://${NAME}`, ...address },
        { name: 'https://core:8446', host: 'core', port: 8446, trust: 'own' },
      ];
      of.tls = { [`https://${NAME} at ${PROXY}`]: shown, 'https://core:8446': { ...other, expires_at: YEARS_AHEAD } };
    });

  it('alarms nobody while the proxy, which starts last, gets its certificates, and is not ok', async () => {
    const untrusted = { ...shows('AA'), trusted: false, error: 'is not trusted' };
    for (const shown of [silent, untrusted]) {
      const { status, message, shouldAlert, againSeconds } = await tls(30_000, shown);
      expect([status, shouldAlert, againSeconds]).toEqual(['note', false, 60]);
      expect(message).toContain('the stack has just started');
    }
    expect((await tls(180_000, silent)).status).toBe('critical');
  });

  it('gives nobody else time', async () => {
    const { status, message } = await tls(0, { ...shows('AA'), expires_at: YEARS_AHEAD }, silent);
    expect([status, message]).toEqual(['critical', expect.stringContaining('https://core:8446')]);
  });

  it('looks again within a minute at what cannot be used, not an hour later', async () => {
    const nowMs = Date.parse('2026-01-01T00:00:00Z');
    const cache = new MemoryHealthCache({ intervals: { tls: 3600 }, nowMs: () => nowMs });
    cache.takeDue(nowMs);
    cache.put(await tls(86_400_000, silent));
    expect([cache.takeDue(nowMs + 59_000), cache.takeDue(nowMs + 60_000)]).toEqual([[], ['tls']]);
    cache.put(await tls(86_400_000, { ...shows('AA'), expires_at: YEARS_AHEAD }));
    expect([cache.takeDue(nowMs + 3_599_000), cache.takeDue(nowMs + 3_600_000)]).toEqual([[], ['tls']]);
  });
});

it('a container that is started after management is no alarm at the start, and one later', async () => {
  const containers = async (runsForMs: number): Promise<Measurement> =>
    measure('containers', (of) => {
      of.runsForMs = runsForMs;
      of.containers = [runningContainer('caddy', { state: 'created' })];
    });
  const { status, message, shouldAlert } = await containers(10_000);
  expect([status, message, shouldAlert]).toEqual(['note', 'caddy is not started yet.', false]);
  expect(await containers(180_000)).toMatchObject({ status: 'warning', shouldAlert: true });
});

describe('the public endpoints of containers', () => {
  function wanted(mode: 'direct' | 'subdomain', more: Record<string, string> = {}) {
    const values = {
      SERVER_ADDRESS: NAME,
      DEPLOY_MODE: mode,
      TRUSTED_PROXIES: PROXY,
      CORE_ENROLLMENT_PORT: '9446',
      CORE_ENROLLMENT_URL: 'https://core:8446',
      ...more,
    };
    const { settings } = loadSettings([{ source: 'environment', values }], 'light');
    return wantedOf(settings, { listen: undefined, mode: 'light' });
  }

  it('are in subdomain mode each host and the enrollment port, publicly trusted, asked at the proxy', () => {
    const at = { trust: 'public', address: PROXY };
    const hosts = [NAME, ...['monitor', 'nodered', 'takserver'].map((each) => `${each}.${NAME}`)];
    expect(wanted('subdomain').tlsEndpoints).toEqual([
      ...hosts.map((host) => ({ name: `https://${host}`, host, port: 443, ...at })),
      { name: `https://${NAME}:9446`, host: NAME, port: 8446, ...at },
      { name: 'https://core:8446', host: 'core', port: 8446, trust: 'own' },
    ]);
  });

  it('are asked at the port that the proxy has, under the public name', () => {
    expect(wanted('subdomain', { PROXY_HTTPS_PORT: '8443' }).tlsEndpoints[0]).toEqual({
      name: `https://${NAME}`,
      host: NAME,
      port: 8443,
      trust: 'public',
      address: PROXY,
    });
  });

  it('are in direct mode the one host and the enrollment port, of the own CA, asked at the proxy', () => {
    const expected = [
      { name: `https://${NAME}`, host: NAME, port: 443, trust: 'own', address: PROXY },
      { name: `https://${NAME}:9446`, host: NAME, port: 8446, trust: 'own', address: PROXY },
    ];
    expect(wanted('direct').tlsEndpoints.slice(0, 2)).toEqual(expected);
    expect(wanted('direct', { SERVER_ADDRESS: PUBLIC }).tlsEndpoints[0]?.host).toBe(PUBLIC);
    expect(wanted('direct', { SERVER_ADDRESS: '2001:db8::5' }).tlsEndpoints[0]?.name).toBe('https://[2001:db8::5]');
  });

  it('are asked by their names where no single proxy is known, and in direct mode not at all', () => {
    const unknown = { TRUSTED_PROXIES: '172.16.64.0/24', CORE_ENROLLMENT_URL: '' };
    const [first, ...others] = wanted('subdomain', unknown).tlsEndpoints;
    expect([first, others.length]).toEqual([{ name: `https://${NAME}`, host: NAME, port: 443, trust: 'public' }, 3]);
    expect(wanted('direct', unknown).tlsEndpoints).toEqual([]);
  });

  it('are where messages lead to, not the port of management, which the machine does not bind', () => {
    const values = { SERVER_ADDRESS: NAME, DEPLOY_MODE: 'direct', LISTEN_ADDRESS: '0.0.0.0' };
    const { settings } = loadSettings([{ source: 'environment', values }], 'light');
    expect(placeOf(settings, undefined, 'light').url).toBe(`https://${NAME}/monitor`);
  });
});
