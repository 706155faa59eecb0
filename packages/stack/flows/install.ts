// Installs the flow engine from npm on its first use. Atomic and separate from the other packages.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { codeOf, messageOf, StackError } from '@holdfast/kit/app-error';
import { MINUTE_MS } from '@holdfast/kit/time';

/** In the repository. */
export const FLOWS_PLACE = 'compose/flows';
export const FLOWS_PROGRAM = `${FLOWS_PLACE}/node_modules/node-red/red.js`;

const INSTALL_WITHIN_MS = 10 * MINUTE_MS;
const INSTALL = ['ci', '--ignore-scripts', '--omit=dev', '--no-audit', '--no-fund', '--loglevel=error'];

/**
 * Installs the locked version, unless it is installed already. `say` gets progress for the
 * terminal.
 */
export async function installFlows(home: string, say: (text: string) => void): Promise<void> {
  const place = join(home, FLOWS_PLACE);
  const wanted = versionWanted(place);
  if (versionIn(join(place, 'node_modules')) === wanted) return;
  say(`Installing Node-RED ${wanted} from npm (first use of --flows, about a minute)...\n`);
  const staging = stagingIn(place, wanted);
  try {
    for (const name of ['package.json', 'package-lock.json']) copyFileSync(join(place, name), join(staging, name));
    await runNpm(staging, wanted);
    putInPlace(staging, place, wanted);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

function versionWanted(place: string): string {
  const { dependencies } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8')) as {
    dependencies: Record<'node-red', string>;
  };
  return dependencies['node-red'];
}

function versionIn(modules: string): string | undefined {
  const file = join(modules, 'node-red/package.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version : undefined;
}

function stagingIn(place: string, wanted: string): string {
  try {
    return mkdtempSync(join(place, '.install-'));
  } catch (error) {
    throw refusal(
      wanted,
      `can't write to ${place} (${codeOf(error) ?? messageOf(error)})`,
      'start Holdfast once as the owner of that directory',
    );
  }
}

/** Does nothing if another start has installed the same version meanwhile. */
function putInPlace(staging: string, place: string, wanted: string): void {
  const modules = join(place, 'node_modules');
  if (versionIn(modules) === wanted) return;
  rmSync(modules, { recursive: true, force: true });
  renameSync(join(staging, 'node_modules'), modules);
}

async function runNpm(directory: string, wanted: string): Promise<void> {
  const child = spawn('npm', INSTALL, {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: INSTALL_WITHIN_MS,
    env: { ...process.env, npm_config_update_notifier: 'false', npm_config_fetch_retries: '1' },
  });
  let message = '';
  child.stderr.on('data', (chunk: Buffer) => (message += chunk.toString()));
  const remedy =
    'allow access to the npm registry (npm config get registry shows it), or start without --flows. Nothing was started';
  const ended = await once(child, 'close').catch((error: unknown) => {
    throw codeOf(error) === 'ENOENT'
      ? refusal(wanted, 'npm is not installed', 'install npm (Debian: apt-get install npm)')
      : error;
  });
  const [code, signal] = ended as [number | null, string | null];
  if (code !== 0)
    throw refusal(
      wanted,
      reasonIn(message) ?? `npm exited ${signal === null ? `with code ${code}` : `by signal ${signal}`}`,
      remedy,
    );
}

function reasonIn(message: string): string | undefined {
  const lines = message.split('\n').flatMap((line) => /^npm (?:error|ERR!) (.+)/.exec(line)?.[1] ?? []);
  const reason = lines.find((line) => /^(?:request to|network |40\d |50\d |Invalid|integrity)/i.test(line));
  return (reason ?? lines.find((line) => !/^(?:code|errno|syscall|A complete log)/.test(line)))?.slice(0, 300);
}

function refusal(wanted: string, reason: string, remedy: string): StackError {
  return new StackError(`Couldn't install Node-RED ${wanted}: ${reason}.`, remedy);
}
