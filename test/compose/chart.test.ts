// The chart for Kubernetes: what helm makes of it, what its pods may do, where secrets are, and which values it refuses.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { BLUEPRINT } from '../../packages/setup/identity/setup.ts';
import { SETTING_NAMES, SETTINGS } from '../../shared/settings/table.ts';
import {
  CASES,
  changesOf,
  CHART,
  type Container,
  containersOf,
  helm,
  noHelm,
  podsOf,
  render,
  valuesOf,
} from './chart.ts';

const secretNames = SETTING_NAMES.filter((name) => SETTINGS[name].kind.secret);

describe.skipIf(noHelm)(noHelm ? 'helm is not installed: not rendered' : 'the chart', () => {
  it.each(CASES)('passes the strict lint with %s', (name) => {
    const { status, output } = helm('lint', '--strict', '.', '-f', valuesOf(name));
    expect([status, output]).toEqual([0, expect.stringContaining('1 chart(s) linted, 0 chart(s) failed')]);
  });

  it('needs the values that nobody else knows', () => {
    const { status, errors } = helm('template', 'holdfast', '.');
    expect(status).not.toBe(0);
    expect(errors).toMatch(/address is empty\. Set/);
    expect(errors).toMatch(/image\.repository is empty\. Push/);
  });
});

describe.skipIf(noHelm)(noHelm ? 'helm is not installed: pods not checked' : 'every pod', () => {
  const pods = CASES.flatMap((name) => podsOf(render(name)).map(([pod, spec]) => ({ where: `${name}/${pod}`, spec })));
  const containers = pods.flatMap(({ where, spec }) =>
    containersOf(spec).map((container) => ({ where: `${where}/${container.name}`, container, spec })),
  );

  it('are those of every program', () => {
    expect(new Set(containers.map(({ container }) => container.name))).toEqual(
      new Set([
        'management',
        'caddy',
        'core',
        'configuration',
        'release-files',
        'core-database',
        'identity',
        'identity-setup',
        'authentik-ldap',
        'answers',
      ]),
    );
  });

  it.each(containers)('$where may do nothing that it does not need', ({ container, spec }) => {
    const { securityContext: own = {} } = container;
    expect({ ...spec.securityContext, ...own }).toMatchObject({
      runAsNonRoot: true,
      runAsUser: expect.toSatisfy((user: number) => user > 10_000),
      seccompProfile: { type: 'RuntimeDefault' },
      privileged: false,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    const { add = [] } = own['capabilities'] as { add?: string[] };
    expect(add).toEqual(container.name === 'caddy' ? ['NET_BIND_SERVICE'] : []);
  });

  it.each(containers)('$where has limits, requests and a pinned image', ({ container: { resources, image } }) => {
    for (const of of ['requests', 'limits'] as const)
      expect(resources?.[of]).toMatchObject({ cpu: expect.anything(), memory: expect.stringMatching(/^\d+[MG]i$/) });
    expect(image).toMatch(/:[\w][\w.-]+$/);
    expect(image).not.toMatch(/:latest$/);
  });

  it.each(containers)('$where has probes where it keeps running', ({ where, container }) => {
    const { startupProbe, readinessProbe, livenessProbe } = container;
    const isStep =
      ['configuration', 'release-files', 'identity-setup'].includes(container.name) || where.includes('/test-');
    expect([startupProbe, readinessProbe, livenessProbe].filter((probe) => probe !== undefined)).toHaveLength(
      isStep ? 0 : 3,
    );
  });

  it.each(pods)('$where sees nothing of the machine or of the API server', ({ spec }) => {
    expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
    for (const member of ['hostNetwork', 'hostPID', 'hostIPC', 'serviceAccountName', 'shareProcessNamespace'])
      expect(spec).not.toHaveProperty(member);
    const kinds = (spec.volumes ?? []).flatMap((volume) => Object.keys(volume).filter((member) => member !== 'name'));
    expect(
      kinds.filter((kind) => !['emptyDir', 'persistentVolumeClaim', 'secret', 'configMap'].includes(kind)),
    ).toEqual([]);
  });

  it.each(containers)('$where has a volume for each mount', ({ container, spec }) => {
    const volumes = new Set((spec.volumes ?? []).map(({ name }) => name));
    const isOwn = (name: string): boolean => name === 'management-data';
    for (const { name } of container.volumeMounts ?? [])
      expect([name, volumes.has(name) || isOwn(name)]).toEqual([name, true]);
  });
});

describe.skipIf(noHelm)(noHelm ? 'helm is not installed: moves not checked' : 'a pod', () => {
  const ofKind = (name: string, wanted: string) => render(name).filter(({ kind }) => kind === wanted);

  it('that is broken is replaced after a rollback', () => {
    for (const name of CASES)
      for (const { spec } of ofKind(name, 'StatefulSet')) expect(spec?.['podManagementPolicy']).toBe('Parallel');
  });

  it('of management can always leave a machine whose volume the core needs elsewhere', () => {
    const budgets = (name: string) => ofKind(name, 'PodDisruptionBudget').map(({ metadata }) => metadata.name);
    expect(budgets('cluster')).toContain('management');
    expect(budgets('one-machine')).toEqual([]);
  });

  it('that is not ready can always leave a machine', () => {
    const budgets = CASES.flatMap((name) => ofKind(name, 'PodDisruptionBudget'));
    expect(budgets.map(({ metadata }) => metadata.name)).toEqual(['core', 'management', 'authentik-ldap']);
    for (const { spec } of budgets)
      expect(spec).toMatchObject({ maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' });
  });
});

it("authentik's own chart mounts the blueprint where identity-setup looks for it", () => {
  const values = parse(readFileSync(join(CHART, 'values/authentik.yaml'), 'utf8')) as {
    global: { volumes: { name: string }[]; volumeMounts: { name: string; mountPath: string }[] };
  };
  const { volumes, volumeMounts } = values.global;
  expect(volumes).toEqual([{ name: 'holdfast-blueprint', configMap: { name: 'authentik-blueprint' } }]);
  expect(`${volumeMounts[0]?.mountPath}/holdfast.yaml`).toBe(`/blueprints/${BLUEPRINT}`);
  expect(readFileSync(join(CHART, 'templates/identity.yaml'), 'utf8')).toContain('\n  holdfast.yaml: |');
});

describe.skipIf(noHelm)(noHelm ? 'helm is not installed: services not checked' : 'services', () => {
  const namesOf = (name: string): string[] =>
    render(name)
      .filter(({ kind }) => kind === 'Service')
      .map(({ metadata }) => metadata.name);

  it('have the name of every node that there can be, as its certificate has', () => {
    const nodes = namesOf('cluster').filter((name) => /^core(?:-\d)?$/.test(name));
    expect(namesOf('cluster')).toContain('core-enrollment');
    expect(nodes.toSorted()).toEqual(['core', 'core-2', 'core-3', 'core-4', 'core-5', 'core-6']);
    expect(namesOf('one-machine').filter((name) => /^core-\d$/.test(name))).toEqual([]);
  });

  it('of a node selects its pod', () => {
    const services = render('cluster').filter(
      ({ kind, metadata }) => kind === 'Service' && /^core(?:-\d)?$/.test(metadata.name),
    );
    const pods = services.map(({ metadata, spec }) => [
      metadata.name,
      (spec as { selector: Record<string, string> }).selector['statefulset.kubernetes.io/pod-name'],
    ]);
    expect(Object.fromEntries(pods)).toMatchObject({
      core: 'core-1',
      'core-2': 'core-node-2',
      'core-6': 'core-node-6',
    });
    const sets = render('cluster').filter(
      ({ kind, metadata }) => kind === 'StatefulSet' && metadata.name.startsWith('core'),
    );
    expect(sets.map(({ metadata, spec }) => [metadata.name, spec?.['ordinals'], spec?.['replicas']])).toEqual([
      ['core', { start: 1 }, 1],
      ['core-node', { start: 2 }, undefined],
    ]);
  });

  it('lead to ports that their pods have, under names of at most 15 characters', () => {
    for (const name of CASES) {
      const ports = podsOf(render(name)).flatMap(([, spec]) => containersOf(spec).flatMap(({ ports: of = [] }) => of));
      const services = render(name).filter(({ kind }) => kind === 'Service');
      const wanted = services.flatMap(({ spec }) => (spec as { ports: { targetPort: string }[] }).ports);
      for (const { targetPort } of wanted) expect(ports.map((port) => port.name)).toContain(targetPort);
      for (const port of ports) expect(port.name.length).toBeLessThanOrEqual(15);
    }
  });
});

describe.skipIf(noHelm)(noHelm ? 'helm is not installed: secrets not checked' : 'secrets', () => {
  const containers = CASES.flatMap((name) => podsOf(render(name)).flatMap(([, spec]) => containersOf(spec)));
  const secretsOf = ({ env = [] }: Container): string[] =>
    env.filter(({ valueFrom }) => valueFrom?.['secretKeyRef'] !== undefined).map(({ name }) => name);

  it('are in no ConfigMap and no argument, and no variable has one as its text', () => {
    const objects = CASES.flatMap((name) => render(name));
    const plain = objects.filter(({ kind }) => kind === 'ConfigMap').flatMap(({ data = {} }) => Object.keys(data));
    expect(plain.filter((name) => secretNames.some((secret) => secret === name))).toEqual([]);
    expect(objects.filter(({ kind }) => kind === 'Secret')).toEqual([]);
    for (const { env = [], args = [], command = [] } of containers) {
      for (const { name, value } of env)
        if (secretNames.some((secret) => secret === name) && value !== undefined)
          expect(value).toMatch(/^postgres:\/\/\w+:\$\([A-Z_]+\)@/);
      expect([...command, ...args].join(' ')).not.toMatch(/\$\([A-Z_]*(?:PASSWORD|KEY|TOKEN)\)/);
    }
  });

  it('reach those alone that use them', () => {
    const of = (name: string): string[] =>
      [...new Set(containers.filter((each) => each.name === name).flatMap(secretsOf))].toSorted();
    expect(of('core')).toEqual(['CORE_DB_PASSWORD', 'LDAP_BIND_PASSWORD', 'NATS_PASSWORD']);
    expect(of('identity')).toEqual([
      'IDENTITY_DB_PASSWORD',
      'IDENTITY_SECRET_KEY',
      'IDENTITY_TOKEN',
      'LDAP_BIND_PASSWORD',
    ]);
    expect(of('caddy')).toEqual([]);
    expect(of('core-database')).toEqual(['CORE_DB_PASSWORD', 'CORE_READER_PASSWORD']);
    const given = containers.filter(({ envFrom = [] }) => envFrom.some(({ secretRef }) => secretRef !== undefined));
    expect(given.map(({ name }) => name)).toEqual(['management']);
  });

  it('are named in the manual of the chart', () => {
    const manual = readFileSync(join(CHART, 'README.md'), 'utf8');
    for (const name of new Set(containers.flatMap(secretsOf)))
      expect([
        name,
        manual.includes(`\`${name}\``) || name.endsWith('_DB_PASSWORD') || name === 'CORE_READER_PASSWORD',
      ]).toEqual([name, true]);
  });
});

const FAULTS: [string, string, Record<string, unknown>][] = [
  ['one-machine', 'replicaCount is not a value of this chart. Use management.replicas', { replicaCount: 2 }],
  ['one-machine', 'core.replicas is not a value of this chart. Use core.nodes', { 'core.replicas': 2 }],
  ['one-machine', 'ingress is not a value of this chart. Use exposure.ingress', { 'ingress.enabled': true }],
  [
    'one-machine',
    'core.storage.accessMode is ReadWriteOnce. Set core.storage.accessMode=ReadWriteMany',
    { 'core.nodes': 3 },
  ],
  ['one-machine', 'core.storage.accessMode is ReadWriteOnce', { 'core.autoscaling.enabled': true }],
  ['cluster', 'Several core nodes need NATS', { 'nats.url': '' }],
  ['cluster', 'without TLS. Set it to tls://HOST:4222', { 'nats.url': 'nats://nats:4222' }],
  ['cluster', 'core.autoscaling.enabled adds nodes to the second one', { 'core.nodes': 1 }],
  ['cluster', 'core.autoscaling.maxNodes is less than core.nodes', { 'core.autoscaling.maxNodes': 2 }],
  ['release', 'a TAK Server release runs once. Set core.nodes=1', { 'core.nodes': 2 }],
  [
    'release',
    'a TAK Server release runs once. Set core.autoscaling.enabled=false',
    { 'core.autoscaling.enabled': true },
  ],
  ['release', 'core.kind=release needs core.release.image', { 'core.release.image': '' }],
  ['one-machine', 'core.release.image is set, but core.kind is light', { 'core.release.image': 'registry/core:5.7' }],
  ['one-machine', 'exposure.by is empty: nothing would reach the stack', { 'exposure.by': '' }],
  ['one-machine', 'exposure.by is gateway, but there is none', { 'exposure.by': 'gateway' }],
  [
    'cluster',
    'exposure.gateway.name and exposure.gateway.className are both set',
    { 'exposure.gateway.name': 'shared' },
  ],
  ['release', 'the annotation by which your controller passes TLS through', { 'exposure.ingress.className': '' }],
  ['release', "Caddy can't get certificates behind an Ingress", { 'certificates.public': 'caddy' }],
  ['cluster', 'mode is direct, which has no host names to route by', { mode: 'direct' }],
  [
    'cluster',
    'externalTrafficPolicy is Local, but pods are on several machines',
    { 'exposure.by': 'loadBalancer', 'exposure.externalTrafficPolicy': 'Local' },
  ],
  ['cluster', 'core.podNetworks is set, and devices may reach 8089', { 'exposure.proxyProtocolFrom': [] }],
  [
    'one-machine',
    'core.podNetworks is set, and devices may reach 8089',
    { 'exposure.externalTrafficPolicy': 'Cluster' },
  ],
  ['cluster', 'needs certificates.certManager=true and certificates.issuer.name', { 'certificates.issuer.name': '' }],
  ['direct', 'databases.app.host is empty', { 'databases.app.host': '' }],
  ['direct', 'databases.core.host is empty', { 'databases.core.host': '' }],
  ['one-machine', 'Set it to false to use your PostgreSQL', { 'databases.app.host': 'db:5432' }],
  ['one-machine', 'has a CA of its own. Set databases.sslMode=require', { 'databases.sslMode': 'verify-full' }],
  ['direct', 'which needs databases.cloudNativePG=true', { 'backups.method': 'volumeSnapshot' }],
  ['cluster', 'needs backups.objectStore.destinationPath', { 'backups.objectStore.secret': '' }],
  ['cluster', 'Restored databases need a place of their own', { 'backups.objectStore.generation': 1 }],
  [
    'release',
    'set core.release.databaseStorage.existingClaim to its name, and remove recover.core',
    { 'backups.volumeSnapshot.recover.core': 'core-database-20261101020000' },
  ],
  ['release', 'which needs backups.volumeSnapshot.className', { 'backups.volumeSnapshot.className': '' }],
];

describe.skipIf(noHelm)(
  noHelm ? 'helm is not installed: bad values not tried' : 'values that contradict each other',
  () => {
    function refusal(name: string, values: Record<string, unknown>): string {
      const { status, errors } = helm('template', 'holdfast', '.', '-f', valuesOf(name), ...changesOf(values));
      return status === 0 ? '' : errors;
    }
    const all: string[] = [];

    it.each(FAULTS)('%s: %s', (name, message, values) => {
      const text = refusal(name, values);
      all.push(text);
      expect(text).toContain(message);
    });

    it('are all tried', () => {
      const messages = readFileSync(join(CHART, 'templates/validate.yaml'), 'utf8')
        .split('\n')
        .filter((line) => line.startsWith('- '));
      const refused = all.join('\n');
      const fixed = messages.map(
        (line) =>
          line
            .slice(2)
            .split(/[^{]*\{\{.*?\}\}/)
            .toSorted((a, b) => b.length - a.length)[0] ?? '',
      );
      const missing = fixed.filter(
        (text) => !refused.includes(text) && !/^(?:address|image\.repository) is empty/.test(text),
      );
      expect(missing).toEqual([]);
    });

    it.each([
      ['an unknown value', { 'management.replica': 2 }, 'replica'],
      ['a secret as a setting', { 'settings.SMTP_URL': 'smtp://user:password@mail' }, 'SMTP_URL'],
      ['an unknown setting', { 'settings.COT_RETENTION': 3 }, 'COT_RETENTION'],
      ['a telephone number without quotes', { 'settings.ALERT_SMS_TO': 436641234567 }, 'ALERT_SMS_TO'],
      ['the image latest', { 'image.tag': 'latest' }, 'image/tag'],
      ['an image without a tag', { 'caddy.image': 'caddy' }, 'caddy/image'],
      ['ten nodes', { 'core.nodes': 10 }, 'core/nodes'],
    ])('the schema refuses %s', (_, values, place) => {
      const text = refusal('one-machine', values);
      expect(text).toContain("values don't meet the specifications of the schema");
      expect(text).toContain(place);
    });
  },
);

describe('the settings', () => {
  const { properties } = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')) as {
    properties: { settings: { propertyNames: { anyOf: [{ enum: string[] }, unknown] } } };
  };
  /** What the chart sets itself, or what belongs to a part that it does not have. */
  const others = [
    /^SERVER_ADDRESS$|^DEPLOY_MODE$|^TRUSTED_PROXIES$|^PROXY_HTTPS_PORT$|^MANAGEMENT_REPLICA$|^CORE_RETENTION_UNIT$/,
    /^NATS_URL$|^NATS_CA_FILE$|^CORE_(?:NODE|RELEASE|MEMORY|DATABASE_MEMORY|DATABASE_DIR|DATA_DIR|ENROLLMENT_PORT)$/,
    /^COMPOSE_FILE$|^CONTAINER_RUNTIME_URL$|^RELAY_API_URL$|^BACKUP_/,
    /^(?:CORE_API|CORE_ENROLLMENT|CORE_STREAMING|IDENTITY|LDAP)_URL$|^(?:LISTEN_ADDRESS|API_PORT|PORTAL_PORT|DATA_DIR|LOG_DIR)$/,
  ];
  const wanted = SETTING_NAMES.filter((name) => !SETTINGS[name].kind.secret && !others.some((each) => each.test(name)));

  it('take every setting without a secret that the chart does not set itself', () => {
    expect(properties.settings.propertyNames.anyOf[0].enum.toSorted()).toEqual(wanted.toSorted());
  });

  it.skipIf(noHelm)('keep large numbers as they are', () => {
    const values = 'settings.MON_ALERT_COOLDOWN=1000000,settings.DB_AUTOVACUUM_SCALE_FACTOR=0.1';
    const { output } = helm('template', 'holdfast', '.', '-f', valuesOf('one-machine'), '--set-json', values);
    expect(output).toContain('MON_ALERT_COOLDOWN: "1000000"');
    expect(output).toContain('DB_AUTOVACUUM_SCALE_FACTOR: "0.1"');
  });

  it('name no variable that is no setting of ours', () => {
    const known = new Set<string>([
      ...SETTING_NAMES,

      'TZ',
      'NODE_OPTIONS',
      'MALLOC_ARENA_MAX',
      'GLIBC_TUNABLES',
    ]);
    const ours = new Set(['management', 'core', 'identity', 'configuration', 'identity-setup', 'core-database']);
    if (noHelm) return;
    const containers = CASES.flatMap((name) => podsOf(render(name)).flatMap(([, spec]) => containersOf(spec)));
    const names = containers
      .filter(({ name }) => ours.has(name))
      .flatMap(({ env = [] }) => env.map(({ name }) => name));
    const given = CASES.flatMap((name) => render(name)).filter(
      ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'settings',
    );
    const all = [...names, ...given.flatMap(({ data = {} }) => Object.keys(data))];
    expect([...new Set(all)].filter((name) => !known.has(name) && !/^(?:HOLDFAST|MON)_/.test(name))).toEqual([]);
  });

  it('have the version and the images of the stack in containers', () => {
    const text = (path: string): string => readFileSync(join(CHART, path), 'utf8');
    const values = parse(text('values.yaml')) as {
      caddy: { image: string };
      identity: { authentik: { ldapImage: string } };
    };
    const chart = parse(text('Chart.yaml')) as { version: string; appVersion: string };
    const { version } = JSON.parse(text('../../package.json')) as { version: string };
    expect([chart.version, chart.appVersion]).toEqual([version, version]);
    const compose = text('../compose.yaml');
    expect(compose).toContain(`&caddy-image ${values.caddy.image.replace('docker.io/library/', '')}\n`);
    expect(compose).toContain(`&authentik-ldap-image ${values.identity.authentik.ldapImage}\n`);
  });
});
