// Production from a made-up release, set up and started by the scripts that an operator calls, on a
// machine of its own: the engine's. authentik is stood in for, its certificates come from an ACME
// server of the tests. HOLDFAST_TEST_RELEASE names the archive of a real TAK Server release to take
// instead.

import { madeUpRelease } from '../../../packages/setup/test/release-archive.ts';
import { PORTABLE_SETTINGS } from '../embedded/portable.ts';
import { ACME_LAYER, acmeFiles, hostsOf, type SharedLight, withPublicCa } from './acme.ts';
import { makeAuthentik, makeReleaseBases } from './base-images.ts';
import { ComposeStack } from './compose-stack.ts';
import type { ContainerEngine } from './engine.ts';
import { sharedEngine } from './shared-engine.ts';

const NAME = 'cot.example.org';
const CADDY = '172.16.64.2';
/** takserver-docker-5.7-RELEASE-14.zip */
const REAL_ARCHIVE = process.env['HOLDFAST_TEST_RELEASE'] ?? '';
export const isReal = REAL_ARCHIVE !== '';
export const RELEASE = isReal ? (/-(\d[^/]*)\.zip$/.exec(REAL_ARCHIVE)?.[1] ?? '') : '5.7-RELEASE-8';
export const NEXT_RELEASE = '5.7-RELEASE-9';

export const BACKUPS = {
  BACKUP_TARGET: '/var/lib/holdfast/backups',
  BACKUP_PASSPHRASE: 'a passphrase of backups in production 7',
};

/** Those that stay up. */
export const PRODUCTION_SERVICES = [
  'app-database',
  'core-database',
  'authentik-server',
  'authentik-worker',
  'authentik-ldap',
  'core',
  'management',
  'caddy',
  'flows',
  'video',
] as const;

export type Production = SharedLight & {
  /** What the first start said. */
  firstStart: string;
  took: { setUp: number; start: number };
  /** The archive of another release, made where the engine keeps its files. */
  archiveOf(version: string): string;
};

export async function production(): Promise<Production> {
  const shared = await sharedEngine();
  const { engine } = shared;
  const archiveOf = (version: string): string =>
    isReal && version === RELEASE ? REAL_ARCHIVE : madeUpRelease({ version, directory: engine.directory });
  const stack = new ComposeStack(shared, {
    name: NAME,
    production: true,
    release: archiveOf(RELEASE),
    besides: () => makeReleaseBases(engine, isReal ? 'real' : 'made up'),
    layers: [ACME_LAYER],
    files: await acmeFiles(NAME, CADDY),
    env: {
      ...PORTABLE_SETTINGS,
      ...BACKUPS,
      CORE_MEMORY: isReal ? '4g' : '3g',
      CORE_DATABASE_MEMORY: '1g',
    },
  });
  const began = performance.now();
  await stack.prepare();
  const prepared = performance.now();
  await makeAuthentik(engine, stack.root);
  // To the machine that the stack runs on its names lead to it, as the DNS of the world would say.
  await nameMachine(engine, hostsOf(NAME));
  const starting = performance.now();
  const firstStart = await stack.scriptInside('start.sh');
  const took = { setUp: Math.round(prepared - began), start: Math.round(performance.now() - starting) };
  process.stdout.write(`production: set up in ${String(took.setUp)} ms, started in ${String(took.start)} ms\n`);
  return Object.assign(await withPublicCa(stack), { firstStart, took, archiveOf });
}

/** The engine's /etc lies over this machine's, and is its own. */
async function nameMachine(engine: ContainerEngine, names: string[]): Promise<void> {
  const line = `${engine.address} ${names.join(' ')}`;
  await engine.inside('sh', '-c', 'grep -qxF "$0" /etc/hosts || echo "$0" >>/etc/hosts', line);
}
