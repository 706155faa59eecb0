// Upgrades the light stack: to a version that works and back, and to one whose core cannot start.

import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { home } from '../embedded/embedded.ts';
import { ComposeStack, copyCheckout } from './compose-stack.ts';
import { must } from './engine.ts';
import { obstacle, sharedEngine } from './shared-engine.ts';

const BROKEN_CORE = 'process.exit(3);\n';

describe.skipIf(obstacle !== '')('upgrade.sh on the light stack', () => {
  let stack: ComposeStack;
  let current: string;

  beforeAll(async () => {
    const { version } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as { version: string };
    current = version;
    // The stack of other files may stand beside it.
    stack = await new ComposeStack(await sharedEngine(), { production: true }).prepare();
    await stack.build();
    for (const args of [
      ['init', '--quiet'],
      ['add', '--all'],
      ['commit', '--quiet', '--message', version],
    ])
      await must('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.org', ...args], { cwd: stack.root });
    await stack.scriptInside('start.sh');
  });
  afterAll(async () => {
    if (stack === undefined) return;
    await stack.down();
    for (const copy of (await copies()).split('\n').filter((name) => name !== ''))
      await stack.engine.docker(['volume', 'rm', copy]);
  });

  /** A directory with a version, and its image: the current one with other files. */
  async function makeVersion(version: string, files: Record<string, string> = {}): Promise<string> {
    const directory = join(stack.engine.directory, `version-${version}`);
    await copyCheckout(directory);
    for (const name of ['package.json', 'compose/program.yaml']) {
      const text = readFileSync(join(directory, name), 'utf8');
      const changed = text
        .replaceAll(`"version": "${current}"`, `"version": "${version}"`)
        .replaceAll(`holdfast:${current}`, `holdfast:${version}`);
      writeFileSync(join(directory, name), changed);
    }
    const context = join(stack.engine.directory, `image-${version}`);
    mkdirSync(context);
    const copied = Object.entries(files).map(([name, text]) => {
      writeFileSync(join(context, name), text);
      return `COPY ${name} /app/dist/${name}\n`;
    });
    writeFileSync(join(context, 'Dockerfile'), `FROM localhost/holdfast:${current}\n${copied.join('')}`);
    await stack.engine.docker(['build', '--quiet', '--tag', `localhost/holdfast:${version}`, context]);
    cpSync(join(home, 'compose/compose.test.yaml'), join(directory, 'compose/compose.test.yaml'));
    return directory;
  }

  async function upgrade(...args: string[]): Promise<{ code: number; output: string }> {
    try {
      return { code: 0, output: await stack.scriptInside('upgrade.sh', ...args) };
    } catch (error) {
      const output = String(error);
      return { code: Number(/: exit (\d+)\n/.exec(output)?.[1]), output };
    }
  }

  const runs = async (): Promise<string> =>
    stack.engine.docker(['inspect', '--format', '{{.Config.Image}}', await stack.container('core')]);

  const copies = (): Promise<string> =>
    stack.engine.docker(['volume', 'ls', '--quiet', '--filter', 'label=holdfast.before-upgrade']);

  const mark = (text: string): Promise<string> =>
    stack.exec('management', 'sh', '-c', `echo ${text} >>/var/lib/holdfast/management/mark`);

  const marks = (): Promise<string> => stack.exec('management', 'cat', '/var/lib/holdfast/management/mark');

  it('goes back by itself, volumes included, when the core cannot start, and health says so', async () => {
    await mark('before');
    const broken = await makeVersion('9.9.9', { 'core.js': BROKEN_CORE });
    expect(await upgrade('apply', '--from', broken, '--timeout', '4')).toMatchObject({
      code: 4,
      output: expect.stringContaining(`${current} runs and passed the connection check`),
    });
    expect([await runs(), await marks(), await copies()]).toEqual([`localhost/holdfast:${current}`, 'before', '']);
    expect(await upgrade('check', '--from', broken)).toMatchObject({
      code: 11,
      output: expect.stringMatching(/failed +earlier upgrade +the upgrade to 9\.9\.9 failed/),
    });
    expect(await upgrade('check', '--from', broken, '--clear')).toMatchObject({
      code: 10,
      output: expect.stringMatching(/ok +earlier upgrade/),
    });
  });

  it('runs the new version, and returns with the current data', async () => {
    const good = await makeVersion('9.0.0');
    expect(await upgrade('apply', '--from', good)).toMatchObject({ code: 0 });
    expect([await runs(), (await copies()) === '']).toEqual(['localhost/holdfast:9.0.0', false]);
    await mark('after');
    expect(await upgrade('back')).toMatchObject({ code: 0 });
    expect([await runs(), await marks(), await copies()]).toEqual([
      `localhost/holdfast:${current}`,
      'before\nafter',
      '',
    ]);
    await must('git', ['diff', '--quiet'], { cwd: stack.root });
  });
});
