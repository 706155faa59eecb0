// Production as setup.sh writes it from an archive, against the specification: every service with
// its networks, ports, caps and rights, every network, every volume. Both ways: nothing is missing,
// and nothing is there besides.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ComposeConfig, composeObstacle, OUR_IMAGE, type Service } from '../../packages/setup/test/compose.ts';
import { madeUpRelease } from '../../packages/setup/test/release-archive.ts';
import { ReleaseWorld } from '../../packages/setup/test/release-world.ts';

const RELEASE = '5.7-RELEASE-8';
const [MIB, GIB] = [1024 ** 2, 1024 ** 3];

interface Wanted {
  /** With its version if it is ours. */
  image: string;
  networks: string[];
  /** Bytes that it may hold. */
  memory: number;
  /** `published:target`, on every IPv4 address. */
  ports?: string[];
  /** Volumes that it writes, and `ro:` those that it reads. */
  volumes?: string[];
  /** Ends when its work is done. */
  once?: true;
  /** Who is waited for: `ran` to the end with success, `healthy`, `started`. */
  after?: Record<string, 'ran' | 'healthy' | 'started'>;
  user?: string;
  /** The only capability. */
  capability?: string;
  writableRoot?: true;
}

const OF_CORE = `localhost/holdfast-core:${RELEASE}`;
const AUTHENTIK = {
  image: 'ghcr.io/goauthentik/server',
  memory: 2 * GIB,
  networks: ['app-data', 'directory'],
};

const SERVICES: Record<string, Wanted> = {
  release: { image: OF_CORE, networks: [], memory: 256 * MIB, once: true, user: '10001:10001', volumes: ['core-data'] },
  configuration: {
    image: OUR_IMAGE,
    networks: [],
    memory: 256 * MIB,
    once: true,
    user: '10001:10001',
    volumes: ['caddy-data', 'core-data'],
    after: { release: 'ran' },
  },
  'core-database': {
    image: `localhost/holdfast-core-database:${RELEASE}`,
    networks: ['core-data', 'flows-data'],
    memory: 2 * GIB,
    user: '10002:10002',
    volumes: ['core-database-data', 'ro:core-data'],
    after: { configuration: 'ran' },
  },
  'app-database': {
    image: OUR_IMAGE,
    networks: ['app-data'],
    memory: GIB,
    user: '10002:10002',
    volumes: ['app-database-data'],
  },
  core: {
    image: OF_CORE,
    networks: ['core-data', 'directory', 'edge', 'flows-core'],
    memory: 4 * GIB,
    user: '10001:10001',
    ports: ['8089:8089'],
    volumes: ['core-data'],
    after: { release: 'ran', configuration: 'ran', 'core-database': 'healthy' },
  },
  'authentik-server': {
    ...AUTHENTIK,
    volumes: ['identity-data'],
    after: { 'app-database': 'healthy' },
    writableRoot: true,
  },
  'authentik-worker': {
    ...AUTHENTIK,
    volumes: ['identity-data'],
    after: { 'app-database': 'healthy' },
    writableRoot: true,
  },
  'authentik-ldap': {
    image: 'ghcr.io/goauthentik/ldap',
    networks: ['directory'],
    memory: 256 * MIB,
    volumes: ['ro:outpost-token'],
    after: { 'authentik-server': 'healthy', 'identity-setup': 'ran' },
  },
  'identity-setup': {
    image: OUR_IMAGE,
    networks: ['directory'],
    memory: 128 * MIB,
    once: true,
    user: '10001:10001',
    volumes: ['outpost-token'],
    after: { 'authentik-server': 'healthy', 'authentik-worker': 'healthy' },
  },
  management: {
    image: OUR_IMAGE,
    networks: ['app-data', 'core-data', 'directory', 'edge', 'video-api'],
    memory: 768 * MIB,
    user: '10001:10001',
    volumes: ['core-data', 'flows-certificate', 'management-data', 'proxy-certificate', 'ro:core-database-data'],
    // It watches the others: what it needs itself is all that it waits for.
    after: { 'app-database': 'healthy', configuration: 'ran' },
  },
  backup: {
    image: OUR_IMAGE,
    networks: ['app-data', 'backup-out', 'core-data'],
    memory: GIB,
    user: '10001:10001',
    volumes: [
      'backup-data',
      'ro:caddy-data',
      'ro:core-data',
      'ro:flows-data',
      'ro:identity-data',
      'ro:management-data',
    ],
    after: { 'app-database': 'healthy', 'core-database': 'healthy' },
  },
  caddy: {
    image: 'caddy',
    networks: ['edge', 'flows-door', 'video'],
    memory: 256 * MIB,
    user: '10001:10001',
    capability: 'NET_BIND_SERVICE',
    ports: ['80:80', '443:443', '8446:8446'],
    volumes: ['caddy-data', 'ro:proxy-certificate'],
    after: { configuration: 'ran', management: 'healthy' },
  },
  flows: {
    image: 'nodered/node-red',
    networks: ['flows-core', 'flows-data', 'flows-door', 'video'],
    memory: 512 * MIB,
    volumes: ['flows-certificate', 'flows-data'],
    after: { management: 'started' },
  },
  video: {
    image: 'bluenviron/mediamtx',
    networks: ['video', 'video-api'],
    memory: 512 * MIB,
    user: '10003:10003',
  },
};

/** `true`: leads nowhere outside. */
const NETWORKS = {
  'app-data': true,
  'backup-out': false,
  'core-data': true,
  directory: true,
  edge: false,
  'flows-core': false,
  'flows-data': true,
  'flows-door': false,
  video: true,
  'video-api': true,
};

const CONDITIONS = {
  service_completed_successfully: 'ran',
  service_healthy: 'healthy',
  service_started: 'started',
} as Record<string, 'ran' | 'healthy' | 'started'>;

const obstacle = composeObstacle();

describe.skipIf(obstacle !== undefined)(
  obstacle === undefined ? 'production' : `production: not asked, because ${obstacle}`,
  () => {
    let archives: string;
    let world: ReleaseWorld;
    let config: ComposeConfig;

    beforeAll(() => {
      archives = mkdtempSync(join(tmpdir(), 'holdfast-archives-'));
      world = new ReleaseWorld();
      const { status, stderr } = world.run(madeUpRelease({ version: RELEASE, directory: archives }), '--address', 'cot.example.org'); // prettier-ignore
      if (status !== 0) throw new Error(stderr);
      config = world.config(['base']);
    });
    afterAll(() => {
      world.remove();
      rmSync(archives, { recursive: true });
    });

    it('has these services and no others', () => {
      expect(Object.keys(config.services).toSorted()).toEqual(Object.keys(SERVICES).toSorted());
    });

    it.each(Object.keys(SERVICES))('%s is what the specification says', (name) => {
      expect(shown(config.services[name])).toEqual(wanted(SERVICES[name]));
    });

    it('has these networks and no others, and those that nobody outside needs lead nowhere', () => {
      const found = Object.entries(config.networks).map(([name, { internal }]) => [name, internal === true]);
      expect(Object.fromEntries(found)).toEqual(NETWORKS);
    });

    it('has these volumes and no others', () => {
      const named = Object.values(SERVICES).flatMap(({ volumes = [] }) =>
        volumes.map((each) => each.replace('ro:', '')),
      );
      expect(Object.keys(config.volumes).toSorted()).toEqual([...new Set(named)].toSorted());
    });

    it('is the same with the layer of direct mode, which the .env of older installations names', () => {
      const direct = world.config(['base', 'direct']);
      for (const [name, service] of Object.entries(SERVICES))
        expect([name, shown(direct.services[name])]).toEqual([name, wanted(service)]);
    });

    it('leaves no nameless volume where the image of a release declares one', () => {
      expect(config.services['core-database']?.tmpfs?.map((each) => each.split(':')[0])).toEqual([
        '/tmp',
        '/var/lib/postgresql/data',
      ]);
    });

    it('takes the caps of the core and its database from the settings', () => {
      const before = world.readEnv();
      world.writeEnv(`${before}\nCORE_MEMORY=6g\nCORE_DATABASE_MEMORY=3g\n`);
      try {
        const { services } = world.config(['base']);
        const caps = ['core', 'core-database'].map((name) => Number(services[name]?.mem_limit));
        expect(caps).toEqual([6 * GIB, 3 * GIB]);
      } finally {
        world.writeEnv(before);
      }
    });
  },
);

/** In words that can be compared; everything is said, so that nothing can be there besides. */
function wanted(service: Wanted | undefined) {
  if (service === undefined) return undefined;
  const {
    image,
    networks,
    memory,
    ports = [],
    volumes = [],
    once,
    after = {},
    user,
    capability,
    writableRoot,
  } = service;
  return {
    image,
    networks: networks.toSorted(),
    memory,
    ports: ports.map((each) => `0.0.0.0:${each}/tcp`).toSorted(),
    volumes: volumes.toSorted(),
    restart: once === true ? 'no' : 'unless-stopped',
    after,
    user,
    capabilities: capability === undefined ? [] : [capability],
    dropped: ['ALL'],
    rights: ['no-new-privileges:true'],
    readOnly: writableRoot !== true,
  };
}

function shown(service: Service | undefined) {
  if (service === undefined) return undefined;
  const needed = Object.entries(service.depends_on ?? {});
  return {
    // The files alone name the versions of the images of others.
    image: service.image.startsWith('localhost/') ? service.image : service.image.replace(/:[^/]+$/, ''),
    networks: Object.keys(service.networks ?? {}).toSorted(),
    memory: Number(service.mem_limit),
    ports: (service.ports ?? [])
      .map((port) => `${port.host_ip}:${port.published}:${String(port.target)}/${port.protocol}`)
      .toSorted(),
    volumes: (service.volumes ?? [])
      .filter(({ type }) => type === 'volume')
      .map((mount) => `${mount.read_only === true ? 'ro:' : ''}${mount.source}`)
      .toSorted(),
    restart: service.restart,
    after: Object.fromEntries(needed.map(([name, { condition }]) => [name, CONDITIONS[condition]])),
    user: service.user,
    capabilities: service.cap_add ?? [],
    dropped: service.cap_drop,
    rights: service.security_opt,
    readOnly: service.read_only === true,
  };
}
