// Makes the public images that the stack is built on from Debian and npm, under the very names that
// its files use.

import { cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { parse } from 'yaml';
import { OUR_IMAGE } from '../../../packages/setup/test/compose.ts';
import { home } from '../embedded/embedded.ts';
import { debianRoot, unpackPackages } from './debian-packages.ts';
import { type ContainerEngine, must } from './engine.ts';

const RELEASE = 'bookworm';

/** Which stage of base/Dockerfile stands in for an image, by the end of its repository's name. */
const STAGES = ['node', 'caddy', 'node-red', 'mediamtx', 'pebble', 'nats', 'haproxy'] as const;
type Stage = (typeof STAGES)[number];

const stageOf = (image: string): Stage | undefined =>
  STAGES.find(
    (stage) =>
      image
        .replace(/[:@].*$/, '')
        .split('/')
        .at(-1) === stage,
  );

/** A file of the checkout whose images are named by their tags alone. */
export const withoutDigests = (file: string, checkout = home): string =>
  readFileSync(join(checkout, file), 'utf8').replaceAll(/@sha256:[0-9a-f]{64}/g, '');

/**
 * Every image that the compose files and Dockerfiles of a checkout name and that can be stood in
 * for.
 */
export function standIns(checkout = home): Map<string, Stage> {
  const named = new Set(['pebble:test']);
  for (const file of globSync('compose/*.yaml', { cwd: checkout })) {
    // Of what the layers say of a service only the image matters; their tags (!reset) are not
    // YAML's own.
    const { services } = parse(withoutDigests(file, checkout), { logLevel: 'silent', merge: true }) as {
      services?: Record<string, { image?: unknown } | null>;
    };
    for (const service of Object.values(services ?? {}))
      if (typeof service?.image === 'string') named.add(service.image);
  }
  for (const file of globSync('compose/**/Dockerfile', { cwd: checkout }))
    for (const [, image = ''] of withoutDigests(file, checkout).matchAll(/^(?:FROM\s+(?:--\S+\s+)*|ARG\s+\w+=)(\S+)/gm))
      named.add(image);
  return new Map([...named].flatMap((image) => (stageOf(image) ? [[image, stageOf(image) as Stage]] : [])));
}

/** The image that ours is built on. */
export const nodeImage = (): string => [...standIns()].find(([, stage]) => stage === 'node')?.[0] ?? '';

/** Makes them all. Returns how long each part took, in milliseconds. */
export async function makeBaseImages(engine: ContainerEngine, images = standIns()): Promise<Record<string, number>> {
  const context = join(engine.directory, 'base');
  cpSync(join(import.meta.dirname, 'base'), context, { recursive: true });
  const took: Record<string, number> = {};
  const timed = async (name: string, work: Promise<unknown>): Promise<void> => {
    const started = performance.now();
    await work;
    took[name] = Math.round(performance.now() - started);
  };
  await Promise.all([
    timed('debian', debianRoot(RELEASE, join(context, 'debian.tar'))),
    timed('node', nodeLayer(context)),
    timed('node-red', nodeRedLayer(context, [...images].find(([, stage]) => stage === 'node-red')?.[0])),
    timed('packages', packageLayers(context)),
  ]);
  for (const [image, stage] of images)
    await timed(image, engine.docker(['build', '--quiet', '--target', stage, '--tag', image, context]));
  return took;
}

/**
 * What the Dockerfiles of a release stand on, after the others were made: with a stand-in for Java
 * that runs a made-up release (packages/setup/test/release/docker), or with Java itself for a real
 * one.
 */
export async function makeReleaseBases(engine: ContainerEngine, kind: 'made up' | 'real'): Promise<void> {
  if (kind === 'real') return makeRealBases(engine);
  const context = join(engine.directory, 'base');
  const database = ['postgresql-15', 'postgresql-15-postgis-3'];
  await Promise.all([
    debianRoot(RELEASE, join(context, 'postgres.tar'), database),
    unpackedLayer(context, 'temurin', RELEASE, ['openssl', 'libssl3', 'procps', 'libproc2-0']),
    program('java/java.ts', join(context, 'java.mjs')),
  ]);
  await archive(join(context, 'root-temurin'), join(context, 'temurin.tar'));
  for (const [stage, tag] of [
    ['eclipse-temurin', '17-jammy'],
    ['postgres', '15.17'],
  ] as const)
    await engine.docker(['build', '--quiet', '--target', stage, '--tag', `${stage}:${tag}`, context]);
}

async function makeRealBases(engine: ContainerEngine): Promise<void> {
  const context = join(engine.directory, 'base');
  const java = ['openjdk-17-jre-headless', 'openssl', 'procps'];
  await debianRoot(RELEASE, join(context, 'temurin-real.tar'), java);
  await debianRoot(RELEASE, join(context, 'postgres-real.tar'), [...java, 'postgresql-15', 'postgresql-15-postgis-3']);
  for (const [stage, tag] of [
    ['eclipse-temurin', '17-jammy'],
    ['postgres', '15.1'],
  ] as const)
    await engine.docker(['build', '--quiet', '--target', `${stage}-real`, '--tag', `${stage}:${tag}`, context]);
}

/** authentik, on our own image, which must be there. */
export async function makeAuthentik(engine: ContainerEngine, checkout: string): Promise<void> {
  const context = join(engine.directory, 'base');
  await program('authentik/authentik.ts', join(context, 'authentik.mjs'));
  const text = readFileSync(join(checkout, 'compose/compose.yaml'), 'utf8');
  for (const [image, , part = ''] of text.matchAll(/(ghcr\.io\/goauthentik\/(server|ldap)):[\w.-]+/g))
    await engine.docker(
      ['build', '--quiet', '--build-arg', `HOLDFAST=${OUR_IMAGE}`].concat([
        '--target',
        `authentik-${part}`,
        '--tag',
        image,
        context,
      ]),
    );
}

/** In one file with everything that it is made of, some of it of the product. */
async function program(source: string, file: string): Promise<void> {
  await build({
    entryPoints: [join(import.meta.dirname, 'base', source)],
    outfile: file,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    loader: { '.sql': 'text' },
    logLevel: 'warning',
    banner: {
      js: "import { createRequire as createRequire_ } from 'node:module'; const require = createRequire_(import.meta.url);",
    },
  });
}

/**
 * Whom this machine trusts besides the public authorities: npm's registry may be reached through a
 * proxy that signs.
 */
const EXTRA_CA = process.env['NODE_EXTRA_CA_CERTS'];

function npm(cwd: string, ...args: string[]): Promise<unknown> {
  const env: Record<string, string> = EXTRA_CA === undefined ? {} : { NODE_EXTRA_CA_CERTS: EXTRA_CA };
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', `--cache=${join(cwd, '.npm')}`];
  return must('npm', [...args, ...options], { cwd, env });
}

async function nodeLayer(context: string): Promise<void> {
  const root = join(context, 'node');
  const packageDirectory = join(root, 'lib/node_modules/npm');
  mkdirSync(packageDirectory, { recursive: true });
  mkdirSync(join(root, 'bin'));
  cpSync(process.execPath, join(root, 'bin/node'));
  const fetched = join(context, 'npm-fetched');
  mkdirSync(fetched);
  await npm(fetched, 'pack', 'npm@11');
  await must(
    'tar',
    ['-xzf', globSync('npm-*.tgz', { cwd: fetched })[0] ?? '', '--strip-components=1', '-C', packageDirectory],
    { cwd: fetched },
  );
  if (EXTRA_CA !== undefined) {
    mkdirSync(join(root, 'etc'));
    cpSync(EXTRA_CA, join(root, 'etc/npm-authorities.pem'));
    writeFileSync(join(root, 'etc/npmrc'), 'cafile=/usr/local/etc/npm-authorities.pem\n');
  }
  for (const name of ['npm', 'npx'])
    await must('ln', ['-s', `../lib/node_modules/npm/bin/${name}-cli.js`, join(root, 'bin', name)]);
}

async function nodeRedLayer(context: string, image = 'nodered/node-red:latest'): Promise<void> {
  const root = join(context, 'node-red');
  mkdirSync(root);
  await npm(root, 'install', '--omit=dev', `node-red@${/:(\d+\.\d+\.\d+)/.exec(image)?.[1] ?? 'latest'}`);
  await must('rm', ['-rf', join(root, '.npm')]);
  cpSync(join(context, 'entrypoint.sh'), join(root, 'entrypoint.sh'));
}

/** What comes from Debian packages; Caddy is younger than the release. */
async function packageLayers(context: string): Promise<void> {
  const layers: [name: string, suite: string, packages: string[]][] = [
    ['busybox', RELEASE, ['busybox-static']],
    ['nginx', RELEASE, ['nginx', 'libnginx-mod-rtmp', 'libssl3']],
    ['pebble', RELEASE, ['pebble']],
    ['nats', RELEASE, ['nats-server']],
    ['haproxy', RELEASE, ['haproxy', 'liblua5.3-0', 'libopentracing-c-wrapper0', 'libopentracing1', 'libssl3']],
    ['caddy', 'trixie-backports', ['caddy']],
  ];
  await Promise.all(layers.map((layer) => unpackedLayer(context, ...layer)));
  const caddy = join(context, 'root-caddy');
  await must('setcap', ['cap_net_bind_service=+ep', join(caddy, 'usr/bin/caddy')]);
  cpSync(join(context, 'root-busybox/bin'), join(caddy, 'bin'), { recursive: true });
  for (const [name] of layers) await archive(join(context, `root-${name}`), join(context, `${name}.tar`));
}

function unpackedLayer(context: string, name: string, suite: string, packages: string[]): Promise<void> {
  return unpackPackages(join(context, `apt-${name}`), suite, packages, join(context, `root-${name}`));
}

/** Only directories that Debian has as directories too: /bin and the like are links there. */
async function archive(root: string, file: string): Promise<void> {
  for (const name of ['bin', 'sbin', 'lib'])
    if (existsSync(join(root, name))) await must('cp', ['-a', '--', join(root, name), join(root, 'usr')]);
  await must('tar', ['--xattrs', '--xattrs-include=*', '-C', root, '-cf', file, 'usr']);
}
