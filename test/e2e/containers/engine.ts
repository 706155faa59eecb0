// A real Docker engine with a network of its own, in which the test is a client from another
// machine.

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { asRoot, cleanEnvironment, eventually } from '../embedded/embedded.ts';

const PATH = `${process.env['PATH']}:/usr/sbin:/sbin`;
/** A proxy of this machine before npm's registry may sign by an authority of its own. */
const { NODE_EXTRA_CA_CERTS } = process.env;
const PROBE = cleanEnvironment({ PATH, ...(NODE_EXTRA_CA_CERTS === undefined ? {} : { NODE_EXTRA_CA_CERTS }) });
const works = (command: string): boolean => spawnSync('sh', ['-c', command], { env: PROBE }).status === 0;
export const MIRROR = 'http://deb.debian.org/debian';

const NEEDED = { dockerd: 'docker.io', ip: 'iproute2', iptables: 'iptables', mmdebstrap: 'mmdebstrap', npm: 'npm' };

/** Compose 2.24 was the first to know !override and env_file with required. */
const COMPOSE_IS_NEW = `docker buildx version && docker compose version --short | awk -F '[v.]' '{ exit !($1 + 0 > 2 || $1 == 2 && $2 >= 24) }'`;

const OVERLAY_WORKS = `
  cd "$(mktemp -d -t holdfast-probe-XXXXXX)" && trap 'rm -rf "$PWD"' EXIT && mkdir lower upper work merged &&
  unshare --mount mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged`;

const MIRROR_ANSWERS = `curl -fsS -o /dev/null -I --max-time 20 --retry 2 ${MIRROR}/dists/bookworm/InRelease`;
const REGISTRY_ANSWERS = 'npm view npm@11 version';

/** Why no engine with containers can be had here; empty when it can. */
export function containersObstacle(): string {
  if (!asRoot) return 'only root can start a container engine';
  for (const [command, debianPackage] of Object.entries(NEEDED))
    if (!works(`command -v ${command}`)) return `there is no ${command}: apt-get install ${debianPackage}`;
  if (!works(COMPOSE_IS_NEW)) return 'there is no Compose 2.24 with buildx: .ci/run brings them';
  if (!works('unshare --mount --pid --net --fork true')) return 'this machine grants root no namespaces';
  if (!works('unshare --net iptables -t nat -L')) return 'this machine lets root set no packet filter';
  if (!works(OVERLAY_WORKS)) return `${tmpdir()} carries no overlay file system`;
  if (!works(MIRROR_ANSWERS)) return "Debian's mirror does not answer, and the base images are made of its packages";
  return works(REGISTRY_ANSWERS) ? '' : "npm's registry does not answer, and the images are made of its packages";
}

export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
}

export class ContainerEngine implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'holdfast-engine-'));
  readonly interface = `holdf${String(Math.floor(Math.random() * 1e6))}`;
  readonly #prefix = freePrefix();
  /** Where the engine's published ports are. */
  readonly address = `${this.#prefix}.2`;
  /** The test's own addresses: each is another client to who is behind a published port. */
  readonly clients = [1, 11, 12, 13, 14, 15, 16, 17, 18, 19].map((host) => `${this.#prefix}.${String(host)}`);
  /** What a program needs to ask this engine and no other. */
  readonly environment: Record<string, string>;
  readonly process: ChildProcess;

  constructor() {
    writeFileSync(join(this.directory, 'daemon.json'), '{}');
    const script = join(import.meta.dirname, 'engine.sh');
    const log = openSync(join(this.directory, 'log'), 'a');
    // Not in the test's process group: an interrupt at the keyboard must not end who cleans up.
    this.process = spawn(script, [this.directory, this.interface, this.#prefix], {
      env: { PATH },
      stdio: ['pipe', log, log],
      detached: true,
    });
    this.environment = {
      ...cleanEnvironment({ PATH }),
      DOCKER_HOST: `unix://${join(this.directory, 'engine.sock')}`,
      DOCKER_CONFIG: join(this.directory, 'client'),
      DOCKER_BUILDKIT: '1',
      BUILDKIT_PROGRESS: 'plain',
    };
  }

  /** Returns when it answers. */
  async start(): Promise<this> {
    const ready = async (): Promise<boolean> =>
      existsSync(join(this.directory, 'wired')) && (await this.tryDocker(['info'])).code === 0;
    await eventually('the container engine answers', ready, 60_000).catch((error: unknown) => {
      throw new Error(readFileSync(join(this.directory, 'log'), 'utf8').slice(-3000), { cause: error });
    });
    return this;
  }

  tryDocker(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    return ran('docker', args, { ...options, env: { ...this.environment, ...options.env } });
  }

  /** What docker printed. Whatever it refuses is an error with its own words. */
  async docker(args: readonly string[], options: RunOptions = {}): Promise<string> {
    const { code, stdout, stderr } = await this.tryDocker(args, options);
    if (code !== 0)
      throw new Error(`docker ${args.join(' ')}: exit ${String(code)}\n${(stdout + stderr).slice(-6000)}`);
    return stdout.trim();
  }

  /** Runs a program of this machine among the engine's processes and in its network. */
  inside(program: string, ...args: string[]): Promise<string> {
    return must('nsenter', [...this.#entered(), program, ...args]);
  }

  /** The same, in a group of processes of its own. */
  beginInside(program: string, ...args: string[]): ChildProcess {
    return spawn('nsenter', [...this.#entered(), program, ...args], {
      env: cleanEnvironment({ PATH }),
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
  }

  #entered(): string[] {
    const process = readFileSync(join(this.directory, 'inside'), 'utf8').trim();
    // The process itself stands outside of the numbers that it gives its children.
    return ['--target', process, '--mount', '--net', `--pid=/proc/${process}/ns/pid_for_children`];
  }

  /** Ends it with all its containers and leaves nothing; may be called twice. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const over = once(this.process, 'exit');
      this.process.stdin?.end();
      await over;
    }
    if (existsSync(this.directory)) throw new Error(`the container engine left ${this.directory} behind`);
  }
}

/** A network that this machine has no address in. */
export function freePrefix(): string {
  const taken = Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? []);
  for (;;) {
    const prefix = `10.213.${String(Math.floor(Math.random() * 256))}`;
    if (!taken.some((address) => address.startsWith(`${prefix}.`))) return prefix;
  }
}

/** Runs a program to its end and says how it ended. */
export function ran(program: string, args: readonly string[], options: RunOptions): Promise<Ran> {
  return new Promise((done, failed) => {
    execFile(program, [...args], { ...options, maxBuffer: 256 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== 'number')
        failed(new Error(`${program} did not run`, { cause: error }));
      else done({ code: Number(error?.code ?? 0), stdout, stderr });
    });
  });
}

/** The same for a program that has to succeed. */
export async function must(program: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const env = { ...cleanEnvironment({ PATH }), ...options.env };
  const { code, stdout, stderr } = await ran(program, args, { ...options, env });
  if (code !== 0)
    throw new Error(`${program} ${args.join(' ')}: exit ${String(code)}\n${(stdout + stderr).slice(-6000)}`);
  return stdout;
}
