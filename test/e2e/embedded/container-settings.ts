// Settings that only containers have: where each arrives when Compose reads it from .env, and that
// nothing else has it.

import { expect } from 'vitest';
import { ComposeRoot, type Service } from '../../../packages/setup/test/compose.ts';
import type { SettingName } from '../../../shared/settings/table.ts';

interface Arrival {
  value: string;
  /** `service.VARIABLE`, or `service.property`, of every place where the value stands. */
  at: string[];
}

const certificate = (name: string, value: string): Arrival => ({
  value,
  at: [`configuration.${name}`, `core.${name}`],
});

const ARRIVALS = {
  CORE_RELEASE: {
    value: '5.9-RELEASE-3',
    at: ['core-database.image', 'core.image', 'release.CORE_RELEASE', 'release.image'],
  },
  CORE_MEMORY: { value: '7g', at: ['core.mem_limit'] },
  CORE_DATABASE_MEMORY: {
    value: '5g',
    at: ['configuration.CORE_DATABASE_MEMORY', 'core-database.CORE_DATABASE_MEMORY', 'core-database.mem_limit'],
  },
  CERTIFICATE_COUNTRY: certificate('CERTIFICATE_COUNTRY', 'QZ'),
  CERTIFICATE_STATE: certificate('CERTIFICATE_STATE', 'Some State'),
  CERTIFICATE_CITY: certificate('CERTIFICATE_CITY', 'Some City'),
  CERTIFICATE_ORGANIZATION: certificate('CERTIFICATE_ORGANIZATION', 'Some Organization'),
  CERTIFICATE_UNIT: certificate('CERTIFICATE_UNIT', 'Some Unit'),
  FLOWS_TOKEN: { value: 'a-flows-token-of-this-test-alone-1', at: ['caddy.FLOWS_TOKEN', 'flows.FLOWS_TOKEN'] },
  FLOWS_CREDENTIAL_KEY: { value: 'a-key-of-this-test-alone', at: ['flows.FLOWS_CREDENTIAL_KEY'] },
  FLOWS_PASSWORD: { value: 'a-password-of-this-test', at: ['flows.FLOWS_PASSWORD'] },
  VIDEO_PUBLISH_PASSWORD: { value: 'who-publishes-here', at: ['video.MTX_AUTHINTERNALUSERS_0_PASS'] },
  VIDEO_READ_PASSWORD: {
    value: 'who-reads-it-here',
    at: ['caddy.VIDEO_READ_PASSWORD', 'video.MTX_AUTHINTERNALUSERS_1_PASS'],
  },
  IDENTITY_BOOTSTRAP_TOKEN: {
    value: 'a-bootstrap-token-of-this-test-1',
    at: ['authentik-worker.AUTHENTIK_BOOTSTRAP_TOKEN', 'identity-setup.IDENTITY_BOOTSTRAP_TOKEN'],
  },
  IDENTITY_ADMIN_PASSWORD: { value: 'of-akadmin-in-this-test', at: ['authentik-worker.AUTHENTIK_BOOTSTRAP_PASSWORD'] },
} satisfies Partial<Record<SettingName, Arrival>>;

type Arriving = keyof typeof ARRIVALS;

/** Management gets all settings to show them, and backup to store them: neither is meant here. */
const isShown = (place: string): boolean => /^(?:management|backup)\./.test(place);

export const CONTAINER_BEHAVIOURS = Object.fromEntries(
  Object.entries(ARRIVALS).map(([name, { value, at }]) => [
    name,
    () => expect(placesOf(value).filter((place) => !isShown(place))).toEqual(at),
  ]),
) as Record<Arriving, () => void>;

let read: Record<string, Service> | undefined;

/** With all of these settings, and with all of production's layers that say something of one. */
function services(): Record<string, Service> {
  const root = new ComposeRoot();
  try {
    expect(root.setUp(['--light', '--address', 'cot.example.org']).stderr).toBe('');
    const names = Object.keys(ARRIVALS).join('|');
    const others = root.readEnv().replaceAll(new RegExp(`^(?:${names})=.*\n`, 'gm'), '');
    const given = Object.entries<Arrival>(ARRIVALS).map(([name, { value }]) => `${name}=${value}\n`);
    root.writeEnv(others + given.join(''));
    return root.config(['base', 'dev', 'stream']).services;
  } finally {
    root.remove();
  }
}

/** Where a value stands, which no other setting has. */
function placesOf(value: string): string[] {
  read ??= services();
  return Object.entries(read)
    .flatMap(([service, reported]) => status(reported, value).map((place) => `${service}.${place}`))
    .toSorted();
}

function status({ environment = {}, image, mem_limit }: Service, value: string): string[] {
  const bytes = /^(\d+)g$/.exec(value)?.[1];
  return [
    ...Object.entries(environment).flatMap(([name, given]) => (given === value ? [name] : [])),
    ...(image.endsWith(`:${value}`) ? ['image'] : []),
    ...(bytes !== undefined && Number(mem_limit) === Number(bytes) * 1024 ** 3 ? ['mem_limit'] : []),
  ];
}
