// What a support bundle says about an embedded stack, and what only a process of ours can find out about any: health, and the
// state of our own database.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, freemem, release, totalmem, uptime } from 'node:os';
import { dirname, join } from 'node:path';
import { layoutOf } from '../compose/embedded/layout.ts';
import { keptSecrets } from '../compose/embedded/secrets.ts';
import { StackError } from '../compose/embedded/stack-error.ts';
import { freshConnections } from '../shared/adapters/kept-database.ts';
import { Secret } from '../shared/domain/secret.ts';
import { messageOf } from '../shared/domain/thrown.ts';
import { RELEASE } from '../shared/runtime/release.ts';
import type { KnownSecret } from './bundle-cleaning.ts';
import { secretsOf } from './bundle-secrets.ts';
import { stackDatabaseUrl } from './container-plan.ts';
import { readEnvFile } from './env-file-layer.ts';
import { askManagement, type OperatorPlace } from './operator-arguments.ts';

const HEALTH_WITHIN_MS = 15_000;
const LAST_LINES = 2000;
const DATABASE = { name: 'holdfast-support', called: 'our own database', variable: 'DATABASE_URL' };

/** Of a stack that runs; of each part that does not answer, what it is that it does not. */
export async function factsOf(place: OperatorPlace, environment: NodeJS.ProcessEnv): Promise<Record<string, unknown>> {
  const given = environment['DATABASE_URL'] ?? '';
  const url = given === '' ? stackDatabaseUrl(environment) : given;
  return {
    release: RELEASE,
    node: process.versions.node,
    health: await orWhy(askManagement(place, { ask: 'health' }, HEALTH_WITHIN_MS)),
    lockouts: await orWhy(askManagement(place, { ask: 'lockouts' }, HEALTH_WITHIN_MS)),
    database: url === undefined ? 'no URL is known' : await orWhy(databaseFacts(url)),
  };
}

async function databaseFacts(url: string): Promise<Record<string, unknown>> {
  const run = freshConnections(new Secret(url), DATABASE);
  return run(async (sql) => ({
    version: await sql`SELECT version()`,
    databases:
      await sql`SELECT datname, pg_database_size(datname) AS bytes FROM pg_database WHERE has_database_privilege(datname, 'CONNECT')`,
    migrations: await sql`SELECT number, name FROM schema_migration ORDER BY number`,
  }));
}

async function orWhy(asked: Promise<unknown>): Promise<unknown> {
  return asked.catch((error: unknown) => ({ error: messageOf(error) }));
}

/** Writes the files of the bundle; answers with what is secret in this stack. */
export async function collectEmbedded(directory: string, place: OperatorPlace, home: string): Promise<KnownSecret[]> {
  const layout = layoutOf(dirname(place.directory));
  if (!existsSync(layout.secrets))
    throw new StackError(
      `There is no embedded stack in ${layout.root}.`,
      'name the directory that it was started with, --data DIR; for containers .env is missing',
    );
  const generated = keptSecrets(layout.secrets, []).values;
  const set = readEnvFile(home, undefined).layer?.values ?? {};
  const stack = existsSync(layout.stack) ? readFileSync(layout.stack, 'utf8') : '{}';
  const { state_database: stateUrl } = JSON.parse(stack) as { state_database?: string };
  const facts = await factsOf(place, stateUrl === undefined ? {} : { DATABASE_URL: stateUrl });
  const write = (name: string, text: string): void => writeFileSync(join(directory, name), text);
  write('facts.json', `${JSON.stringify(facts, null, 2)}\n`);
  write('stack.json', stack);
  write(
    'settings.txt',
    `${Object.keys({ ...generated, ...set })
      .toSorted()
      .map((name) => `${name} is set`)
      .join('\n')}\n`,
  );
  write('machine.txt', machineText(layout.root));
  mkdirSync(join(directory, 'logs'));
  for (const name of existsSync(layout.logs) ? readdirSync(layout.logs) : [])
    if (name.endsWith('.log')) write(join('logs', name), lastLines(readFileSync(join(layout.logs, name), 'utf8')));
  return [...secretsOf(generated), ...secretsOf(set), ...secretsOf({ state_database: stateUrl })];
}

function lastLines(text: string): string {
  return text
    .split('\n')
    .slice(-LAST_LINES - 1)
    .join('\n');
}

function machineText(root: string): string {
  const said = (program: string, ...args: string[]): string => {
    const { stdout, error } = spawnSync(program, args, { encoding: 'utf8', timeout: 15_000 });
    return `--- ${[program, ...args].join(' ')}\n${error === undefined ? stdout : error.message}\n`;
  };
  const memory = `${Math.round(freemem() / 1e6)} MB free of ${Math.round(totalmem() / 1e6)} MB`;
  return [
    `Linux ${release()}, ${process.arch}, ${cpus().length} processors, up ${Math.round(uptime())} s, memory ${memory}\n`,
    said('df', '-h', root),
    said('df', '-i', root),
    said('ss', '-ltn'),
    said('cat', '/proc/loadavg', '/proc/meminfo'),
  ].join('\n');
}
