// The compose files as Docker Compose itself reads them, in a copy of the repository's shape with a
// .env of its own. `docker compose config` needs no daemon.

import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';

export const REPOSITORY = resolve(import.meta.dirname, '../../..');
export const COMPOSE_DIRECTORY = join(REPOSITORY, 'compose');

/** The version in package.json, and the image that is named by it. */
export const { version: VERSION } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
  version: string;
};
export const OUR_IMAGE = `localhost/holdfast:${VERSION}`;

/** Every file of compose/ with services in it, by name. */
export const COMPOSE_FILES = readdirSync(COMPOSE_DIRECTORY)
  .filter((name) => name.endsWith('.yaml') && name !== 'compose.local.yaml')
  .toSorted();

/** DOCKER_CONFIG may point to the plugin. */
const ENVIRONMENT = Object.fromEntries(
  ['PATH', 'HOME', 'DOCKER_CONFIG'].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  }),
);

/** Why Docker Compose cannot be asked here; undefined when it can. */
export function composeObstacle(): string | undefined {
  const requested = spawnSync('docker', ['compose', 'version', '--short'], { encoding: 'utf8', env: ENVIRONMENT });
  if (requested.error !== undefined) return 'docker is not in PATH';
  if (requested.status !== 0) return 'docker has no Compose plugin (DOCKER_CONFIG may point to one)';
  const [major = 0, minor = 0, patch = 0] = (/\d+(\.\d+)*/.exec(requested.stdout)?.[0] ?? '').split('.').map(Number);
  const isNewEnough = major > 2 || (major === 2 && (minor > 24 || (minor === 24 && patch >= 4)));
  return isNewEnough ? undefined : `Docker Compose ${requested.stdout.trim()} is older than 2.24.4`;
}

export interface Port {
  host_ip: string;
  published: string;
  target: number;
  protocol: string;
}

export interface Mount {
  type: string;
  source: string;
  target: string;
  read_only?: boolean;
  bind?: { create_host_path?: boolean };
}

export interface Service {
  image: string;
  command: string[] | null;
  user?: string;
  restart?: string;
  tmpfs?: string[];
  mem_limit?: string;
  pids_limit?: number;
  read_only?: boolean;
  privileged?: boolean;
  network_mode?: string;
  pid?: string;
  cap_add?: string[];
  cap_drop?: string[];
  security_opt?: string[];
  shm_size?: string;
  stop_signal?: string;
  stop_grace_period?: string;
  profiles?: string[];
  logging?: { driver: string; options: Record<string, string> };
  healthcheck?: { test?: string[] };
  environment?: Record<string, string | null>;
  networks?: Record<string, { ipv4_address?: string; aliases?: string[] } | null>;
  depends_on?: Record<string, { condition: string; restart?: boolean }>;
  ports?: Port[];
  volumes?: Mount[];
}

export interface ComposeConfig {
  name: string;
  services: Record<string, Service>;
  networks: Record<string, { internal?: boolean; ipam?: { config?: { subnet: string; ip_range?: string }[] } }>;
  volumes: Record<string, unknown>;
}

export interface Answer {
  status: number | null;
  stdout: string;
  stderr: string;
}

/**
 * A root like the repository's, with the compose files, the set-up script and what `env` is to be.
 */
export class ComposeRoot {
  readonly path = mkdtempSync(join(tmpdir(), 'holdfast-compose-'));

  constructor() {
    mkdirSync(join(this.path, 'compose/caddy'), { recursive: true });
    mkdirSync(join(this.path, 'scripts'));
    for (const name of COMPOSE_FILES) cpSync(join(COMPOSE_DIRECTORY, name), join(this.path, 'compose', name));
    cpSync(join(COMPOSE_DIRECTORY, 'video'), join(this.path, 'compose/video'), { recursive: true });
    const scripts = [
      'setup.sh',
      'upgrade-database.sh',
      'backup.sh',
      'upgrade.sh',
      'upgrade-containers.sh',
      'upgrade-release.sh',
      'programs.sh',
      'docker.sh',
      'install.sh',
      'release-images.sh',
      'restore-containers.sh',
    ];
    for (const name of scripts) cpSync(join(REPOSITORY, 'scripts', name), join(this.path, 'scripts', name));
    cpSync(join(REPOSITORY, '.env.template'), join(this.path, '.env.template'));
  }

  get envFile(): string {
    return join(this.path, '.env');
  }

  writeEnv(text: string): void {
    writeFileSync(this.envFile, text, { mode: 0o600 });
  }

  readEnv(): string {
    return readFileSync(this.envFile, 'utf8');
  }

  /** The set-up script or another one; `path` puts other programs before the real ones. */
  setUp(args: readonly string[], path = '', name = 'setup.sh'): Answer {
    const env = { ...ENVIRONMENT, PATH: `${path}${path === '' ? '' : ':'}${ENVIRONMENT['PATH'] ?? ''}` };
    const { status, stdout, stderr } = spawnSync(join(this.path, 'scripts', name), args, { encoding: 'utf8', env });
    return { status, stdout, stderr };
  }

  /**
   * docker compose in the root, where .env names the files. (With `-f` it would look for .env
   * beside the first file.)
   */
  compose(args: readonly string[]): Answer {
    const options = { encoding: 'utf8', env: ENVIRONMENT, cwd: this.path } as const;
    const { status, stdout, stderr } = spawnSync('docker', ['compose', ...args], options);
    return { status, stdout, stderr };
  }

  /** The files that .env names. */
  layer(layers: readonly string[]): void {
    const files = layers.map((layer) => `compose/${fileOf(layer)}`).join(':');
    this.writeEnv(this.readEnv().replace(/^COMPOSE_FILE=.*$/m, `COMPOSE_FILE=${files}`));
  }

  /** What comes of some layers; anything on stderr, such as an undefined variable, is an error. */
  config(layers: readonly string[]): ComposeConfig {
    this.layer(layers);
    const { status, stdout, stderr } = this.compose(['config', '--format', 'json']);
    if (status !== 0 || stderr !== '') throw new Error(`${layers.join(' + ')}: ended with ${status}: ${stderr}`);
    return JSON.parse(stdout) as ComposeConfig;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** `base` is compose.yaml, `dev` compose.dev.yaml. */
export function fileOf(layer: string): string {
  return layer === 'base' ? 'compose.yaml' : `compose.${layer}.yaml`;
}

/**
 * One file as plain YAML, without the tags that Compose alone understands: for what can be held
 * without Compose.
 */
export function readComposeFile(name: string): Record<string, unknown> {
  const text = readFileSync(join(COMPOSE_DIRECTORY, name), 'utf8').replaceAll(/!(?:override|reset)\b/g, '');
  return parse(text, { merge: true }) as Record<string, unknown>;
}
