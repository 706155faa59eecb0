// The light stack in containers, brought up as its operator does, in a copy of the checkout, with
// the layer of the tests.

import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseEnv } from 'node:util';
import { eventually, home } from '../embedded/embedded.ts';
import { withoutDigests } from './base-images.ts';
import { type ContainerEngine, must, type Ran } from './engine.ts';
import type { SharedEngine } from './shared-engine.ts';

export interface PublishedPorts {
  http: number;
  https: number;
  enrollment: number;
  streaming: number;
}

const PRODUCTION_PORTS: PublishedPorts = { http: 80, https: 443, enrollment: 8446, streaming: 8089 };
export const TEST_PORTS: PublishedPorts = { http: 10080, https: 10443, enrollment: 18446, streaming: 18089 };

/** Returns when what is named, or else everything, is healthy. */
const UP = ['up', '--detach', '--no-build', '--wait', '--wait-timeout', '240'];

export interface StackOptions {
  /** A name for subdomain mode; otherwise direct mode at the engine's address. */
  name?: string;
  /** Further layers of the checkout, such as compose/compose.runtime.yaml. */
  layers?: string[];
  /** Files of the tests that become part of the checkout, by their place in it. */
  files?: Record<string, string>;
  /** Lines of .env from before setup.sh. */
  env?: Record<string, string>;
  /** Puts the checkout into its directory; otherwise it is this one. */
  checkout?: (directory: string) => Promise<void>;
  /** Without compose.test.yaml: the ports and the project of production. */
  production?: boolean;
  /** The archive that the stack is set up from; otherwise it is a light one. */
  release?: string;
  /** What its release needs, made while our image is built. */
  besides?: () => Promise<void>;
}

export interface ContainerState {
  Service: string;
  Name: string;
  State: string;
  Health: string;
  ExitCode: number;
}

/**
 * A check of health that is made twice a second until the first success, which containers in the chain of a start wait
 * for, and every few seconds from then on: a check costs as much as the service itself.
 */
const CALM = `sh, -c, '[ ! -e /dev/shm/answered ] || sleep 6; "$$@" && : >/dev/shm/answered', sh`;

/** Copies what git knows of the checkout, as it is now, but for `asInTests`. */
export async function copyCheckout(directory: string): Promise<void> {
  const listed = await must('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: home });
  for (const file of listed.split('\0').filter((name) => name !== '')) {
    mkdirSync(dirname(join(directory, file)), { recursive: true });
    cpSync(join(home, file), join(directory, file), { recursive: true, verbatimSymlinks: true });
  }
  asInTests(directory);
}

/** Leaves digests out, which no stand-in for an image can have, and lets health be checked soon and calmly. */
export function asInTests(checkout: string): void {
  for (const file of globSync('compose/**/{*.yaml,Dockerfile}', { cwd: checkout }))
    writeFileSync(
      join(checkout, file),
      withoutDigests(file, checkout)
        .replaceAll(/\binterval: \d+s/g, 'interval: 500ms')
        .replaceAll(/\btimeout: \d+s/g, 'timeout: 40s')
        .replaceAll(/\btest: \[CMD, /g, () => `test: [CMD, ${CALM}, `),
    );
}

export class ComposeStack implements AsyncDisposable {
  readonly root: string;
  readonly engine: ContainerEngine;
  readonly #options: StackOptions;
  readonly #relay: string;

  constructor({ engine, relay }: SharedEngine, options: StackOptions) {
    this.engine = engine;
    this.#relay = relay.url;
    this.#options = options;
    this.root = join(engine.directory, `checkout-${randomBytes(3).toString('hex')}`);
  }

  get ports(): PublishedPorts {
    return this.#options.production === true ? PRODUCTION_PORTS : TEST_PORTS;
  }

  /** Everything in .env, the secrets too. */
  get env(): Record<string, string> {
    return parseEnv(readFileSync(join(this.root, '.env'), 'utf8')) as Record<string, string>;
  }

  /** The checkout and its .env, made by the script that an operator calls. */
  async prepare(): Promise<this> {
    const { name, layers = [], files = {}, env = {}, production = false, release, besides } = this.#options;
    await (this.#options.checkout ?? copyCheckout)(this.root);
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.root, file)), { recursive: true });
      writeFileSync(join(this.root, file), text);
    }
    const settings = Object.entries(env).map(([key, value]) => `${key}=${value}\n`);
    if (settings.length > 0) writeFileSync(join(this.root, '.env'), settings.join(''));
    // It is built by the script too, which knows no way to npm's registry from here.
    if (release !== undefined) await Promise.all([this.build(), besides?.()]);
    const address = ['--address', name ?? this.engine.address, '--mode', name === undefined ? 'direct' : 'subdomain'];
    await this.script('setup.sh', release ?? '--light', ...address);
    const ofTests = production ? [] : ['compose.test'];
    const all = [this.env['COMPOSE_FILE'], ...layers, ...ofTests.map((layer) => `compose/${layer}.yaml`)].join(':');
    const text = readFileSync(join(this.root, '.env'), 'utf8');
    writeFileSync(join(this.root, '.env'), text.replace(/^COMPOSE_FILE=.*$/m, `COMPOSE_FILE=${all}`));
    return this;
  }

  /** Our image, once for all stacks of an engine: the second time everything is there already. */
  async build(): Promise<void> {
    const proxy = ['--build-arg', `HTTPS_PROXY=${this.#relay}`];
    await this.compose('-f', 'compose/program.yaml', 'build', '--quiet', ...proxy, 'program');
  }

  /** A script of the checkout, on this machine; what it printed. */
  script(name: string, ...args: string[]): Promise<string> {
    return must(join(this.root, 'scripts', name), args, { cwd: this.root, env: this.engine.environment });
  }

  /**
   * The same among the engine's processes and in its network: on the machine that the stack runs
   * on.
   */
  scriptInside(name: string, ...args: string[]): Promise<string> {
    return this.engine.inside('env', ...this.#scriptCall(name, args));
  }

  /** The same for a script that may fail or be killed, with all that it started, as one group of processes. */
  beginInside(name: string, ...args: string[]): ChildProcess {
    return this.engine.beginInside('env', ...this.#scriptCall(name, args));
  }

  #scriptCall(name: string, args: string[]): string[] {
    const environment = Object.entries(this.engine.environment).map(([key, value]) => `${key}=${value}`);
    return ['-i', ...environment, join(this.root, 'scripts', name), ...args];
  }

  /** Returns when every service is healthy. */
  async up(...services: string[]): Promise<void> {
    const { code, stderr } = await this.tryCompose(...UP, ...services);
    if (code === 0) return;
    const states = (await this.ps()).map(({ Service, State, Health, ExitCode }) =>
      [Service, State, Health, ExitCode].join(' '),
    );
    const logs = await this.compose('logs', '--no-color', '--tail', '40');
    throw new Error([stderr.slice(-3000), ...states, logs].join('\n'));
  }

  /** docker compose in the root of the checkout, as an operator calls it. */
  compose(...args: string[]): Promise<string> {
    return this.engine.docker(['compose', ...args], { cwd: this.root });
  }

  tryCompose(...args: string[]): Promise<Ran> {
    return this.engine.tryDocker(['compose', ...args], { cwd: this.root });
  }

  async ps(): Promise<ContainerState[]> {
    const lines = (await this.compose('ps', '--all', '--format', 'json')).split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as ContainerState);
  }

  /** The identity of a service's container, which changes when it is recreated. */
  async container(service: string): Promise<string> {
    return this.compose('ps', '--all', '--quiet', '--no-trunc', service);
  }

  async inspect<T>(service: string): Promise<T> {
    const [found] = JSON.parse(await this.engine.docker(['inspect', await this.container(service)])) as T[];
    if (found === undefined) throw new Error(`there is no container of ${service}`);
    return found;
  }

  async health(service: string): Promise<string> {
    return this.engine.docker(['inspect', '--format', '{{.State.Health.Status}}', await this.container(service)]);
  }

  exec(service: string, ...command: string[]): Promise<string> {
    return this.compose('exec', '--no-TTY', service, ...command);
  }

  tryExec(service: string, ...command: string[]): Promise<Ran> {
    return this.tryCompose('exec', '--no-TTY', service, ...command);
  }

  /** Ends the first process and all that it started, which the restart policy sees as a crash. */
  async kill(service: string): Promise<void> {
    const { State } = await this.inspect<{ State: { Pid: number } }>(service);
    await this.engine.inside('kill', '-KILL', String(State.Pid));
  }

  /** Returns when each of them was started again. */
  async killTogether(services: readonly string[]): Promise<void> {
    const starts = async (): Promise<string[]> => {
      const ids = await Promise.all(services.map((service) => this.container(service)));
      return (await this.engine.docker(['inspect', '--format', '{{.State.StartedAt}}', ...ids])).split('\n');
    };
    const before = await starts();
    await Promise.all(services.map((service) => this.kill(service)));
    await eventually(
      `${services.join(', ')} are started again`,
      async () => (await starts()).every((start) => !before.includes(start)),
      60_000,
    );
  }

  /** A new container in place of the old one, on the same volumes. */
  async recreate(...services: string[]): Promise<void> {
    await this.compose(...UP, '--no-deps', '--force-recreate', ...services);
  }

  logs(service: string): Promise<string> {
    return this.compose('logs', '--no-color', '--no-log-prefix', service);
  }

  /**
   * Bytes of memory that each service's container holds, page cache that can be dropped left out.
   */
  async memory(): Promise<Record<string, number>> {
    const running = (await this.ps()).filter(({ State }) => State === 'running');
    const held = await Promise.all(
      running.map(async ({ Service, Name }) => {
        const text = await must('curl', [
          '-sS',
          '--unix-socket',
          join(this.engine.directory, 'engine.sock'),
          `http://engine/containers/${Name}/stats?stream=false&one-shot=true`,
        ]);
        const { memory_stats } = JSON.parse(text) as { memory_stats: { usage: number; stats: Record<string, number> } };
        const droppable = memory_stats.stats['total_inactive_file'] ?? memory_stats.stats['inactive_file'] ?? 0;
        return [Service, memory_stats.usage - droppable] as const;
      }),
    );
    return Object.fromEntries(held);
  }

  /** What the engine has of this project besides images. */
  async leftovers(): Promise<string[]> {
    const project = await this.projectName();
    const filter = ['--filter', `label=com.docker.compose.project=${project}`];
    const containers = await this.engine.docker(['ps', '--all', ...filter, '--format', 'container {{.Names}}']);
    const volumes = await this.engine.docker(['volume', 'ls', ...filter, '--format', 'volume {{.Name}}']);
    const networks = await this.engine.docker(['network', 'ls', ...filter, '--format', 'network {{.Name}}']);
    return [containers, volumes, networks].flatMap((text) => text.split('\n')).filter((line) => line !== '');
  }

  async projectName(): Promise<string> {
    return (JSON.parse(await this.compose('config', '--format', 'json')) as { name: string }).name;
  }

  /** Takes it down with its volumes. */
  async down(): Promise<void> {
    await this.compose('down', '--volumes', '--remove-orphans', '--timeout', '30');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.down();
  }
}

/** Up and healthy. */
export async function composeStack(shared: SharedEngine, options: StackOptions = {}): Promise<ComposeStack> {
  const stack = await new ComposeStack(shared, options).prepare();
  await stack.build();
  await stack.up();
  return stack;
}
