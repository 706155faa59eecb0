// The life of the light stack: made anew, killed, taken down and brought up it loses nothing;
// afterwards it leaves nothing.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LightAuthenticator, openAuthenticator } from './light-authenticator.ts';
import { addressesOf, becomesHealthy, SERVICES } from './light-services.ts';
import { type LightWorld, makeWorld } from './light-world.ts';
import { obstacle } from './shared-engine.ts';
import { sharedLight, type SharedLight } from './shared-light.ts';
import { administer } from './through-caddy.ts';

/** A container that is killed is back and healthy within this; measured are some ten seconds. */
const HEALS_WITHIN_MS = 120_000;
/** Every service, in groups whose other half goes on. */
const TOGETHER = [/database$/, /^(?:identity|core|flows|video|backup)$/, /^(?:management|caddy)$/].map((name) => ({
  services: SERVICES.filter((service) => name.test(service)),
}));
const KEEPS_ALL = { cot: null, geochat: null, files: null, missionpackages: null, missions: null };

describe.skipIf(obstacle !== '')('the light stack', () => {
  let light: SharedLight;
  let authenticator: LightAuthenticator;
  let world: LightWorld;
  let history: unknown;

  beforeAll(async () => {
    light = await sharedLight();
    authenticator = await openAuthenticator(light);
    world = await makeWorld(light, authenticator);
    const json = { policy: { ...KEEPS_ALL, cot: 365 }, cron: '-' };
    await administer(light, '/api/retention', { method: 'PUT', json });
    history = await retentionHistory();
  });
  afterAll(() => authenticator?.[Symbol.asyncDispose]());

  async function retentionHistory(): Promise<unknown> {
    const { policy } = await administer<{ policy: object }>(light, '/api/retention');
    const { results } = await administer<{ results: object[] }>(light, '/api/retention/runs');
    return { policy, results };
  }

  async function nothingIsLost(): Promise<void> {
    await becomesHealthy(light, HEALS_WITHIN_MS);
    await authenticator.lookAgain();
    await world.isWhole();
    expect(await retentionHistory()).toEqual(history);
  }

  it('has every service in one of the groups', () => {
    expect(TOGETHER.flatMap(({ services }) => services).toSorted()).toEqual([...SERVICES].toSorted());
  });

  it.each(TOGETHER)('loses nothing when $services are made anew', async ({ services }) => {
    const containers = (): Promise<string[]> => Promise.all(services.map((service) => light.container(service)));
    const before = await containers();
    await light.recreate(...services);
    expect((await containers()).filter((each) => before.includes(each))).toEqual([]);
    await nothingIsLost();
  });

  it.each(TOGETHER)('heals by itself when $services are killed', async ({ services }) => {
    await light.killTogether(services);
    await nothingIsLost();
  });

  it('is all there when it was taken down and brought up again', async () => {
    const address = (await addressesOf(light)).get('caddy@edge');
    await light.compose('down', '--timeout', '30');
    expect((await light.leftovers()).filter((each) => !each.startsWith('volume '))).toEqual([]);
    await light.up();
    expect((await addressesOf(light)).get('caddy@edge')).toBe(address);
    await nothingIsLost();
  });

  it('leaves no container, network or volume when it is taken down with its volumes', async () => {
    await light.down();
    expect(await light.leftovers()).toEqual([]);
    await light.up();
    await becomesHealthy(light);
    await light.readPublicCa();
    await expect.poll(() => administer(light, '/api/me').then(() => true, () => false)).toBe(true); // prettier-ignore
  });
});
