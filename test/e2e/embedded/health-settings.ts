// The variables of what health looks at, by what its modules say in processes where it can be
// reached, cannot, or is not named.

import { expect } from 'vitest';
import { wantedOf } from '../../../shared/health/wanted.ts';
import { loadSettings } from '../../../shared/settings/load.ts';
import type { SettingName } from '../../../shared/settings/table.ts';
import { healthOf, listenOn } from './managed.ts';

/** Of an address that is not this machine's, without a look at a name server. */
export const UNCHECKED_ADDRESS = '0xc6336407';

const UNREACHABLE = {
  CORE_API_URL: 'https://127.0.0.1:1',
  CORE_ENROLLMENT_URL: 'https://127.0.0.1:2',
  CORE_STREAMING_URL: 'tls://127.0.0.1:3',
  CORE_DATA_DIR: '/dev/shm/tak',
  SERVER_ADDRESS: UNCHECKED_ADDRESS,
  PUBLIC_ADDRESSES: '198.51.100.7',
};

type Endpoint = 'CORE_API_URL' | 'CORE_ENROLLMENT_URL' | 'CORE_STREAMING_URL';
type Reachable = Record<Endpoint | 'CORE_DATABASE_URL' | 'SERVER_ADDRESS', string>;

/** `reachable`: settings under which all of it answers but a container runtime, at UNCHECKED_ADDRESS. */
export function healthBehaviours(reachable: () => Reachable) {
  /**
   * The endpoint is measured at the address that the setting gives: the core answers there or nobody
   * does. Without it nobody looks.
   */
  async function leadsToCore(endpoint: string, variable: Endpoint): Promise<void> {
    const { status, data } = await healthOf(UNREACHABLE, 'tls');
    const measured = (data['endpoints'] as { name: string }[]).map(({ name }) => name);
    expect([status, measured]).toEqual(['critical', expect.arrayContaining([UNREACHABLE[variable]])]);
    const endpointState = async (env: Record<string, string>) => {
      const endpoints = (await healthOf(env, 'core')).data['doors'] as { name: string }[];
      return endpoints.find(({ name }) => name === endpoint);
    };
    expect(await endpointState({})).toEqual({ name: endpoint, address: null, error: null });
    expect(await endpointState(reachable())).toEqual({ name: endpoint, address: reachable()[variable], error: null });
  }

  return {
    PROXY_HTTPS_PORT: async () => {
      const values = { SERVER_ADDRESS: 'cot.example.org', DEPLOY_MODE: 'subdomain', TRUSTED_PROXIES: '127.0.0.1' };
      const layers = [{ source: 'environment', values: { ...values, PROXY_HTTPS_PORT: '8443' } }] as const;
      const { tlsEndpoints } = wantedOf(loadSettings(layers, 'light').settings, { listen: undefined, mode: 'light' });
      expect(tlsEndpoints[0]).toMatchObject({ address: '127.0.0.1', port: 8443 });
    },
    PUBLIC_ADDRESSES: async () => {
      const { status, message } = await healthOf(reachable(), 'dns');
      expect([status, message]).toEqual([
        'note',
        expect.stringMatching(/couldn't check that .*198\.51\.100\.7.* points to this machine.* PUBLIC_ADDRESSES/),
      ]);
      expect((await healthOf(UNREACHABLE, 'dns')).status).toBe('ok');
    },
    DEPLOY_MODE: async () => {
      const names = async (env: Record<string, string>): Promise<string[]> => {
        const { data } = await healthOf(env, 'dns');
        return (data['names'] as { name: string }[]).map(({ name }) => name);
      };
      expect(await names(UNREACHABLE)).toEqual([UNCHECKED_ADDRESS]);
      expect(await names({ SERVER_ADDRESS: 'cot.invalid', DEPLOY_MODE: 'subdomain' })).toContain('monitor.cot.invalid');
    },
    CORE_DATABASE_URL: async () => {
      expect((await healthOf({}, 'database')).message).toMatch(/set CORE_DATABASE_URL/);
      expect((await healthOf(reachable(), 'database')).data['version']).toMatch(/^16/);
    },
    CORE_API_URL: () => leadsToCore('API', 'CORE_API_URL'),
    CORE_ENROLLMENT_URL: () => leadsToCore('enrollment', 'CORE_ENROLLMENT_URL'),
    CORE_STREAMING_URL: () => leadsToCore('stream', 'CORE_STREAMING_URL'),
    CORE_DATA_DIR: async () => {
      const { data } = await healthOf(UNREACHABLE, 'disk');
      expect((data['mounts'] as { paths: string[] }[]).flatMap(({ paths }) => paths)).toContain('/dev/shm/tak');
    },
    IDENTITY_URL: async () => {
      const behind = listenOn((_, response) => {
        response.setHeader('Date', new Date(Date.now() - 60_000).toUTCString()).end();
      });
      const env = { IDENTITY_URL: await behind.url, CORE_DATABASE_URL: reachable().CORE_DATABASE_URL };
      expect((await healthOf(env, 'time')).status).toBe('critical');
      expect((await healthOf(reachable(), 'time')).status).toBe('ok');
      behind.close();
    },
    LDAP_URL: async () => {
      const errorsOf = async (env: Record<string, string>) =>
        ((await healthOf(env, 'identity')).data['bases'] as { error: string | null }[]).map(({ error }) => error);
      expect(await errorsOf({})).toEqual([
        expect.stringMatching(/set LDAP_URL/),
        expect.stringMatching(/set LDAP_URL/),
      ]);
      expect(await errorsOf(reachable())).toEqual([null, null]);
    },
    CONTAINER_RUNTIME_URL: async () => {
      expect((await healthOf(reachable(), 'containers')).status).toBe('critical');
      expect((await healthOf({}, 'containers')).message).toMatch(/^No container runtime/);
    },
  } satisfies Partial<Record<SettingName, () => Promise<void>>>;
}
