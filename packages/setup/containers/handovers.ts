// What the containers of our own core and identity provider hand to their programs.

import type { CoreHandover } from '@holdfast/core/handover';
import type { IdentityHandover } from '@holdfast/identity/handover';
import { basesOf } from '@holdfast/kit/distinguished-name';
import { CORE_DATABASE, CORE_OWNER, IDENTITY_DATABASE, IDENTITY_OWNER } from '@holdfast/stack/database/roles';
import type { Settings } from '../../../shared/settings/table.ts';
import { MOUNTS, type Places } from './places.ts';

/** By which the other containers know the core. */
const CORE_NAMES = ['core', 'takserver', 'localhost', '127.0.0.1'];

export function coreHandover(places: Places, settings: Settings): CoreHandover {
  const { listen, ports, coreDatabase } = places;
  const { SERVER_ADDRESS: address = 'localhost', CORE_DB_PASSWORD: password } = settings;
  const built = databaseUrl(CORE_OWNER, password?.reveal() ?? '', coreDatabase, CORE_DATABASE);
  return {
    databaseUrl: settings.CORE_DATABASE_OWNER_URL?.reveal() ?? built,
    directory: settings.CORE_DATA_DIR ?? MOUNTS.core,
    addresses: [listen],
    apiPort: ports.core,
    enrollmentPort: ports.enrollment,
    streamingPort: ports.streaming,
    serverNames: [...new Set([address, ...CORE_NAMES, ...(settings.PUBLIC_ADDRESSES ?? [])])],
    serverAddress: address,
    ldap: {
      url: settings.LDAP_URL ?? '',
      bases: basesOf(settings.LDAP_BASE_DN, settings.LDAP_WEB_BASE_DN),
      bindPassword: settings.LDAP_BIND_PASSWORD?.reveal(),
    },
    roleGroups: [settings.ADMIN_GROUP, settings.VIEWER_GROUP],
    trustedProxies: settings.TRUSTED_PROXIES ?? [],
  };
}

export function identityHandover({ listen, ports, appDatabase }: Places, settings: Settings): IdentityHandover {
  const password = settings.IDENTITY_DB_PASSWORD?.reveal() ?? '';
  return {
    databaseUrl: databaseUrl(IDENTITY_OWNER, password, appDatabase, IDENTITY_DATABASE),
    secretKey: settings.IDENTITY_SECRET_KEY?.reveal() ?? '',
    apiToken: settings.IDENTITY_TOKEN?.reveal() ?? '',
    address: listen,
    httpPort: ports.identity,
    ldapPort: ports.ldap,
    searchPassword: settings.LDAP_BIND_PASSWORD?.reveal(),
    bases: basesOf(settings.LDAP_BASE_DN, settings.LDAP_WEB_BASE_DN),
  };
}

/** `place`: host:port. */
export function databaseUrl(user: string, password: string, place: string, database: string): string {
  return `postgres://${user}:${encodeURIComponent(password)}@${place}/${database}`;
}
