// A real Docker engine in namespaces of its own, for whoever asks a container runtime.

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect } from 'vitest';
import { asRoot, eventually } from '../../../test/e2e/embedded/embedded.ts';

const PATH = `${process.env['PATH']}:/usr/sbin:/sbin`;
const works = (command: string): boolean => spawnSync('sh', ['-c', command], { env: { PATH } }).status === 0;

/** Why no engine can be started here; empty when one can. */
export function engineObstacle(): string {
  if (!asRoot) return 'only root can start one';
  if (!works('command -v dockerd')) return 'there is no dockerd: apt-get install docker.io';
  if (!existsSync('/bin/busybox') || readFileSync('/bin/busybox').includes('/ld-'))
    return 'there is no static busybox: apt-get install busybox-static';
  return works('unshare --mount --pid --net --fork true') ? '' : 'this machine grants root no namespaces';
}

/**
 * dockerd in namespaces of its own: when its standard input ends, the kernel ends all its processes
 * and mounts.
 */
export class Engine {
  readonly directory = mkdtempSync(join(tmpdir(), 'holdfast-engine-'));
  readonly socket = join(this.directory, 'engine.sock');
  readonly #cgroup = basename(this.directory);
  readonly #process: ChildProcess;

  constructor() {
    const at = (name: string): string => join(this.directory, name);
    writeFileSync(at('daemon.json'), '{}');
    const namespaces = '--mount --pid --net --fork --mount-proc';
    const places = `--host unix://${this.socket} --data-root ${at('data')} --exec-root ${at('exec')} --pidfile ${at('pid')}`;
    const nothingElse = '--storage-driver vfs --bridge=none --iptables=false --ip6tables=false --ip-forward=false';
    const groups = `--cgroup-parent /${this.#cgroup} --exec-opt native.cgroupdriver=cgroupfs`;
    const dockerd = `dockerd --config-file ${at('daemon.json')} ${places} ${nothingElse} ${groups}`;
    this.#process = spawn(
      'unshare',
      [...namespaces.split(' '), 'sh', '-c', `mount -t tmpfs tmpfs /run && ${dockerd} & exec cat`],
      { env: { PATH }, stdio: ['pipe', 'ignore', openSync(at('log'), 'a')] },
    );
  }

  /** Asks the engine; false when it says no. */
  async ask(method: string, path: string, body: object | Buffer = {}): Promise<boolean> {
    const headers = { 'Content-Type': Buffer.isBuffer(body) ? 'application/x-tar' : 'application/json' };
    const requested = request({ socketPath: this.socket, method, path, headers, agent: false });
    requested.end(Buffer.isBuffer(body) ? body : JSON.stringify(body));
    const [response] = (await once(requested, 'response')) as [IncomingMessage];
    await response.toArray();
    return (response.statusCode ?? 500) < 400;
  }

  async ready(): Promise<void> {
    const answers = (): Promise<boolean> => this.ask('GET', '/_ping').catch(() => false);
    await eventually('dockerd answers', answers, 20_000).catch((error: unknown) => {
      throw new Error(readFileSync(join(this.directory, 'log'), 'utf8').slice(-3000), { cause: error });
    });
    const image = execFileSync('tar', ['-c', '-C', '/', 'bin/busybox'], { maxBuffer: 64 * 1024 * 1024 });
    expect(await this.ask('POST', '/images/create?fromSrc=-&repo=some&tag=1', image)).toBe(true);
  }

  async create(name: string, command: string, { HostConfig = {}, ...more }: { HostConfig?: object } & object = {}) {
    const Cmd = ['/bin/busybox', 'sh', '-c', command];
    const wanted = { Image: 'some:1', Cmd, HostConfig: { NetworkMode: 'none', ...HostConfig }, ...more };
    if (!(await this.ask('POST', `/containers/create?name=${name}`, wanted))) throw new Error(`not made: ${name}`);
  }

  async run(name: string, command: string, more: { HostConfig?: object } & object = {}): Promise<void> {
    await this.create(name, command, more);
    if (!(await this.ask('POST', `/containers/${name}/start`))) throw new Error(`not started: ${name}`);
  }

  /** Ends everything that ran; may be called twice. */
  async end(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    // A frozen process of control groups v1 cannot even be killed.
    works(`find /sys/fs/cgroup -path '*/${this.#cgroup}*' -name freezer.state -exec sh -c 'echo THAWED >"$0"' {} ';'`);
    const over = once(this.#process, 'exit');
    this.#process.stdin?.end();
    await over;
    const leave = `find /sys/fs/cgroup -depth -type d -path '*/${this.#cgroup}*' -exec rmdir {} +`;
    await eventually('no control group is left', () => works(leave), 5000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const remove = (): void => rmSync(this.directory, { recursive: true, maxRetries: 20, retryDelay: 100 });
    await this.end().finally(remove);
  }
}
