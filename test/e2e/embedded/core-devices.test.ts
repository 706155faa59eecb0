// Certificates tried at a real core, with its own CA and revocation.

import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { TlsCoreDevices } from '../../../shared/core/devices/devices.ts';
import { coreDevicesContract } from '../../core/core-devices-contract.ts';
import { coreInProcess } from './core-in-process.ts';
import { emptyDatabase } from './empty-database.ts';

const database = emptyDatabase();

coreDevicesContract('a real core', async () => {
  const work = mkdtempSync(join(database.data(), 'work-'));
  const world = await coreInProcess(database.url(), work, () => ['core_All']);
  const { core, place, clientKeys } = world;
  return {
    devices: new TlsCoreDevices({
      apiUrl: place.api,
      streamingUrl: place.streaming,
      caFile: join(place.directory, 'certs/files/ca.pem'),
      clientKeys,
    }),
    enrolled: (username) => world.enrolled(username),
    revoke: (hash) => world.revoke(hash),
    kill: () => core.close(100),
  };
});
