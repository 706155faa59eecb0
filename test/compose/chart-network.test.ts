// Which pods may connect to which, by the network policies of the chart.

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
