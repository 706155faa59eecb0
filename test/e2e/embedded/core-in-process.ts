// A core in the test's own process, with a database of its own: people are let in by any password.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Core, CORE_DATABASE_MIGRATED, CORE_MIGRATIONS, createCore } from '@holdfast/core';
import { keptDatabase } from '@holdfast/kit/kept-database';
import { migrate } from '@holdfast/kit/migrate';
import { withDatabase } from '@holdfast/kit/postgres';
import { Secret } from '@holdfast/kit/secret';
import type { ClientKeys, KeptKey } from '../../../shared/core/devices/port.ts';
import { apiDevice, asDevice, type CorePlace, enroll } from './core-client.ts';
import { freeOffset } from './embedded.ts';

export interface CoreInProcess {
  place: CorePlace;
  core: Core;
  /** Enrolls, keeps the key and resolves with the hash. */
  enrolled(username: string): Promise<string>;
  revoke(hash: string): Promise<void>;
  clientKeys: Pick<ClientKeys, 'read' | 'kept'>;
}

/** `groupsOf` says which groups of the directory somebody is in. */
export async function coreInProcess(
  databaseUrl: string,
  work: string,
  groupsOf: (username: string) => string[],
): Promise<CoreInProcess> {
  const url = new Secret(databaseUrl);
  await withDatabase(url, 'test', 20_000, (sql) => migrate(sql, CORE_MIGRATIONS, CORE_DATABASE_MIGRATED));
  const directory = join(work, 'own-core');
  const offset = await freeOffset();
  const ports = { api: 8443 + offset, enrollment: 8446 + offset, streaming: 8089 + offset };
  const run = keptDatabase(url, { name: 'test', called: 'the database', variable: 'its URL' });
  const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const entry = async (username: string) => ({
    dn: `cn=${username},ou=users,dc=core`,
    username,
    isActive: true,
    groups: groupsOf(username),
  });
  const core = await createCore({
    dataDirectory: directory,
    addresses: ['127.0.0.1'],
    ports,
    serverNames: ['127.0.0.1'],
    hostname: '127.0.0.1',
    roleGroups: [],
    validityDays: 365,
    run,
    runLong: run,
    runEvents: run,
    runArchive: run,
    runRetention: run,
    schedules: { next: () => [] },
    timeZone: 'UTC',
    directory: { signIn: (_, username) => entry(username), find: entry, groups: async () => [] },
    directoryPlace: { url: 'ldap://127.0.0.1', base: 'dc=core' },
    behindProxies: (fetch) => fetch,
    log: quiet,
    now: () => new Date(),
    steadyMs: () => performance.now(),
  });
  await core.listen();

  const place: CorePlace = {
    api: `https://127.0.0.1:${ports.api}`,
    enrollment: `https://127.0.0.1:${ports.enrollment}`,
    streaming: `tls://127.0.0.1:${ports.streaming}`,
    directory,
  };
  const keys = new Map<string, KeptKey>();
  let devices = 0;
  return {
    place,
    core,
    async enrolled(username) {
      devices += 1;
      const device = await enroll(place, work, username, 'any', `${username}-${devices}`);
      keys.set(device.hash, {
        keyPem: readFileSync(device.keyFile, 'utf8'),
        certificatePem: readFileSync(device.certificateFile, 'utf8'),
        chainPem: [readFileSync(join(directory, 'certs/files/ca.pem'), 'utf8')],
      });
      return device.hash;
    },
    async revoke(hash) {
      const path = `/Marti/api/certadmin/cert/${encodeURIComponent(hash)}`;
      const { status, body } = await asDevice(place, await apiDevice(place, work), path, ['-X', 'DELETE']);
      if (status !== 200) throw new Error(`revoking: ${status} ${body}`);
    },
    clientKeys: {
      read: async (hash) => keys.get(hash),
      kept: async (hashes) => hashes.filter((hash) => keys.has(hash)),
    },
  };
}
