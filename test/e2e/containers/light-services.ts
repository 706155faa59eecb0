// What the tests of the light stack ask about its services.

import { OUR_IMAGE } from '../../../packages/setup/test/compose.ts';
import { eventually } from '../embedded/embedded.ts';
import type { SharedLight } from './shared-light.ts';

/** Those that stay up. */
export const SERVICES = [
  'app-database',
  'core-database',
  'identity',
  'core',
  'management',
  'backup',
  'caddy',
  'flows',
  'video',
] as const;
export type Service = (typeof SERVICES)[number];

interface Inspected {
  Config: { Labels: Record<string, string | undefined> };
  State: { StartedAt: string };
  NetworkSettings: { Networks: Record<string, { IPAddress: string; Gateway: string }> };
}

/** The address of each `service@network` of the stack. */
export async function addressesOf(light: SharedLight): Promise<Map<string, string>> {
  const ids = (await light.compose('ps', '--quiet')).split('\n');
  const found = JSON.parse(await light.engine.docker(['inspect', ...ids])) as Inspected[];
  return new Map(
    found.flatMap(({ Config, NetworkSettings }) =>
      Object.entries(NetworkSettings.Networks).map(([network, { IPAddress }]) => [
        `${Config.Labels['com.docker.compose.service'] ?? ''}@${network.replace(`${light.project}_`, '')}`,
        IPAddress,
      ]),
    ),
  );
}

/** The engine's host, as that service sees it. */
export async function gatewayOf(light: SharedLight, service: string, network: string): Promise<string> {
  const { NetworkSettings } = await light.inspect<Inspected>(service);
  return NetworkSettings.Networks[`${light.project}_${network}`]?.Gateway ?? '';
}

export async function startedAt(light: SharedLight, service: string): Promise<string> {
  return (await light.inspect<Inspected>(service)).State.StartedAt;
}

/** Every service runs, and is healthy where it can say so. */
export async function isHealthy(light: SharedLight): Promise<boolean> {
  const states = new Map(
    (await light.ps()).map(({ Service, State, Health }) => [Service, `${State} ${Health}`.trim()]),
  );
  return SERVICES.every((service) => ['running', 'running healthy'].includes(states.get(service) ?? ''));
}

export async function becomesHealthy(light: SharedLight, withinMs = 180_000): Promise<void> {
  await eventually('every service is healthy', () => isHealthy(light), withinMs);
}

/** What a program of Node says on a network, in our image. */
export async function inNetwork(
  light: SharedLight,
  network: string,
  program: string,
  ...args: string[]
): Promise<string> {
  const where = ['--network', `${light.project}_${network}`, '--entrypoint', 'node'];
  return light.engine.docker(['run', '--rm', ...where, OUR_IMAGE, '--eval', program, ...args]);
}
