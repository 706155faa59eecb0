// The one engine of a run, with its images and its way to npm: made by the first file that asks,
// used by all of them. It ends when the process of the tests ends (see engine.sh).

import { makeBaseImages } from './base-images.ts';
import { ContainerEngine, containersObstacle } from './engine.ts';
import { type PackageRelay, startPackageRelay } from './package-relay.ts';

export interface SharedEngine {
  engine: ContainerEngine;
  relay: PackageRelay;
  /** How long each image took, in milliseconds. */
  took: Record<string, number>;
}

export const obstacle = containersObstacle();
if (obstacle !== '') process.stderr.write(`\nNo test of containers is run: ${obstacle}.\n`);

let shared: Promise<SharedEngine> | undefined;

export function sharedEngine(): Promise<SharedEngine> {
  shared ??= begin();
  return shared;
}

async function begin(): Promise<SharedEngine> {
  const engine = await new ContainerEngine().start();
  const relay = await startPackageRelay(engine.clients[0] ?? '');
  const started = performance.now();
  const took = await makeBaseImages(engine);
  const total = Math.round(performance.now() - started);
  process.stdout.write(`base images: ${String(total)} ms ${JSON.stringify(took)}\n`);
  return { engine, relay, took };
}
