// What is set in .env reaches the light stack, what is wrong is said, a container keeps to its
// memory, and no log holds a secret.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../embedded/embedded.ts';
import { type LightAuthenticator, openAuthenticator } from './light-authenticator.ts';
import { becomesHealthy, SERVICES, startedAt } from './light-services.ts';
import { type LightWorld, makeWorld } from './light-world.ts';
import { obstacle } from './shared-engine.ts';
import { sharedLight, type SharedLight } from './shared-light.ts';
import { administer } from './through-caddy.ts';

const GIGABYTE = 1_000_000_000;

describe.skipIf(obstacle !== '')('the light stack', () => {
  let light: SharedLight;
  let authenticator: LightAuthenticator;
  let world: LightWorld;

  beforeAll(async () => {
    light = await sharedLight();
    authenticator = await openAuthenticator(light);
    world = await makeWorld(light, authenticator);
  });
  afterAll(() => authenticator?.[Symbol.asyncDispose]());

  it('stays under 1 GB as a whole', async () => {
    const held = await light.memory();
    delete held['acme'];
    const figures = Object.entries(held).map(([service, bytes]) => `${service} ${String(Math.round(bytes / 1e6))}`);
    const total = Object.values(held).reduce((sum, bytes) => sum + bytes, 0);
    process.stdout.write(`memory in MB: ${figures.join(', ')}, together ${String(Math.round(total / 1e6))}\n`);
    expect(Object.keys(held).toSorted()).toEqual([...SERVICES].toSorted());
    expect(total).toBeLessThan(GIGABYTE);
  });

  it('takes retention, MON_* and edited thresholds when it is brought up again', async () => {
    const file = join(light.root, '.env');
    const before = readFileSync(file, 'utf8');
    const figures = join(light.root, 'monitor/config/thresholds.yml');
    const shipped = readFileSync(figures, 'utf8');
    writeFileSync(file, `${before}\nCOT_RETENTION_DAYS=365\nRETENTION_CRON=0 0 4 * * ?\nMON_DISK_WARNING=71\n`);
    try {
      writeFileSync(figures, shipped.replace('critical: 90', 'critical: 91'));
      await shows('/api/health/config', { status: 'note', data: { changed: ['modules.disk.critical'] } });
      await light.up();
      await shows('/api/retention', { policy: { cot: 365 }, cron: '0 0 4 * * ?' });
      await shows('/api/settings', { thresholds: { modules: { disk: { warning: 71, critical: 91 } } } });
      await shows('/api/health/config', { status: 'ok' });
    } finally {
      writeFileSync(figures, shipped);
      writeFileSync(file, before);
      await light.up();
    }
    await becomesHealthy(light);
    await shows('/api/retention', { policy: { cot: null }, cron: '-' });
  });

  /** Management may have been healthy before it has found the others. */
  const shows = (path: string, what: object): Promise<void> =>
    expect.poll(() => administer(light, path).catch(String)).toMatchObject(what);

  it.each([
    ['configuration', 'COT_RETENTION_DAYS=0', /COT_RETENTION_DAYS/],
    ['management', 'MON_DISK_WARNING=much', /MON_DISK_WARNING/],
    ['core', 'SERVER_ADDRESS=', /SERVER_ADDRESS/],
  ])('says what is wrong with a setting of %s and ends: %s', async (service, setting, sentence) => {
    const run = ['run', '--rm', '--no-deps', '--no-TTY', '--env', setting, service];
    const { code, stdout, stderr } = await light.tryCompose(...run);
    expect([code === 0, stdout + stderr]).toEqual([false, expect.stringMatching(sentence)]);
  });

  it('a container that takes more memory than it may is ended by the kernel, and comes back', async () => {
    const hog = `
      require('node:fs').writeFileSync('/proc/1/oom_score_adj', '1000');
      const held = [];
      setInterval(() => held.push(Buffer.alloc(20_000_000, 1)), 5);`;
    const since = String(Math.floor(Date.now() / 1000));
    const before = await startedAt(light, 'flows');
    await light.tryExec('flows', 'node', '--eval', hog);
    await eventually('it is started again', async () => (await startedAt(light, 'flows')) !== before, 60_000);
    const until = String(Math.floor(Date.now() / 1000) + 1);
    const events = ['events', '--since', since, '--until', until, '--filter', 'event=oom', '--format', '{{.Actor.ID}}'];
    expect(await light.engine.docker(events)).toContain(await light.container('flows'));
    await becomesHealthy(light);
  });

  it('no log holds a password, token, cookie or key of this run', async () => {
    const { env } = light;
    const kept = Object.entries(env)
      .filter(([name]) => /PASSWORD|TOKEN|KEY/.test(name))
      .map(([, value]) => value);
    const secrets = [...kept, ...world.secrets].filter((secret) => secret.length > 8);
    expect(secrets.length).toBeGreaterThan(10);
    const texts = [...secrets, Buffer.from(`webadmin:${env['CORE_WEBADMIN_PASSWORD'] ?? ''}`).toString('base64')];
    for (const service of [...SERVICES, 'configuration']) {
      const log = await light.logs(service);
      expect([service, texts.filter((secret) => log.includes(secret))]).toEqual([service, []]);
    }
  });
});
