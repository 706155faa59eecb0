// The core server, where the settings place it; without a place each part says so when it is asked.
// Node only: workerd asks its host.

import { join } from 'node:path';
import { basesOf, type Directory, LDAP_SERVICE_ACCOUNT } from '@holdfast/kit/directory';
import type { Log } from '@holdfast/kit/log';
import { HttpCoreContents } from '../core/contents/contents.ts';
import type { CoreContentPorts } from '../core/contents/port.ts';
import { TlsCoreDevices } from '../core/devices/devices.ts';
import { HttpEnrollment } from '../core/devices/enrollment.ts';
import type { ClientKeys, CoreDevicePorts, CoreDevices, CoreEnrollment } from '../core/devices/port.ts';
import { coreAuthorityFiles } from '../core/files.ts';
import { httpCore } from '../core/http.ts';
import { ARCHIVES_DIRECTORY, MissionArchiveFiles } from '../core/missions/archives.ts';
import { HttpCoreMissions } from '../core/missions/missions.ts';
import type { CoreMissionPorts } from '../core/missions/port.ts';
import type { CorePorts } from '../core/port.ts';
import type { CoreTrackPorts } from '../core/tracks/port.ts';
import { HttpCoreTracks } from '../core/tracks/tracks.ts';
import { pkcs12Bundles } from '../devices/certificates/bundles.ts';
import { clientKeyFiles } from '../devices/certificates/client-keys.ts';
import type { DevicePorts } from '../devices/port.ts';
import { FeedFiles } from '../feeds/files.ts';
import type { FeedPorts } from '../feeds/port.ts';
import { adminGrantSpool } from '../people/service-accounts/admin-grants.ts';
import { retentionFiles } from '../retention/files.ts';
import type { RetentionPorts } from '../retention/port.ts';
import type { Settings } from '../settings/table.ts';
import { LdapDirectory } from '../sign-in/ldap/directory.ts';
import { unplaced } from './both-hosts.ts';

type CoreParts = CorePorts &
  CoreMissionPorts &
  CoreTrackPorts &
  Pick<CoreContentPorts, 'coreContents'> &
  CoreDevicePorts &
  Pick<DevicePorts, 'adminGrants' | 'bundles'> &
  Pick<FeedPorts, 'feeds'> &
  Pick<RetentionPorts, 'retentionFiles'>;

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

type Files = Pick<CoreParts, 'coreAuthority' | 'adminGrants' | 'clientKeys' | 'retentionFiles' | 'feeds'>;

function filesOf({ CORE_DATA_DIR: data }: Settings): Files {
  if (data === undefined)
    return {
      coreAuthority: unplacedCore('CORE_DATA_DIR') as CoreParts['coreAuthority'],
      adminGrants: unplacedCore('CORE_DATA_DIR') as CoreParts['adminGrants'],
      clientKeys: unplacedCore('CORE_DATA_DIR') as CoreParts['clientKeys'],
      retentionFiles: unplacedCore('CORE_DATA_DIR') as CoreParts['retentionFiles'],
      feeds: unplacedCore('CORE_DATA_DIR') as CoreParts['feeds'],
    };
  return {
    coreAuthority: coreAuthorityFiles(data),
    adminGrants: adminGrantSpool(join(data, 'admin-grants')),
    clientKeys: clientKeyFiles(join(data, 'certs/holdfast')),
    retentionFiles: retentionFiles(data),
    feeds: new FeedFiles(data),
  };
}

function devicesOf(
  { CORE_API_URL: apiUrl, CORE_STREAMING_URL: streamingUrl, CORE_DATA_DIR: data }: Settings,
  clientKeys: ClientKeys,
): CoreDevices {
  if (data === undefined) return unplacedCore('CORE_DATA_DIR') as CoreDevices;
  return new TlsCoreDevices({ apiUrl, streamingUrl, caFile: join(data, 'certs/files/ca.pem'), clientKeys });
}

type OfApi = Pick<
  CoreParts,
  'core' | 'coreContents' | 'coreRetention' | 'coreNotices' | keyof (CoreMissionPorts & CoreTrackPorts)
>;

function coreOf({ CORE_API_URL: url, CORE_DATA_DIR: dataDir, DATA_DIR: own }: Settings): OfApi {
  if (url !== undefined && dataDir !== undefined) {
    const core = httpCore({ url, dataDir });
    const { port } = core;
    const missions = new HttpCoreMissions(port);
    return {
      core,
      coreContents: new HttpCoreContents(port),
      coreRetention: core.retention,
      coreNotices: core.notices,
      coreMissions: missions,
      coreTracks: new HttpCoreTracks(port, core),
      missionArchives:
        own === undefined
          ? (unplaced('Missions can’t be archived', 'DATA_DIR') as CoreParts['missionArchives'])
          : new MissionArchiveFiles({
              directory: join(own, ARCHIVES_DIRECTORY),
              missions,
              port,
              now: () => new Date(),
            }),
    };
  }
  const variable = url === undefined ? 'CORE_API_URL' : 'CORE_DATA_DIR';
  return {
    core: unplacedCore(variable) as CoreParts['core'],
    coreContents: unplacedCore(variable) as CoreParts['coreContents'],
    coreRetention: unplacedCore(variable) as CoreParts['coreRetention'],
    coreNotices: unplacedCore(variable) as CoreParts['coreNotices'],
    coreMissions: unplacedCore(variable) as CoreParts['coreMissions'],
    coreTracks: unplacedCore(variable) as CoreParts['coreTracks'],
    missionArchives: unplacedCore(variable) as CoreParts['missionArchives'],
  };
}

function enrollmentOf({ CORE_ENROLLMENT_URL: url, CORE_DATA_DIR: dataDir }: Settings): CoreEnrollment {
  if (url !== undefined && dataDir !== undefined) return new HttpEnrollment({ url, dataDir });
  return unplacedCore(url === undefined ? 'CORE_ENROLLMENT_URL' : 'CORE_DATA_DIR') as CoreEnrollment;
}

function unplacedCore(variable: string): object {
  return unplaced('The core cannot be called for this', variable);
}

/** The directory, where the settings place it. */
export function directoryOf(settings: Settings, ownCaFile: string | undefined, log: Log): Directory {
  const { LDAP_URL: url, LDAP_BIND_PASSWORD: password } = settings;
  if (url === undefined || password === undefined)
    return unplaced(
      'The directory cannot be called',
      url === undefined ? 'LDAP_URL' : 'LDAP_BIND_PASSWORD',
    ) as Directory;
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
