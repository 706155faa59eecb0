// The light stack as its containers run it, but as plain processes on loopback: every role by
// dist/container.js, with nothing but an environment. What compose gives by mounts and users is
// given here by unshare and setpriv.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { asRoot, cleanEnvironment, freeOffset, home, newDataDirectory } from './embedded.ts';

export const NODE = join(home, 'node_modules/.bin/node');
export const NOBODY = '65534';

/**
 * Words before a command: it runs as a user that may pass closed directories, since a test may run
 * in one.
 */
export const AS_NOBODY =
  `setpriv --securebits +no_setuid_fixup --reuid ${NOBODY} --regid ${NOBODY} --clear-groups --inh-caps +dac_read_search --ambient-caps +dac_read_search`.split(
    ' ',
  );
/**
 * Words before a command: the directory that follows is a mount of its own. Everything keeps the
 * process number.
 */
const ON_MOUNT = [
  'unshare',
  '--mount',
  '--propagation',
  'private',
  'sh',
  '-c',
  'mount --bind "$1" "$1" && shift && exec "$@"',
  'sh',
];

/** A mount of its own can be had. */
export const canMount = asRoot;

export type Environment = Record<string, string>;

export interface RunningProgram {
  child: ChildProcess;
  messagesOf(): string;
  /** The exit code, or the signal. */
  ended: Promise<number | string>;
}

export interface ContainerPrograms {
  root: string;
  offset: number;
  /** What every role of this stack is given, by role; `database` twice. */
  environments: Record<
    'coreDatabase' | 'appDatabase' | 'configuration' | 'identity' | 'core' | 'management',
    Environment
  >;
  /** The volume of each database. */
  volumes: Record<'coreDatabase' | 'appDatabase', string>;
}

export const SECRETS = {
  CORE_DB_PASSWORD: 'core pass/word@1',
  CORE_READER_PASSWORD: 'reader pass#word%2',
  APP_DB_PASSWORD: 'app pass:word?3',
  IDENTITY_DB_PASSWORD: 'identity pass"word\'4',
  IDENTITY_SECRET_KEY: 'key-of-the-identity-provider-of-this-test',
  IDENTITY_TOKEN: 'token-of-the-identity-provider-of-this-test',
  LDAP_BIND_PASSWORD: 'bind password of this test',
  CORE_WEBADMIN_PASSWORD: 'webadmin password of this test',
  AUDIT_KEY: 'audit-key-of-this-test-that-is-long-enough',
  SESSION_KEY: 'session-key-of-this-test-that-is-long-enough',
  FLOWS_DB_PASSWORD: 'flows pass+word&5',
};

/** Not started yet. */
export async function newContainerPrograms(): Promise<ContainerPrograms> {
  const root = newDataDirectory();
  const offset = await freeOffset();
  const directory = (name: string): string => {
    const path = join(root, name);
    mkdirSync(path, { recursive: true, mode: 0o755 });
    return path;
  };
  const volumes = { coreDatabase: directory('core-database'), appDatabase: directory('app-database') };
  if (asRoot) for (const path of Object.values(volumes)) chownSync(path, Number(NOBODY), Number(NOBODY));
  const [core, app] = [5432 + offset, 3000 + offset];
  const shared = {
    HOLDFAST_STACK: 'light',
    HOLDFAST_LISTEN: '127.0.0.1',
    HOLDFAST_PORT_OFFSET: String(offset),
    HOLDFAST_CORE_DATABASE: `127.0.0.1:${core}`,
    HOLDFAST_APP_DATABASE: `127.0.0.1:${app}`,
    HOLDFAST_PROXY_DIR: directory('proxy'),
    HOLDFAST_FLOWS_DIR: directory('flows'),
    CORE_DATA_DIR: directory('core'),
  };
  const only = (...names: (keyof typeof SECRETS)[]): Environment =>
    Object.fromEntries(names.map((name) => [name, SECRETS[name]]));
  const deployment = {
    SERVER_ADDRESS: '127.0.0.1',
    DEPLOY_MODE: 'direct',
    LDAP_URL: `ldap://127.0.0.1:${3389 + offset}`,
  };
  const database = (place: string, port: number, databases: string, passwords: Environment): Environment => ({
    HOLDFAST_STACK: 'light',
    HOLDFAST_LISTEN: '127.0.0.1',
    HOLDFAST_DATABASES: databases,
    HOLDFAST_DATABASE_DIR: place,
    HOLDFAST_DATABASE_PORT: String(port),
    ...passwords,
  });
  return {
    root,
    offset,
    volumes,
    environments: {
      coreDatabase: database(volumes.coreDatabase, core, 'cot', {
        DB_AUTOVACUUM_COST_LIMIT: '432',
        HOLDFAST_FLOWS_NETWORK: '127.0.0.2/32',
        ...only('CORE_DB_PASSWORD', 'CORE_READER_PASSWORD', 'FLOWS_DB_PASSWORD'),
      }),
      appDatabase: database(
        volumes.appDatabase,
        app,
        'holdfast,identity',
        only('APP_DB_PASSWORD', 'IDENTITY_DB_PASSWORD'),
      ),
      configuration: { ...shared, COT_RETENTION_DAYS: '30' },
      identity: {
        ...shared,
        ...only('IDENTITY_DB_PASSWORD', 'IDENTITY_SECRET_KEY', 'IDENTITY_TOKEN', 'LDAP_BIND_PASSWORD'),
      },
      core: { ...shared, ...deployment, ...only('CORE_DB_PASSWORD', 'LDAP_BIND_PASSWORD') },
      management: {
        ...shared,
        ...deployment,
        ...SECRETS,
        LISTEN_ADDRESS: '127.0.0.1',
        API_PORT: String(8080 + offset),
        PORTAL_PORT: String(1880 + offset),
        DATA_DIR: directory('management'),
        CORE_API_URL: `https://127.0.0.1:${8443 + offset}`,
        CORE_ENROLLMENT_URL: `https://127.0.0.1:${8446 + offset}`,
        CORE_STREAMING_URL: `tls://127.0.0.1:${8089 + offset}`,
        IDENTITY_URL: `http://127.0.0.1:${9000 + offset}`,
        CORE_DATABASE_DIR: volumes.coreDatabase,
        UPDATES_URL: 'off',
      },
    },
  };
}

/** Runs a role; a database with its volume on a mount of its own, as a user that is not root. */
export function runRole(
  role: string,
  environment: Environment,
  { mounted = true, step = [] as string[] } = {},
): RunningProgram {
  const own = [NODE, join(home, 'dist/container.js'), role, ...step];
  const volume = environment['HOLDFAST_DATABASE_DIR'];
  const under = volume === undefined || !asRoot ? [] : [...(mounted ? [...ON_MOUNT, volume] : []), ...AS_NOBODY];
  const [program = '', ...args] = [...under, ...own];
  const child = spawn(program, args, { env: cleanEnvironment(environment), stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string);
  return { child, messagesOf: () => output, ended };
}

/** What the health check of a role says in the environment of that role. */
export async function answerOf(
  role: string,
  environment: Environment,
): Promise<{ code: number | string; message: string }> {
  const child = spawn(NODE, [join(home, 'dist/answers.js'), role], {
    env: cleanEnvironment(environment),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let message = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (message += text));
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  return { code: code ?? signal ?? '', message };
}

/** Ends a role as a container runtime would; its exit code or signal. */
export async function endRole({ child, ended }: RunningProgram, signal: NodeJS.Signals): Promise<number | string> {
  child.kill(signal);
  return ended;
}
