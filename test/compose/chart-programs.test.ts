// The programs of our image with the environment that the chart gives them.

import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { takeCoreHandover } from '@holdfast/core/handover';
import { isRole, planContainer } from '../../packages/setup/containers/plan.ts';
import { wantedOf } from '../../shared/health/wanted.ts';
import { loadSettings } from '../../shared/settings/load.ts';
import { describeProblem } from '../../shared/settings/setting.ts';
import { CASES, CHART, type Container, containersOf, noHelm, podsOf, render } from './chart.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const manual = readFileSync(join(ROOT, 'docs/kubernetes.md'), 'utf8');

/** As the manual makes it: bytes of openssl, in hexadecimal. */
function secretOf(name: string): string {
  const [, prefix = '', bytes = '24'] =
    new RegExp(`=${name}="(n?)\\$\\(openssl rand -hex (\\d+)\\)"`).exec(manual) ?? [];
  return prefix + '0f'.repeat(Number(bytes));
}

/** What a Secret of `extraSecrets` may hold. */
const EXTRA = { SMTP_URL: 'smtp://user:a-password@mail.example.org:587' };

/** What Kubernetes makes of `envFrom` and `env`. */
function environmentOf(
  name: string,
  { env = [], envFrom = [] }: Container,
  values: Record<string, unknown> = {},
): Record<string, string> {
  const maps = render(name, values).filter(({ kind }) => kind === 'ConfigMap');
  const given: Record<string, string> = Object.assign(
    {},
    ...envFrom.map(({ configMapRef, secretRef }) =>
      secretRef === undefined ? maps.find(({ metadata }) => metadata.name === configMapRef?.name)?.data : EXTRA,
    ),
  );
  for (const { name: variable, value, valueFrom } of env) {
    const text = value?.replaceAll(/\$\((\w+)\)/g, (_, other: string) => given[other] ?? '');
    given[variable] = text ?? (valueFrom?.['fieldRef'] === undefined ? secretOf(variable) : '2');
  }
  return given;
}

const programs = noHelm
  ? []
  : CASES.flatMap((name) =>
      podsOf(render(name)).flatMap(([pod, spec]) =>
        containersOf(spec)
          .filter(({ image }) => image.startsWith('registry.example.org/holdfast:'))
          .map((container) => ({
            name,
            where: `${name}/${pod}/${container.name}`,
            role: container.args?.[0] ?? '',
            container,
          })),
      ),
    ).filter(({ role }) => isRole(role));

describe.skipIf(noHelm)(noHelm ? 'helm is not installed: programs not planned' : 'the environment of', () => {
  const planned = (name: string, role: string, container: Container) => {
    if (!isRole(role)) throw new Error(role);
    const plan = planContainer(ROOT, role, environmentOf(name, container));
    return Array.isArray(plan) ? plan.map(describeProblem) : plan;
  };

  it.each(programs)('$where is complete', ({ name, role, container }) =>
    expect(planned(name, role, container)).toMatchObject({ role }),
  );

  it.each(CASES)('%s passes the checks of setup', (name) => {
    const management = programs.find((program) => program.name === name && program.role === 'management');
    if (management === undefined) throw new Error('There is no management.');
    expect(planned(name, 'preflight', management.container)).toMatchObject({ role: 'preflight' });
  });

  it.each(CASES)('%s has health look for Caddy where it listens', (name) => {
    const { container } = programs.find((program) => program.name === name && program.role === 'management') ?? {};
    if (container === undefined) throw new Error('There is no management.');
    const { settings } = loadSettings([{ source: 'environment', values: environmentOf(name, container) }], 'light');
    const { tlsEndpoints } = wantedOf(settings, { listen: undefined, mode: 'light' });
    const [, spec] = podsOf(render(name)).find(([pod]) => pod === 'management') ?? [];
    const caddy = spec?.containers.find((each) => each.name === 'caddy')?.ports?.map((port) => port.containerPort);
    const checked = tlsEndpoints.filter(({ address }) => address === '127.0.0.1').map(({ port }) => port);
    expect(checked.length).toBeGreaterThan(1);
    expect(caddy).toEqual(expect.arrayContaining(checked));
  });

  it('management uses every node that always runs', () => {
    const management = programs.find(({ name, role }) => name === 'cluster' && role === 'management');
    if (management === undefined) throw new Error('There is no management.');
    const { CORE_API_URL, CORE_STREAMING_URL } = environmentOf('cluster', management.container);
    expect([CORE_API_URL, CORE_STREAMING_URL]).toEqual([
      'https://core:8443,https://core-2:8443,https://core-3:8443',
      'tls://core:8089,tls://core-2:8089,tls://core-3:8089',
    ]);
  });

  it('a node of several makes it that node', () => {
    const node = programs.find(({ name, role }) => name === 'cluster' && role === 'core');
    if (node === undefined) throw new Error('There is no core.');
    const plan = planned('cluster', 'core', node.container);
    if (Array.isArray(plan) || plan.role === 'database') throw new Error('It is no plan of a core.');
    const { cluster, databaseUrl, trustedProxies, addresses } = takeCoreHandover(plan.environment);
    expect(cluster).toMatchObject({
      node: 'core-2',
      nats: { url: 'tls://nats:4222', username: 'core', caFile: '/nats/ca.crt' },
    });
    expect(databaseUrl).toBe(`postgres://martiuser:${secretOf('')}@core-database-rw:5432/cot?sslmode=require`);
    expect(trustedProxies).toContain('10.244.0.0/16');
    expect(addresses).toEqual(['0.0.0.0']);
  });
});

describe.skipIf(noHelm)(noHelm ? 'helm is not installed: IPv6 not planned' : 'with IPv6 addresses', () => {
  const values = { listenAddress: '::' };

  it.each(['management', 'core', 'identity'])('%s listens on them, too', (role) => {
    const programsOf = podsOf(render('cluster', values)).flatMap(([, spec]) => containersOf(spec));
    const container = programsOf.find(({ args }) => args?.[0] === role);
    if (container === undefined || !isRole(role)) throw new Error(`There is no ${role}.`);
    const plan = planContainer(ROOT, role, environmentOf('cluster', container, values));
    if (Array.isArray(plan) || plan.role === 'database') throw new Error('It is not planned.');
    expect(Object.values(plan.environment).join('\n')).toContain('"::"');
  });
});

describe('the manual', () => {
  it('makes every key of the Secret that the light stack needs', () => {
    const keys = [...readFileSync(join(CHART, 'README.md'), 'utf8').matchAll(/^\| ((?:`\w+`(?:, )?)+) \|/gm)];
    const wanted = keys.flatMap(([, names = '']) => names.match(/[A-Z][A-Z_]+/g) ?? []);
    const authentik = /IDENTITY_BOOTSTRAP_TOKEN|IDENTITY_ADMIN_PASSWORD/;
    const made = [...manual.matchAll(/--from-literal=([A-Z_]+)=/g)].map(([, name]) => name);
    expect(new Set(made)).toEqual(new Set(wanted.filter((name) => !authentik.test(name))));
  });
});
