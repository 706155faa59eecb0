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
import type { Settings } from '../config/settings.ts';
import { AppError } from '../domain/app-error.ts';
import type { AdminGrants } from '../ports/admin-grants.ts';
import type { Bundles } from '../ports/bundles.ts';
import type { ClientKeys } from '../ports/client-keys.ts';
import type { Core } from '../ports/core.ts';
import type { CoreAuthority } from '../ports/core-authority.ts';
import type { CoreDevices } from '../ports/core-devices.ts';
import type { CoreEnrollment } from '../ports/core-enrollment.ts';
import { EXPOSED } from './host-calls.ts';

export interface CoreParts {
  core: Core;
  coreEnrollment: CoreEnrollment;
  coreDevices: CoreDevices;
  coreAuthority: CoreAuthority;
  adminGrants: AdminGrants;
  clientKeys: ClientKeys;
  bundles: Bundles;
}

export function corePartsOf(settings: Settings): CoreParts {
  const files = filesOf(settings);
  return {
    core: coreOf(settings),
    coreEnrollment: enrollmentOf(settings),
    coreDevices: devicesOf(settings, files.clientKeys),
    ...files,
    bundles: pkcs12Bundles,
  };
}

function filesOf({ CORE_DATA_DIR: data }: Settings): Pick<CoreParts, 'coreAuthority' | 'adminGrants' | 'clientKeys'> {
  if (data === undefined)
    return {
      coreAuthority: unplaced('CORE_DATA_DIR', ['certificate', 'revocationList']),
      adminGrants: unplaced('CORE_DATA_DIR', ['give', 'take']),
      clientKeys: unplaced('CORE_DATA_DIR', ['keep', 'read', 'kept', 'remove']),
    };
  return {
    coreAuthority: coreAuthorityFiles(data),
    adminGrants: adminGrantSpool(join(data, 'admin-grants')),
    clientKeys: clientKeyFiles(join(data, 'certs/holdfast')),
  };
}

function devicesOf(
  { CORE_API_URL: apiUrl, CORE_STREAMING_URL: streamingUrl, CORE_DATA_DIR: data }: Settings,
  clientKeys: ClientKeys,
): CoreDevices {
  if (data === undefined) return unplaced('CORE_DATA_DIR', EXPOSED.coreDevices);
  return coreDevices({ apiUrl, streamingUrl, caFile: join(data, 'certs/files/ca.pem'), clientKeys });
}

function coreOf({ CORE_API_URL: url, CORE_DATA_DIR: dataDir }: Settings): Core {
  if (url !== undefined && dataDir !== undefined) return httpCore({ url, dataDir });
  return unplaced(url === undefined ? 'CORE_API_URL' : 'CORE_DATA_DIR', EXPOSED.core);
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
