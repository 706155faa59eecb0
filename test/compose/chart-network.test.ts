// Which pods may connect to which, by the network policies of the chart, and to which NATS.

import { describe, expect, it } from 'vitest';
import { containersOf, noHelm, podsOf, render } from './chart.ts';

type Labels = Record<string, string>;
interface Selector {
  matchLabels?: Labels;
  matchExpressions?: { key: string; operator: 'Exists' }[];
}
interface Peer {
  podSelector?: Selector;
  namespaceSelector?: Selector;
  ipBlock?: { cidr: string };
}
interface Rule {
  from?: Peer[];
  to?: Peer[];
  ports?: { port: number | string; protocol?: string }[];
}
interface Policy {
  podSelector: Selector;
  ingress?: Rule[];
  egress?: Rule[];
}

const selects = ({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels): boolean =>
  Object.entries(matchLabels).every(([name, value]) => labels[name] === value) &&
  matchExpressions.every(({ key }) => Object.hasOwn(labels, key));

/** A rule without peers or ports is for all of them. Pods of this namespace alone: a block of addresses is elsewhere. */
function permits(rule: Rule, peers: Peer[] | undefined, other: Labels, ports: readonly (number | string)[]): boolean {
  const isPeer =
    peers === undefined ||
    peers.some(
      ({ podSelector, namespaceSelector }) =>
        podSelector !== undefined && namespaceSelector === undefined && selects(podSelector, other),
    );
  return isPeer && (rule.ports === undefined || rule.ports.some(({ port }) => ports.includes(port)));
}

/** What each pod of a case may reach, as `from -> to:port`. `known`: labels of pods of other charts. */
function flowsOf(name: string, known: Record<string, Labels>): string[] {
  const objects = render(name);
  const policies = objects.filter(({ kind }) => kind === 'NetworkPolicy').map(({ spec }) => spec as unknown as Policy);
  const ours = objects.flatMap((object) => {
    const { template } = (object.spec ?? {}) as { template?: { metadata: { labels: Labels } } };
    return template === undefined ? [] : [[object.metadata.name, template.metadata.labels] as const];
  });
  const labels: Record<string, Labels> = { ...Object.fromEntries(ours), ...known };
  const ports = podsOf(objects).flatMap(([pod, spec]) =>
    containersOf(spec).flatMap(({ ports: of = [] }) =>
      of.map((port) => ({ to: pod, number: port.containerPort, names: [port.name, port.containerPort] as const })),
    ),
  );
  const others = [
    ['database', 5432],
    ['database', 8000],
    ['nats', 4222],
    ['nats', 8222],
    ['authentik', 9000],
  ] as const;
  const targets = [...ports, ...others.map(([to, number]) => ({ to, number, names: [number] as const }))];
  const found = Object.entries(labels).flatMap(([from, own]) =>
    targets
      .filter(({ to, names }) => {
        const target = labels[to];
        if (target === undefined) return false;
        const [out, into] = [own, target].map((each) =>
          policies.filter(({ podSelector }) => selects(podSelector, each)),
        );
        return (
          out?.some(({ egress = [] }) => egress.some((rule) => permits(rule, rule.to, target, names))) === true &&
          into?.some(({ ingress = [] }) => ingress.some((rule) => permits(rule, rule.from, own, names))) === true
        );
      })
      .map(({ to, number }) => `${from} -> ${to}:${number}`.replaceAll('core-node', 'core')),
  );
  return [...new Set(found)];
}

const DATABASE: Labels = { 'cnpg.io/cluster': 'app-database' };
const GATEWAY: Labels = { 'gateway.networking.k8s.io/gateway-name': 'holdfast' };
const NATS: Labels = { 'app.kubernetes.io/name': 'nats' };
const AUTHENTIK: Labels = { 'app.kubernetes.io/name': 'authentik' };
/** To itself: the probes of the console use the public ports. */
const MANAGEMENT = ['management -> management:8443', 'management -> management:8446'];
const CORE = ['core:8089', 'core:8443', 'core:8446'].map((to) => `management -> ${to}`);

describe.skipIf(noHelm)(noHelm ? 'helm is not installed: policies not read' : 'the network policies', () => {
  it('let several nodes of our own core do what they need, and a stranger nothing', () => {
    expect(flowsOf('cluster', { database: DATABASE, nats: NATS, gateway: GATEWAY, stranger: {} }).toSorted()).toEqual(
      [
        ...MANAGEMENT,
        ...CORE,
        ...['management:8081', 'management:8443', 'management:8446', 'core:8089'].map((to) => `gateway -> ${to}`),
        'management -> identity:9000',
        'management -> identity:3389',
        'management -> database:5432',
        'core -> identity:9000',
        'core -> identity:3389',
        'core -> database:5432',
        'core -> nats:4222',
        'identity -> database:5432',
        'database -> database:5432',
        'database -> database:8000',
      ].toSorted(),
    );
  });

  it('let a release with authentik do what it needs', () => {
    expect(flowsOf('release', { database: DATABASE, authentik: AUTHENTIK, stranger: {} }).toSorted()).toEqual(
      [
        ...MANAGEMENT,
        ...CORE,
        'management -> core:5432',
        'core -> core:5432',
        'management -> authentik-ldap:3389',
        'core -> authentik-ldap:3389',
        'management -> authentik:9000',
        'authentik-ldap -> authentik:9000',
        'management -> database:5432',
        'authentik -> database:5432',
        'database -> database:5432',
        'database -> database:8000',
      ].toSorted(),
    );
  });

  const egressOf = (name: string, policy: string, changes: Record<string, unknown> = {}): Rule[] =>
    render(name, changes).flatMap(({ kind, metadata, spec }) =>
      kind === 'NetworkPolicy' && metadata.name === policy ? ((spec as unknown as Policy).egress ?? []) : [],
    );
  /** The ports that a pod may reach anywhere. */
  const anywhere = (rules: readonly Rule[]) =>
    rules.filter(({ to }) => to === undefined).flatMap(({ ports = [] }) => ports.map(({ port }) => port));
  const cluster = { 'networkPolicy.enabled': true };

  it('let the nodes reach NATS elsewhere at its port, and are for no NATS here then', () => {
    expect(anywhere(egressOf('cluster', 'core'))).toEqual([]);
    expect(egressOf('cluster', 'nats')).not.toEqual([]);
    for (const [url, port] of [
      ['tls://nats.messages.svc', 4222],
      ['tls://203.0.113.4:4443', 4443],
      ['tls://203.0.113.4', 4222],
    ] as const) {
      expect(anywhere(egressOf('cluster', 'core', { 'nats.url': url }))).toEqual([port]);
      expect(egressOf('cluster', 'nats', { 'nats.url': url })).toEqual([]);
    }
  });

  it('let our programs reach a database of yours at its port', () => {
    const values = { ...cluster, 'databases.app.host': 'db.example.org:6432' };
    expect(anywhere(egressOf('direct', 'management', values))).toEqual([6432, 5432, 123]);
    expect(anywhere(egressOf('direct', 'identity', values))).toEqual([6432, 5432]);
    const release = { 'databases.cloudNativePG': false, 'databases.app.host': 'db:6432', 'backups.method': 'none' };
    expect(anywhere(egressOf('release', 'management', { ...release, 'backups.volumeSnapshot': {} }))).toEqual([
      6432, 123,
    ]);
  });

  it('let the instances of CloudNativePG reach the API server, which has no network for some plugins', () => {
    expect(anywhere(egressOf('one-machine', 'databases'))).toEqual([443, 6443]);
    const named = egressOf('one-machine', 'databases', { 'networkPolicy.apiServer.cidr': '203.0.113.0/24' });
    expect(named.at(-1)).toMatchObject({ to: [{ ipBlock: { cidr: '203.0.113.0/24' } }] });
  });

  it('let all ask for names, also where the DNS service of OpenShift answers', () => {
    const [rule] = egressOf('one-machine', 'default-deny', { 'networkPolicy.dnsNamespace': 'openshift-dns' });
    expect(rule?.to?.[0]?.namespaceSelector?.matchLabels).toEqual({ 'kubernetes.io/metadata.name': 'openshift-dns' });
    expect(rule?.ports?.map(({ port, protocol }) => `${port}/${protocol}`)).toEqual([
      '53/UDP',
      '53/TCP',
      '5353/UDP',
      '5353/TCP',
    ]);
  });

  it('let management and Caddy ask who issues certificates whether they are revoked', () => {
    const internet = egressOf('one-machine', 'management').find(({ to }) => to?.[0]?.ipBlock !== undefined);
    expect(internet?.ports?.map(({ port }) => port)).toEqual([80, 443, 465, 587]);
  });

  it('let a Gateway here bring the challenges of HTTP-01 to those who answer them', () => {
    const solver = { 'acme.cert-manager.io/http01-solver': 'true' };
    const rules = egressOf('cluster', 'gateway');
    expect(rules.some((rule) => permits(rule, rule.to, solver, [8089]))).toBe(true);
  });

  it('let the world reach the four ports of the stack, and no others', () => {
    const rules = render('cluster').flatMap(({ kind, spec }) =>
      kind === 'NetworkPolicy' ? ((spec as unknown as Policy).ingress ?? []) : [],
    );
    const open = rules
      .filter(({ from }) => from === undefined)
      .flatMap(({ ports = [] }) => ports.map(({ port }) => port));
    // The last one is that of cert-manager's answers to HTTP-01.
    expect(open).toEqual(['public-http', 'public-https', 'public-enroll', 'streaming', 8089]);
  });
});

describe.skipIf(noHelm)(noHelm ? 'helm is not installed: NATS not checked' : 'the certificate of NATS', () => {
  const namesFor = (url: string): unknown[] =>
    render('cluster', { 'nats.url': url }).flatMap(({ kind, metadata, spec }) =>
      kind === 'Certificate' && metadata.name === 'nats-tls' ? [spec?.['dnsNames']] : [],
    );

  it('has the name by which the nodes reach it', () => {
    const names = ['nats', 'nats.tak.svc', '*.nats-headless.tak.svc.cluster.local'];
    expect(namesFor('tls://nats:4222')).toEqual([names]);
    expect(namesFor('tls://nats.tak.svc')).toEqual([names]);
    expect(namesFor('tls://bus.tak:4222')).toEqual([
      ['bus', 'bus.tak.svc', '*.bus-headless.tak.svc.cluster.local', 'bus.tak'],
    ]);
  });

  it('is not made, in place of a Secret that is there, for NATS elsewhere', () => {
    expect([namesFor('tls://nats.messages.svc:4222'), namesFor('tls://nats.example.org:4443')]).toEqual([[], []]);
  });
});
