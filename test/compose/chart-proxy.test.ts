// The files of Caddy as the chart gives them to its container.

import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CASES, noHelm, podsOf, render } from './chart.ts';

const noCaddy = noHelm || spawnSync('caddy', ['version']).error !== undefined;

describe.skipIf(noCaddy)(noCaddy ? 'helm or caddy is not installed: proxy not tried' : 'the reverse proxy', () => {
  let place = '';
  beforeAll(() => {
    place = mkdtempSync(join(tmpdir(), 'chart-caddy-'));
    const subject = ['-subj', '/CN=cot.example.org', '-days', '2'];
    const files = ['-keyout', join(place, 'tls.key'), '-out', join(place, 'tls.crt')];
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...files, ...subject], {
      stdio: 'ignore',
    });
    copyFileSync(join(place, 'tls.crt'), join(place, 'ca.pem'));
    writeFileSync(join(place, 'tls.caddy'), `tls ${place}/tls.crt ${place}/tls.key\n`);
  });
  afterAll(() => rmSync(place, { recursive: true }));

  const adapted = (name: string): string => caddy(name, 'adapt');

  /** Runs a command of Caddy with the files and the environment of its container. */
  function caddy(name: string, command: string): string {
    const objects = render(name);
    const map = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'caddy');
    const [, pod] = podsOf(objects).find(([of]) => of === 'management') ?? [];
    const volumes = (pod?.volumes ?? []) as { name: string; configMap?: { items: { key: string; path: string }[] } }[];
    const items = volumes.find((volume) => volume.name === 'caddy')?.configMap?.items ?? [];
    for (const { key, path } of items) {
      mkdirSync(dirname(join(place, name, path)), { recursive: true });
      writeFileSync(join(place, name, path), (map?.data?.[key] ?? '').replaceAll('/public/', `${place}/`));
    }
    const container = pod?.containers.find((each) => each.name === 'caddy');
    const file = /\/etc\/caddy\/(\S+)/.exec(container?.args?.[0] ?? '')?.[1] ?? '';
    const env = Object.fromEntries((container?.env ?? []).map((each) => [each.name, each.value]));
    const options = {
      cwd: join(place, name),
      env: { ...process.env, ...env, CERTIFICATE_DIR: place, XDG_DATA_HOME: join(place, 'data') },
      encoding: 'utf8',
    } as const;
    return execFileSync('caddy', [command, '--config', file, '--adapter', 'caddyfile'], {
      ...options,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  }

  it.each(CASES)('takes its files with %s', (name) => expect(caddy(name, 'validate')).toContain('Valid configuration'));

  it('has the options of the operator', () => expect(adapted('one-machine')).toContain('"email":"ops@example.org"'));

  it('loads the certificate of the cluster, and a renewed one is a new configuration', () => {
    const before = adapted('cluster');
    expect(before).toContain(`"certificate":"${place}/tls.crt"`);
    expect(adapted('cluster')).toBe(before);
    const text = readFileSync(join(place, 'tls.crt'), 'utf8');
    writeFileSync(join(place, 'tls.crt'), text.replace(/^M.*$/m, 'Renewed'));
    expect(adapted('cluster')).not.toBe(before);
    writeFileSync(join(place, 'tls.crt'), text);
  });

  it('believes the PROXY protocol of the load balancer alone', () => {
    const { apps } = JSON.parse(adapted('cluster')) as {
      apps: {
        http: {
          servers: Record<string, { listen: string[]; listener_wrappers?: { wrapper: string; allow?: string[] }[] }>;
        };
      };
    };
    const servers = Object.values(apps.http.servers).filter(({ listen }) => !listen[0]?.startsWith('127.0.0.1'));
    expect(servers.length).toBeGreaterThan(2);
    for (const { listen, listener_wrappers: wrappers } of servers)
      expect([listen, wrappers?.[0]]).toEqual([
        listen,
        expect.objectContaining({ wrapper: 'proxy_protocol', allow: ['10.244.0.0/16'] }),
      ]);
    expect(adapted('one-machine')).not.toContain('proxy_protocol');
  });
});
