// The core server, where the settings place it; without a place each part says so when it is asked. Node only: workerd asks
// its host.

import { join } from 'node:path';
import { AppError } from '@holdfast/kit/app-error';
import type { Directory } from '@holdfast/kit/directory';
import { basesOf, LDAP_SERVICE_ACCOUNT } from '@holdfast/kit/distinguished-name';
import type { Log } from '@holdfast/kit/log';
import { coreDevices } from '../core/devices/devices.ts';
import { HttpEnrollment } from '../core/devices/enrollment.ts';
import type { ClientKeys, CoreDevices, CoreEnrollment } from '../core/devices/port.ts';
import { coreAuthorityFiles } from '../core/files.ts';
import { httpCore } from '../core/http.ts';
import type { Core, CoreAuthority, CoreNotices, CoreRetention } from '../core/port.ts';
import { pkcs12Bundles } from '../devices/certificates/bundles.ts';
import { clientKeyFiles } from '../devices/certificates/client-keys.ts';
import type { AdminGrants, Bundles } from '../devices/port.ts';
import { adminGrantSpool } from '../people/service-accounts/admin-grants.ts';
import { retentionFiles } from '../retention/files.ts';
import type { RetentionFiles } from '../retention/port.ts';
import type { Settings } from '../settings/table.ts';
import { LdapDirectory } from '../sign-in/ldap/directory.ts';
import { EXPOSED } from './host-calls.ts';

export interface CoreParts {
  core: Core;
  coreEnrollment: CoreEnrollment;
  coreDevices: CoreDevices;
  coreAuthority: CoreAuthority;
  adminGrants: AdminGrants;
  clientKeys: ClientKeys;
  bundles: Bundles;
  coreRetention: CoreRetention;
  coreNotices: CoreNotices;
  retentionFiles: RetentionFiles;
}

export function corePartsOf(settings: Settings): CoreParts {
  const files = filesOf(settings);
  return {
    ...coreOf(settings),
    coreEnrollment: enrollmentOf(settings),
    coreDevices: devicesOf(settings, files.clientKeys),
    ...files,
    bundles: pkcs12Bundles,
  };
}

type Files = Pick<CoreParts, 'coreAuthority' | 'adminGrants' | 'clientKeys' | 'retentionFiles'>;

function filesOf({ CORE_DATA_DIR: data }: Settings): Files {
  if (data === undefined)
    return {
      coreAuthority: unplaced('CORE_DATA_DIR', ['certificate', 'revocationList']),
      adminGrants: unplaced('CORE_DATA_DIR', ['give', 'take']),
      clientKeys: unplaced('CORE_DATA_DIR', ['keep', 'read', 'kept', 'remove']),
      retentionFiles: unplaced('CORE_DATA_DIR', ['read', 'sync', 'log']),
    };
  return {
    coreAuthority: coreAuthorityFiles(data),
    adminGrants: adminGrantSpool(join(data, 'admin-grants')),
    clientKeys: clientKeyFiles(join(data, 'certs/holdfast')),
    retentionFiles: retentionFiles(data),
  };
}

function devicesOf(
  { CORE_API_URL: apiUrl, CORE_STREAMING_URL: streamingUrl, CORE_DATA_DIR: data }: Settings,
  clientKeys: ClientKeys,
): CoreDevices {
  if (data === undefined) return unplaced('CORE_DATA_DIR', EXPOSED.coreDevices);
  return coreDevices({ apiUrl, streamingUrl, caFile: join(data, 'certs/files/ca.pem'), clientKeys });
}

function coreOf({
  CORE_API_URL: url,
  CORE_DATA_DIR: dataDir,
}: Settings): Pick<CoreParts, 'core' | 'coreRetention' | 'coreNotices'> {
  if (url !== undefined && dataDir !== undefined) {
    const core = httpCore({ url, dataDir });
    return { core, coreRetention: core.retention, coreNotices: core.notices };
  }
  const variable = url === undefined ? 'CORE_API_URL' : 'CORE_DATA_DIR';
  return {
    core: unplaced(variable, EXPOSED.core),
    coreRetention: unplaced(variable, EXPOSED.coreRetention),
    coreNotices: unplaced(variable, EXPOSED.coreNotices),
  };
}

function enrollmentOf({ CORE_ENROLLMENT_URL: url, CORE_DATA_DIR: dataDir }: Settings): CoreEnrollment {
  if (url !== undefined && dataDir !== undefined) return new HttpEnrollment({ url, dataDir });
  return unplaced(url === undefined ? 'CORE_ENROLLMENT_URL' : 'CORE_DATA_DIR', EXPOSED.coreEnrollment);
}

function unplaced<T extends object>(variable: string, methods: readonly (keyof T)[]): T {
  const refuse = (): Promise<never> =>
    Promise.reject(new AppError('unavailable', `The core cannot be asked for this. Remedy: set ${variable}.`));
  return Object.fromEntries(methods.map((method) => [method, refuse])) as T;
}

// The directory, where the settings place it; without a place it says so when it is asked. Node only: workerd has no TLS of
// that kind, and asks its host.

export function directoryOf(settings: Settings, ownCaFile: string | undefined, log: Log): Directory {
  const { LDAP_URL: url, LDAP_BIND_PASSWORD: password } = settings;
  if (url === undefined) return unplacedDirectory('LDAP_URL');
  if (password === undefined) return unplacedDirectory('LDAP_BIND_PASSWORD');
  const { core, web } = basesOf(settings.LDAP_BASE_DN, settings.LDAP_WEB_BASE_DN);
  return new LdapDirectory({
    url,
    coreBase: core,
    webBase: web,
    serviceAccount: { username: LDAP_SERVICE_ACCOUNT, password },
    tlsCaFile: ownCaFile,
    log,
  });
}

function unplacedDirectory(variable: string): Directory {
  const text = `The directory cannot be asked. Remedy: set ${variable}.`;
  const refuse = (): Promise<never> => Promise.reject(new AppError('unavailable', text));
  return { signIn: refuse, find: refuse, probe: refuse };
}
