// Makes three core nodes of the one in the light stack, as its operator does, and one core again.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { CorePlace, Device } from '../embedded/core-client.ts';
import { eventually } from '../embedded/embedded.ts';
import { letIn, position, type StreamDevice } from '../embedded/stream-device.ts';
import { hostsOf } from './acme.ts';
import type { ComposeStack } from './compose-stack.ts';

/** Beside the services of the light stack. */
export const CLUSTER_SERVICES = ['core-2', 'core-3', 'nats', 'streaming', 'management-2'] as const;

/** They stand after the layer of the tests. To the second one too every name is Caddy (acme.ts). */
const TEST_LAYERS = ['compose/compose.cluster.test.yaml', 'compose/compose.cluster.names.yaml'];
const NAMES = (hosts: readonly string[]): string =>
  `services: { management-2: { extra_hosts: [${hosts.join(', ')}] } }\n`;
/** In the network `edge` of the tests. */
const CADDY = '172.16.65.2';
const RECONNECT_AFTER_MS = 200;
const REPORT_EVERY_MS = 100;

function setLayers(stack: ComposeStack, change: (layers: string[]) => string[]): void {
  const file = join(stack.root, '.env');
  const layers = change((stack.env['COMPOSE_FILE'] ?? '').split(':'));
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^COMPOSE_FILE=.*$/m, `COMPOSE_FILE=${layers.join(':')}`));
}

export async function toCluster(stack: ComposeStack): Promise<void> {
  await stack.script('setup.sh', '--light', '--cluster');
  const hosts = hostsOf(stack.env['SERVER_ADDRESS'] ?? '').map((host) => `'${host}:${CADDY}'`);
  writeFileSync(join(stack.root, TEST_LAYERS[1] ?? ''), NAMES(hosts));
  setLayers(stack, (layers) => [...layers, ...TEST_LAYERS]);
  await stack.up();
}

export async function toOneCore(stack: ComposeStack): Promise<void> {
  await stack.compose('down', '--timeout', '30');
  setLayers(stack, (layers) => layers.filter((layer) => !TEST_LAYERS.includes(layer)));
  await stack.script('setup.sh', '--light', '--alone');
  await stack.up();
  await stack.engine.docker(['volume', 'rm', `${await stack.projectName()}_nats-certificate`]);
}

/** A device that reports all the time, and connects again whenever it has lost its connection. */
export class Phone {
  readonly name: string;
  /** Connections that it had, and lost. */
  lost = 0;
  readonly #core: CorePlace;
  readonly #device: Device;
  readonly #heard = new Set<string>();
  #stream: StreamDevice | undefined;
  #isDone = false;
  #reports = 0;
  readonly #running: Promise<void>;

  constructor(core: CorePlace, device: Device, name: string) {
    this.#core = core;
    this.#device = device;
    this.name = name;
    this.#running = this.#run();
  }

  /** Resolves when something that this one says from now on has reached the other. */
  async isHeardBy(other: Phone, withinMs: number): Promise<void> {
    const from = this.#reports;
    await eventually(
      `${other.name} hears ${this.name}`,
      () => [...other.#heard].some((uid) => uid.startsWith(`${this.name}-`) && Number(uid.split('-').at(-1)) > from),
      withinMs,
    );
  }

  async leave(): Promise<void> {
    this.#isDone = true;
    this.#stream?.leave();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isDone) {
      try {
        this.#stream = await letIn(this.#core, this.#device, this.name);
        await this.#report(this.#stream);
        this.lost += 1;
      } catch {
        // Nobody is there yet.
      }
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_AFTER_MS));
    }
  }

  async #report(stream: StreamDevice): Promise<void> {
    while (stream.isOpen && !this.#isDone) {
      stream.send(position(`${this.name}-${String((this.#reports += 1))}`, this.name, 47));
      for (const event of stream.heard.splice(0)) this.#heard.add(event.uid());
      await new Promise((resolve) => setTimeout(resolve, REPORT_EVERY_MS));
    }
  }
}
