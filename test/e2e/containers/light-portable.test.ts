// The light stack with three core nodes: the stack suite on it, by a process of its own, and each
// process killed while devices report; then with one core again.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, home, outcomeOf } from '../embedded/embedded.ts';
import { PORTABLE_FILES } from '../embedded/portable.ts';
import { type LightAuthenticator, openAuthenticator } from './light-authenticator.ts';
import { CLUSTER_SERVICES, Phone, toCluster, toOneCore } from './light-cluster.ts';
import { becomesHealthy } from './light-services.ts';
import { corePlace, enrollThroughCaddy, type LightWorld, makeWorld, newEnrollment, newUser } from './light-world.ts';
import { obstacle } from './shared-engine.ts';
import { sharedLight, type SharedLight } from './shared-light.ts';
import { administer, throughCaddy } from './through-caddy.ts';

interface Results {
  testResults: {
    name: string;
    status: string;
    message: string;
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[];
  }[];
}

/** A container that is killed is back and healthy within this; measured are some ten seconds. */
const HEALS_WITHIN_MS = 120_000;
/** How many connections a device may lose by it. */
const VICTIMS = [
  ['core-2', 1],
  ['core', 1],
  ['nats', 0],
  ['streaming', 1],
  ['management', 0],
] as const;

const CLUSTER = new Set<string>(CLUSTER_SERVICES);

describe.skipIf(obstacle !== '')('the light stack with three core nodes', () => {
  let light: SharedLight;
  let world: LightWorld;
  let authenticator: LightAuthenticator;
  let phones: Phone[] = [];
  let results: Results['testResults'] = [];
  let text = '';

  beforeAll(async () => {
    light = await sharedLight();
    authenticator = await openAuthenticator(light, 'streaming');
    world = await makeWorld(light, authenticator);
    await toCluster(light);
    await authenticator.lookAgain();
    await world.isWhole();
    const report = join(authenticator.stack.data, 'report.json');
    const reporters = ['--reporter', 'json', '--outputFile', report];
    const program = [
      join(home, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--project',
      'real',
      '--no-file-parallelism',
      '--no-isolate',
    ];
    const env = { ...process.env, HOLDFAST_STACK_FILE: authenticator.stackFile };
    const child = spawn(process.execPath, [...program, ...reporters, ...PORTABLE_FILES], {
      cwd: home,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    ({ output: text } = await outcomeOf(child));
    ({ testResults: results } = JSON.parse(readFileSync(report, 'utf8')) as Results);
    // The suite deletes stored events, of the world before too.
    world = await makeWorld(light, authenticator);
  });
  afterAll(async () => {
    for (const phone of phones) await phone.leave();
    await authenticator[Symbol.asyncDispose]();
    if ((light.env['COMPOSE_FILE'] ?? '').includes('cluster')) await toOneCore(light);
  });

  it.each(PORTABLE_FILES)('passes %s', (file) => {
    const found = results.find(({ name }) => relative(home, name) === file);
    expect(found, text.slice(-3000)).toBeDefined();
    const failed = found?.assertionResults.filter(({ status }) => status === 'failed') ?? [];
    const passed = found?.assertionResults.filter(({ status }) => status === 'passed') ?? [];
    expect(failed.map(({ fullName, failureMessages }) => [fullName, ...failureMessages])).toEqual([]);
    expect([found?.status, found?.message]).toEqual(['passed', '']);
    expect(passed.length).toBeGreaterThan(0);
  });

  it('spreads devices over its nodes and shows their own addresses', async () => {
    const [ada, bob] = (phones = await twoPhones());
    await Promise.all([ada?.isHeardBy(bob as Phone, 20_000), bob?.isHeardBy(ada as Phone, 20_000)]);
    const { results: clients } = await administer<{ results: { username: string; node?: string; address: string }[] }>(
      light,
      '/api/clients',
    );
    const own = clients.filter(({ username }) => username.startsWith('phone-'));
    expect(new Set(own.map(({ node }) => node)).size).toBe(2);
    for (const { address } of own) expect(light.engine.clients).toContain(address);
  });

  it.each(VICTIMS)(
    'loses nothing when %s is killed, and costs a device at most %i connections',
    async (victim, most) => {
      const [ada, bob] = phones as [Phone, Phone];
      const before = phones.map(({ lost }) => lost);
      await light.killTogether([victim]);
      expect((await throughCaddy(light, '/api/ping')).status).toBe(200);
      await eventually(`${victim} is healthy`, async () => (await light.health(victim)) === 'healthy', HEALS_WITHIN_MS);
      await Promise.all([ada.isHeardBy(bob, 60_000), bob.isHeardBy(ada, 60_000)]);
      expect(phones.map(({ lost }, index) => lost - (before[index] ?? 0) <= most)).toEqual([true, true]);
      await world.isWhole();
    },
  );

  it('becomes one core again, and keeps everything', async () => {
    for (const phone of phones.splice(0)) await phone.leave();
    await toOneCore(light);
    await authenticator.lookAgain();
    await becomesHealthy(light);
    expect((await light.ps()).map(({ Service }) => Service).filter((each) => CLUSTER.has(each))).toEqual([]);
    await world.isWhole();
  });

  async function twoPhones(): Promise<Phone[]> {
    await administer(light, '/api/groups', { method: 'POST', json: { name: 'Cluster' } });
    const directory = mkdtempSync(join(authenticator.stack.data, 'phones-'));
    const core = corePlace(light, authenticator);
    return Promise.all(
      ['phone-ada', 'phone-bob'].map(async (name) => {
        const { token } = await newEnrollment(light, await newUser(light, name, ['Cluster']));
        return new Phone(core, await enrollThroughCaddy(light, directory, name, token), name);
      }),
    );
  }
});
