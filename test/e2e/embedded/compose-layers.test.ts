// Every sensible combination of the compose layers, as Docker Compose itself puts them together.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ComposeConfig,
  composeObstacle,
  ComposeRoot,
  type Service,
} from '../../../packages/setup/test/compose.ts';
import { SETTINGS } from '../../../shared/settings/table.ts';

const obstacle = composeObstacle();

const BASES = [['base'], ['base', 'light']];
/** Layers that stand alone over a base; test stands last. */
const OVER = [[], ['dev'], ['runtime'], ['local.example'], ['test'], ['dev', 'runtime'], ['dev', 'runtime', 'test']];
const SUBDOMAIN_ONLY = [['stream'], ['cloudtak', 'stream'], ['dev', 'runtime', 'stream', 'test']];

/** Of our own core alone. */
const OVER_CLUSTER = [[], ['dev'], ['runtime', 'stream'], ['test', 'cluster.test']];

const SINGLE = BASES.flatMap((base) => [
  ...[...OVER, ...SUBDOMAIN_ONLY].map((over) => [...base, ...over]),
  ...OVER.filter((over) => !over.includes('local.example')).map((over) => [...base, 'direct', ...over]),
  // A person may have put the layers in another order.
  [...base, 'runtime', 'dev', 'direct'],
]);
const COMBINATIONS = [...SINGLE, ...OVER_CLUSTER.map((over) => ['base', 'light', 'cluster', ...over])];

const nodesOf = (layers: readonly string[]): string[] =>
  layers.includes('cluster') ? ['core', 'core-2', 'core-3'] : ['core'];
const managements = (layers: readonly string[]): string[] =>
  layers.includes('cluster') ? ['management', 'management-2'] : ['management'];

/**
 * What the layers say whatever .env says: Caddy's address, and where things are inside the
 * container.
 */
const INSIDE = ['TRUSTED_PROXIES', 'CORE_DATA_DIR', 'LISTEN_ADDRESS', 'API_PORT', 'PORTAL_PORT', 'DATA_DIR', 'LOG_DIR'];
/** Of other programs; the one that the web reaches has none of them. */
const SECRETS_OF_OTHERS = /^(?:FLOWS_|VIDEO_|IDENTITY_(?!TOKEN|URL)|NATS_PASSWORD)/;

/** They do their work and end; what depends on them waits for that. */
const ONE_SHOT = ['configuration', 'identity-setup', 'release'];
const OURS = /^localhost\/holdfast:/;
/**
 * What dockerd gives networks without a subnet of their own, unless its configuration says
 * otherwise.
 */
/** Management shows them, and a backup holds them. */
const WITH_ALL_SETTINGS = ['management', 'management-2', 'backup'];
const ENGINE_GIVES_OUT = /^(?:172\.(?:1[7-9]|2\d|3[01])|192\.168)\./;

let root: ComposeRoot;
const configs = new Map<string, ComposeConfig>();

function configOf(layers: readonly string[]): ComposeConfig {
  const key = layers.join(' + ');
  const config = configs.get(key) ?? root.config(layers);
  configs.set(key, config);
  return config;
}

const services = (config: ComposeConfig): [string, Service][] => Object.entries(config.services);
const networksOf = (service: Service): string[] => Object.keys(service.networks ?? {});
const portsOf = (config: ComposeConfig): string[] =>
  services(config)
    .flatMap(([name, { ports = [] }]) =>
      ports.map((port) => `${port.host_ip}:${port.published} ${name}:${port.target}/${port.protocol}`),
    )
    .toSorted();

/** What the host binds with these layers, by the specification's table. */
function portsWanted(layers: readonly string[]): string[] {
  const isTest = layers.includes('test');
  const published = (port: number): number => (isTest ? port + 10_000 : port);
  const enrollmentAddress = layers.includes('local.example') ? '192.0.2.10' : '0.0.0.0';
  return [
    `0.0.0.0:${published(80)} caddy:80/tcp`,
    `0.0.0.0:${published(443)} caddy:443/tcp`,
    `${enrollmentAddress}:${published(8446)} caddy:8446/tcp`,
    `0.0.0.0:${published(8089)} ${layers.includes('cluster') ? 'streaming' : 'core'}:8089/tcp`,
    ...(layers.includes('dev') || isTest
      ? [
          `127.0.0.1:${published(3000)} management:3000/tcp`,
          `127.0.0.1:${published(8180)} management:8080/tcp`,
          `127.0.0.1:${published(1880)} flows:1880/tcp`,
          `0.0.0.0:${published(8443)} core:8443/tcp`,
        ]
      : []),
  ].toSorted();
}

describe.skipIf(obstacle !== undefined)(
  obstacle === undefined ? 'layers' : `layers: not asked, because ${obstacle}`,
  () => {
    beforeAll(() => {
      root = new ComposeRoot();
      const made = root.setUp(['--light', '--cluster', '--address', 'cot.example.org']);
      if (made.status !== 0) throw new Error(made.stderr);
    });
    afterAll(() => root.remove());

    describe.each(COMBINATIONS.map((layers) => ({ title: layers.join(' + '), layers })))('$title', ({ layers }) => {
      it('binds exactly the ports of the table on the host', () => {
        expect(portsOf(configOf(layers))).toEqual(portsWanted(layers));
      });

      it('keeps the flow engine, the databases and the outside apart', () => {
        const config = configOf(layers);
        const neighbours = (name: string): string[] => {
          const own = networksOf(config.services[name] as Service);
          return services(config)
            .filter(([other, service]) => other !== name && networksOf(service).some((each) => own.includes(each)))
            .map(([other]) => other)
            .toSorted();
        };
        expect(neighbours('flows')).toEqual(['caddy', 'core', 'core-database', 'video']);
        expect(neighbours('video')).toEqual(['caddy', 'flows', ...managements(layers)]);
        const provider = layers.includes('light') ? ['identity'] : ['authentik-server', 'authentik-worker'];
        const nodes = nodesOf(layers);
        expect(neighbours('core-database')).toEqual(['backup', ...nodes, 'flows', ...managements(layers)]);
        if (nodes.length > 1) expect(neighbours('nats')).toEqual(nodes);
        const authenticator = ['core-database', 'flows'].map((name) => networksOf(config.services[name] as Service));
        expect(authenticator[0]?.filter((each) => authenticator[1]?.includes(each))).toEqual(['flows-data']);
        expect(neighbours('app-database')).toEqual([...provider, 'backup', ...managements(layers)].toSorted());
        for (const name of ['core-database', 'app-database', 'video', ...provider])
          expect(
            networksOf(config.services[name] as Service).filter((each) => config.networks[each]?.internal !== true),
          ).toEqual([]);
      });

      it('gives Caddy an address that nobody else can get, and believes exactly that one', () => {
        const config = configOf(layers);
        const address = config.services['caddy']?.networks?.['edge']?.ipv4_address;
        expect(address).toBe(layers.includes('test') ? '172.16.65.2' : '172.16.64.2');
        const [subnet] = config.networks['edge']?.ipam?.config ?? [];
        expect(subnet?.subnet).toBe(address?.replace(/\.2$/, '.0/24'));
        expect(subnet?.ip_range).toBe(address?.replace(/\.2$/, '.128/25'));
        // Else a host with a dozen networks of other projects has one there already, and `up`
        // fails.
        expect(subnet?.subnet).not.toMatch(ENGINE_GIVES_OUT);
        const trusts = (name: string): string | null | undefined =>
          config.services[name]?.environment?.['TRUSTED_PROXIES'];
        for (const name of managements(layers)) expect(trusts(name)).toBe(address);
        if (!layers.includes('light')) return;
        const balancer = config.services['streaming']?.networks?.['edge']?.ipv4_address;
        const proxies = [address, ...(balancer === undefined ? [] : [balancer])].join(',');
        expect(nodesOf(layers).map(trusts)).toEqual(nodesOf(layers).map(() => proxies));
        if (layers.includes('cluster')) expect(balancer).toBe(address?.replace(/\.2$/, '.3'));
      });

      it("tells the core's database by which network the flow engine comes", () => {
        const config = configOf(layers);
        const [subnet] = config.networks['flows-data']?.ipam?.config ?? [];
        expect(subnet?.subnet).toBe(layers.includes('test') ? '172.16.67.0/24' : '172.16.66.0/24');
        expect(subnet?.subnet).not.toMatch(ENGINE_GIVES_OUT);
        const { environment = {}, depends_on: needed = {} } = config.services['core-database'] ?? {};
        expect(environment['HOLDFAST_FLOWS_NETWORK']).toBe(subnet?.subnet);
        const light = layers.includes('light');
        expect([environment['HOLDFAST_DATABASE_KIND'], Object.keys(needed)]).toEqual(
          light ? [undefined, []] : ['release', ['configuration']],
        );
      });

      it('gives every service a memory cap, log rotation, a restart policy and no way to more rights', () => {
        for (const [name, service] of services(configOf(layers))) {
          const held = {
            mem_limit: Number(service.mem_limit) > 0,
            pids_limit: (service.pids_limit ?? 0) > 0,
            logging: service.logging,
            restart: service.restart,
            security_opt: service.security_opt,
            cap_drop: service.cap_drop,
            privileged: service.privileged === true,
            host: service.network_mode === 'host' || service.pid === 'host',
            profiles: service.profiles,
          };
          expect({ name, ...held }).toEqual({
            name,
            mem_limit: true,
            pids_limit: true,
            logging: { driver: 'json-file', options: { 'max-size': '10m', 'max-file': '5' } },
            restart: ONE_SHOT.includes(name) ? 'no' : 'unless-stopped',
            security_opt: ['no-new-privileges:true'],
            cap_drop: ['ALL'],
            privileged: false,
            host: false,
            profiles: undefined,
          });
        }
        const cap = configOf(layers).services['core']?.mem_limit;
        expect(cap).toBe(String((layers.includes('local.example') ? 6 : 4) * 1024 ** 3));
      });

      it('adds one capability for ours: Caddy may bind 80 and 443', () => {
        const added = services(configOf(layers)).filter(([, { cap_add: add = [] }]) => add.length > 0);
        expect(added.map(([name, { cap_add: add }]) => [name, add])).toEqual([
          ['caddy', ['NET_BIND_SERVICE']],
          ...(layers.includes('cloudtak') ? [['cloudtak', ['CHOWN', 'SETGID', 'SETUID']]] : []),
        ]);
      });

      it('runs our programs as ordinary users on a read-only root, and root where the container socket is alone', () => {
        const ours = services(configOf(layers)).filter(([, { image }]) => OURS.test(image));
        const users = Object.fromEntries(ours.map(([name, { user }]) => [name, user]));
        const light = layers.includes('light');
        expect(users).toEqual({
          configuration: '10001:10001',
          ...Object.fromEntries(managements(layers).map((name) => [name, '10001:10001'])),
          backup: '10001:10001',
          'app-database': '10002:10002',
          ...(light
            ? {
                ...Object.fromEntries(nodesOf(layers).map((name) => [name, '10001:10001'])),
                identity: '10001:10001',
                'core-database': '10002:10002',
              }
            : { 'identity-setup': '10001:10001' }),
          ...(layers.includes('runtime') ? { 'container-proxy': '0:0' } : {}),
        });
        expect(ours.filter(([, service]) => service.read_only !== true)).toEqual([]);
        expect(ours.filter(([, service]) => service.command?.length !== 1)).toEqual([]);
      });

      it('shows the container socket to the proxy of compose.runtime.yaml alone, and the proxy to management alone', () => {
        const config = configOf(layers);
        const holders = services(config).filter(([, { volumes = [] }]) =>
          volumes.some(({ source }) => source.includes('docker.sock')),
        );
        const runtime = layers.includes('runtime');
        expect(holders.map(([name]) => name)).toEqual(runtime ? ['container-proxy'] : []);
        expect(holders.flatMap(([, service]) => service.volumes?.map((each) => each.read_only))).toEqual(
          runtime ? [true] : [],
        );
        expect(config.services['management']?.environment?.['CONTAINER_RUNTIME_URL']).toBe(
          runtime ? 'http://container-proxy:2375' : undefined,
        );
        if (!runtime) return;
        expect(networksOf(config.services['container-proxy'] as Service)).toEqual(['runtime']);
        expect(config.networks['runtime']?.internal).toBe(true);
        const inIt = services(config).filter(([, service]) => networksOf(service).includes('runtime'));
        expect(inIt.map(([name]) => name).toSorted()).toEqual(['container-proxy', ...managements(layers)]);
      });

      it('writes nothing into the files of the repository: what is mounted from it is read-only and must be there', () => {
        const binds = services(configOf(layers)).flatMap(([, { volumes = [] }]) =>
          volumes.filter(({ type }) => type === 'bind'),
        );
        expect(binds.length).toBeGreaterThan(0);
        expect(binds.filter((mount) => mount.read_only !== true || mount.bind?.create_host_path === true)).toEqual([]);
      });

      it('starts what is needed first, and waits until it is healthy where it can tell', () => {
        const config = configOf(layers);
        for (const [name, { depends_on: needed = {} }] of services(config)) {
          for (const [other, { condition }] of Object.entries(needed)) {
            const service = config.services[other];
            const tells = service?.healthcheck?.test !== undefined;
            const right = ONE_SHOT.includes(other)
              ? 'service_completed_successfully'
              : // Flows go on without management: its certificate comes when it comes.
                tells && name !== 'flows'
                ? 'service_healthy'
                : 'service_started';
            expect([name, other, condition]).toEqual([name, other, right]);
          }
        }
        expect(config.services['core']?.depends_on?.['configuration']?.restart).toBe(true);
        const core = Object.keys(config.services['core']?.depends_on ?? {}).toSorted();
        // The directory is waited for in the container of a release.
        const needed = layers.includes('light') ? 'identity' : 'release';
        expect(core).toEqual(['configuration', 'core-database', needed]);
        if (layers.includes('light')) return;
        // It watches the others, and says so when they never come up.
        const management = Object.keys(config.services['management']?.depends_on ?? {});
        expect(management.filter((name) => name !== 'container-proxy').toSorted()).toEqual([
          'app-database',
          'configuration',
        ]);
      });

      it('gives secrets of authentik to those who need them, and the outpost none but its own key', () => {
        if (layers.includes('light')) return;
        const config = configOf(layers);
        const holders = (variable: string): string[] =>
          services(config)
            .filter(([name, { environment = {} }]) => !WITH_ALL_SETTINGS.includes(name) && variable in environment)
            .map(([name]) => name)
            .toSorted();
        expect(holders('AUTHENTIK_BOOTSTRAP_TOKEN')).toEqual(['authentik-worker']);
        expect(holders('AUTHENTIK_BOOTSTRAP_PASSWORD')).toEqual(['authentik-worker']);
        expect(holders('IDENTITY_BOOTSTRAP_TOKEN')).toEqual(['identity-setup']);
        expect(holders('IDENTITY_TOKEN')).toEqual(['authentik-worker', 'identity-setup']);
        const outpost = config.services['authentik-ldap'];
        expect(outpost?.environment).toEqual({
          AUTHENTIK_HOST: 'http://authentik-server:9000',
          AUTHENTIK_TOKEN: 'file:///run/outpost/token',
          TZ: 'UTC',
        });
        expect(outpost?.depends_on?.['identity-setup']?.restart).toBe(true);
        const withKey = services(config).flatMap(([name, { volumes = [] }]) =>
          volumes.filter(({ source }) => source === 'outpost-token').map((volume) => [name, volume.read_only === true]),
        );
        expect(withKey).toEqual([
          ['authentik-ldap', true],
          ['identity-setup', false],
        ]);
      });

      it('keeps authentik and its outpost from calling anybody outside, and mounts our blueprint in both of its halves', () => {
        if (layers.includes('light')) return;
        const config = configOf(layers);
        for (const name of ['authentik-server', 'authentik-worker', 'identity-setup', 'authentik-ldap'])
          for (const network of networksOf(config.services[name] as Service))
            expect([name, network, config.networks[network]?.internal]).toEqual([name, network, true]);
        for (const name of ['authentik-server', 'authentik-worker']) {
          const { environment, volumes = [] } = config.services[name] as Service;
          expect(environment).toMatchObject({
            AUTHENTIK_DISABLE_UPDATE_CHECK: 'true',
            AUTHENTIK_DISABLE_STARTUP_ANALYTICS: 'true',
            AUTHENTIK_ERROR_REPORTING__ENABLED: 'false',
            AUTHENTIK_OUTPOSTS__DISABLE_EMBEDDED_OUTPOST: 'true',
          });
          const blueprints = volumes.find(({ target }) => target === '/blueprints/holdfast');
          expect([name, blueprints?.type, blueprints?.read_only]).toEqual([name, 'bind', true]);
        }
      });

      it('tells management the port on which devices enroll', () => {
        const { environment = {} } = configOf(layers).services['management'] ?? {};
        expect(environment['CORE_ENROLLMENT_PORT']).toBe(layers.includes('test') ? '18446' : undefined);
      });

      it('has a project of its own for tests', () => {
        const config = configOf(layers);
        const name = layers.includes('test') ? 'holdfast-test' : 'holdfast';
        expect(config.name).toBe(name);
        expect(config.services['management']?.environment?.['COMPOSE_PROJECT_NAME']).toBe(name);
      });
    });

    it('brings every setting of .env to management, and every MON_ variable, but no secret of others; the places inside stay its own', () => {
      const settings = Object.entries({
        ...SETTINGS,
        API_PORT: { example: '8081' },
        PORTAL_PORT: { example: '3001' },
      }).map(([name, { example }]) => [name, example] as const);
      const given = [...settings, ['MON_DISK_WARNING', '71'] as const].filter(([name]) => name !== 'COMPOSE_FILE');
      const before = root.readEnv();
      root.writeEnv([before, ...given.map(([name, value]) => `${name}='${value}'`)].join('\n'));
      try {
        const { environment = {} } = root.config(['base', 'light']).services['management'] ?? {};
        const arrived = given.filter(([name, value]) => environment[name] === value).map(([name]) => name);
        const kept = given.map(([name]) => name).filter((name) => !arrived.includes(name));
        expect(kept.filter((name) => !SECRETS_OF_OTHERS.test(name))).toEqual(INSIDE);
        expect(arrived.filter((name) => SECRETS_OF_OTHERS.test(name))).toEqual([]);
        expect(environment['COMPOSE_FILE']).toBe('compose/compose.yaml:compose/compose.light.yaml');
      } finally {
        root.writeEnv(before);
      }
    });

    it('gives databases time to stop, a fast shutdown and shared memory for VACUUM', () => {
      for (const layers of BASES) {
        for (const name of ['core-database', 'app-database']) {
          const {
            stop_signal: signal,
            stop_grace_period: grace,
            shm_size: shm,
          } = configOf(layers).services[name] ?? {};
          expect([signal, grace]).toEqual(['SIGINT', '1m0s']);
          expect(Number(shm)).toBeGreaterThanOrEqual(256 * 1024 ** 2);
        }
        expect(configOf(layers).services['management']?.stop_grace_period).toBe('20s');
      }
    });

    it('keeps what must survive in named volumes, each of which one service writes alone or says why not', () => {
      const writers = new Map<string, string[]>();
      for (const [name, { volumes = [] }] of services(configOf(['base', 'light'])))
        for (const { type, source, read_only: readOnly } of volumes)
          if (type === 'volume' && readOnly !== true) writers.set(source, [...(writers.get(source) ?? []), name]);
      expect(Object.fromEntries(writers)).toEqual({
        'app-database-data': ['app-database'],
        'backup-data': ['backup'],
        // The second gives it its owner and writes nothing.
        'caddy-data': ['caddy', 'configuration'],
        // Retention files, certificates, and the spool for the rights of service accounts.
        'core-data': ['configuration', 'core', 'management'],
        'core-database-data': ['core-database'],
        // The first writes its report of feeds.
        'flows-certificate': ['flows', 'management'],
        'flows-data': ['flows'],
        'management-data': ['management'],
        'proxy-certificate': ['management'],
      });
    });
  },
);
