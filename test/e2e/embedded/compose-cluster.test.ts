// compose.cluster.yaml, as Docker Compose puts it over the light stack.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  COMPOSE_DIRECTORY,
  type ComposeConfig,
  composeObstacle,
  ComposeRoot,
  type Service,
} from '../../../packages/setup/test/compose.ts';

const NODES = ['core', 'core-2', 'core-3'];
const obstacle = composeObstacle();

describe.skipIf(obstacle !== undefined)('a cluster in containers', () => {
  let root: ComposeRoot;
  let config: ComposeConfig;

  beforeAll(() => {
    root = new ComposeRoot();
    const made = root.setUp(['--light', '--cluster', '--address', 'cot.example.org']);
    if (made.status !== 0) throw new Error(made.stderr);
    config = root.config(['base', 'light', 'cluster']);
  });
  afterAll(() => root.remove());

  const serviceOf = (name: string): Service => config.services[name] as Service;

  it('gives every core node the same but for its number', () => {
    const nodes = NODES.map((name) => {
      const {
        environment = {},
        mem_limit,
        pids_limit,
        stop_grace_period,
        command,
        healthcheck,
        user,
      } = serviceOf(name);
      const { CORE_NODE, ...shared } = Object.fromEntries(
        Object.entries(environment).filter(([variable]) => !variable.startsWith('CERTIFICATE_')),
      );
      return { CORE_NODE, rest: { shared, mem_limit, pids_limit, stop_grace_period, command, healthcheck, user } };
    });
    expect(nodes.map(({ CORE_NODE }) => CORE_NODE)).toEqual(['1', '2', '3']);
    expect(nodes.map(({ rest }) => rest)).toEqual(NODES.map(() => nodes[0]?.rest));
  });

  it('gives both management processes the same but for the number, and the first one the work for others', () => {
    const [first, second] = ['management', 'management-2'].map((name) => serviceOf(name)) as [Service, Service];
    expect(second.environment).toEqual({ ...first.environment, MANAGEMENT_REPLICA: '2' });
    const targets = ({ volumes = [] }: Service): string[] => volumes.map(({ target }) => target);
    expect(targets(first).filter((target) => !targets(second).includes(target))).toEqual(['/var/lib/holdfast/proxy']);
    const flows = second.volumes?.find(({ source }) => source === 'flows-certificate');
    expect(flows?.read_only).toBe(true);
    expect(serviceOf('caddy').environment).toMatchObject({
      MANAGEMENT: 'management:8080 management-2:8080',
      PORTAL: 'management:3000 management-2:3000',
      REPLICAS: 'several',
    });
  });

  it('lets the first node alone write the certificate of NATS, and NATS alone read it', () => {
    const holders = Object.entries(config.services).flatMap(([name, { volumes = [] }]) =>
      volumes
        .filter(({ source }) => source === 'nats-certificate')
        .map(({ read_only: isRead }) => [name, isRead === true]),
    );
    expect(holders).toEqual([
      ['core', false],
      ['nats', true],
    ]);
  });

  it('keeps NATS on a network of its own with the nodes, and both newcomers on a read-only root', () => {
    const inMesh = Object.entries(config.services).filter(([, { networks }]) => 'mesh' in (networks ?? {}));
    expect(inMesh.map(([name]) => name).toSorted()).toEqual([...NODES, 'nats']);
    expect(config.networks['mesh']?.internal).toBe(true);
    expect(Object.keys(serviceOf('nats').networks ?? {})).toEqual(['mesh']);
    for (const name of ['nats', 'streaming']) expect(serviceOf(name).read_only).toBe(true);
  });

  it('gives its password to the nodes and NATS, and to a backup', () => {
    const password = serviceOf('nats').environment?.['NATS_PASSWORD'];
    expect(password).toMatch(/^\w{32}$/);
    const holders = Object.entries(config.services).filter(([, { environment }]) =>
      Object.values(environment ?? {}).includes(password ?? ''),
    );
    expect(holders.map(([name]) => name).toSorted()).toEqual(['backup', ...NODES, 'nats']);
  });

  it('leads management to the first node that runs: the name that it uses is the balancer there', () => {
    const named = Object.entries(config.services).filter(([, { networks }]) =>
      networks?.['edge']?.aliases?.includes('takserver'),
    );
    expect(named.map(([name]) => name)).toEqual(['streaming']);
    const { CORE_API_URL, CORE_ENROLLMENT_URL, CORE_STREAMING_URL } = serviceOf('management').environment ?? {};
    const ports = [CORE_API_URL, CORE_ENROLLMENT_URL, CORE_STREAMING_URL].map(
      (url) => /takserver:(\d+)$/.exec(url ?? '')?.[1],
    );
    expect(ports).toEqual(['8443', '8446', '8089']);
    const balancer = readFileSync(join(COMPOSE_DIRECTORY, 'streaming/haproxy.cfg'), 'utf8');
    const [api, enrollment, streaming] = ports.map((port) =>
      balancer.match(new RegExp(`server \\S+ \\S+:${port}.*`, 'g')),
    );
    for (const port of ports) expect(balancer).toContain(`bind :${port}\n`);
    expect(streaming).toEqual(NODES.map((node) => `server ${node} ${node}:8089`));
    const inOrder = (port: number, first = ''): string[] =>
      NODES.map((node, at) => `server ${node} ${node}:${port}${at === 0 ? first : ' backup'}`);
    expect(api).toEqual(inOrder(8443, ' on-marked-up shutdown-backup-sessions'));
    expect(enrollment).toEqual(inOrder(8446));
  });

  it('leads devices and enrollment through the balancer', () => {
    expect(serviceOf('caddy').environment?.['CORE']).toBe('streaming:8446');
    expect(serviceOf('core').ports).toBeUndefined();
  });
});
