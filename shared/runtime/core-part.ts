// The core server, where the settings place it; without a place each part says so when it is asked. Node only: workerd asks
// its host.

import { join } from 'node:path';
import { adminGrantSpool } from '../adapters/admin-grants.ts';
import { clientKeyFiles } from '../adapters/client-keys.ts';
import { coreAuthorityFiles } from '../adapters/core-authority.ts';
import { coreDevices } from '../adapters/core-devices.ts';
import { httpEnrollment } from '../adapters/core-enrollment.ts';
import { httpCore } from '../adapters/core-http.ts';
import { pkcs12Bundles } from '../adapters/pkcs12-bundles.ts';
import { retentionFiles } from '../adapters/retention-files.ts';
import type { Settings } from '../config/settings.ts';
import { AppError } from '../domain/app-error.ts';
import type { AdminGrants } from '../ports/admin-grants.ts';
import type { Bundles } from '../ports/bundles.ts';
import type { ClientKeys } from '../ports/client-keys.ts';
import type { Core } from '../ports/core.ts';
import type { CoreAuthority } from '../ports/core-authority.ts';
import type { CoreDevices } from '../ports/core-devices.ts';
import type { CoreEnrollment } from '../ports/core-enrollment.ts';
import type { CoreNotices } from '../ports/core-notices.ts';
import type { CoreRetention } from '../ports/core-retention.ts';
import type { RetentionFiles } from '../ports/retention-files.ts';
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
  if (url !== undefined && dataDir !== undefined) return httpEnrollment({ url, dataDir });
  return unplaced(url === undefined ? 'CORE_ENROLLMENT_URL' : 'CORE_DATA_DIR', EXPOSED.coreEnrollment);
}

function unplaced<T extends object>(variable: string, methods: readonly (keyof T)[]): T {
  const refuse = (): Promise<never> =>
    Promise.reject(new AppError('unavailable', `The core cannot be asked for this. Remedy: set ${variable}.`));
  return Object.fromEntries(methods.map((method) => [method, refuse])) as T;
}
