// Collects a support bundle of an embedded stack and the facts of any stack, and removes secrets
// from texts.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, freemem, release, totalmem, uptime } from 'node:os';
import { dirname, join } from 'node:path';
import { messageOf, StackError } from '@holdfast/kit/app-error';
import { freshConnections } from '@holdfast/kit/kept-database';
import { RELEASE } from '@holdfast/kit/release';
import { Secret } from '@holdfast/kit/secret';
import { readEnvFile } from '@holdfast/stack/env-file-layer';
import { layoutOf } from '@holdfast/stack/process/layout';
import { keptSecrets } from '@holdfast/stack/secrets';
import { isSettingName, SETTINGS } from '../../../shared/settings/table.ts';
import { askManagement, type OperatorPlace } from '@holdfast/stack/operator/place';
import { stackDatabaseUrl } from '../containers/plan.ts';

const SECRET_NAME = /PASS|SECRET|TOKEN|KEY|CREDENTIAL|AUTH|PRIVATE/i;

/**
 * The secret values among these settings, and the passwords in their URLs. Settings are secret by
 * their table, others by their name or form.
 */
export function secretsOf(values: Readonly<Record<string, string | undefined>>): KnownSecret[] {
  return Object.entries(values).flatMap(([name, value]) => {
    if (value === undefined || value.trim() === '') return [];
    const parts = passwordsIn(value).map((part) => ({ name, value: part }));
    return isSecret(name, value) ? [{ name, value }, ...parts] : parts;
  });
}

export function isSecret(name: string, value: string): boolean {
  if (isSettingName(name)) return SETTINGS[name].kind.secret || passwordsIn(value).length > 0;
  return SECRET_NAME.test(name) || passwordsIn(value).length > 0;
}

/** The password in a URL, encoded and decoded. */
function passwordsIn(value: string): string[] {
  const raw = /^[a-z][\w+.-]*:\/\/[^/@]*?:([^@]*)@/i.exec(value)?.[1];
  if (raw === undefined || raw === '') return [];
  return [...new Set([raw, decoded(raw)])];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const HEALTH_WITHIN_MS = 15_000;
const LAST_LINES = 2000;
const DATABASE = { name: 'holdfast-support', called: 'our own database', variable: 'DATABASE_URL' };

/** Facts of a running stack. A part that doesn't answer is reported with its error. */
export async function factsOf(place: OperatorPlace, environment: NodeJS.ProcessEnv): Promise<Record<string, unknown>> {
  const given = environment['DATABASE_URL'] ?? '';
  const url = given === '' ? stackDatabaseUrl(environment) : given;
  return {
    release: RELEASE,
    node: process.versions.node,
    health: await orWhy(askManagement(place, { ask: 'health' }, HEALTH_WITHIN_MS)),
    lockouts: await orWhy(askManagement(place, { ask: 'lockouts' }, HEALTH_WITHIN_MS)),
    database: url === undefined ? 'unknown: no database URL' : await orWhy(databaseFacts(url)),
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

async function orWhy(request: Promise<unknown>): Promise<unknown> {
  return request.catch((error: unknown) => ({ error: messageOf(error) }));
}

/** Writes the files of the bundle. Resolves with the secrets of the stack. */
export async function collectEmbedded(directory: string, place: OperatorPlace, home: string): Promise<KnownSecret[]> {
  const layout = layoutOf(dirname(place.directory));
  if (!existsSync(layout.secrets))
    throw new StackError(
      `No embedded stack in ${layout.root}.`,
      'give the data directory of the stack with --data DIR. For the stack in containers, .env is missing: run ./scripts/setup.sh',
    );
  const generated = keptSecrets(layout.secrets, []).values;
  const set = readEnvFile(home, undefined, layout.env).layer?.values ?? {};
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
  const messagesOf = (program: string, ...args: string[]): string => {
    const { stdout, error } = spawnSync(program, args, { encoding: 'utf8', timeout: 15_000 });
    return `--- ${[program, ...args].join(' ')}\n${error === undefined ? stdout : error.message}\n`;
  };
  const memory = `${Math.round(freemem() / 1e6)} MB free of ${Math.round(totalmem() / 1e6)} MB`;
  return [
    `Linux ${release()}, ${process.arch}, ${cpus().length} processors, up ${Math.round(uptime())} s, memory ${memory}\n`,
    messagesOf('df', '-h', root),
    messagesOf('df', '-i', root),
    messagesOf('ss', '-ltn'),
    messagesOf('cat', '/proc/loadavg', '/proc/meminfo'),
  ].join('\n');
}

/** A secret value, which is removed in every form in which programs write it. */
export interface KnownSecret {
  name: string;
  value: string;
}

export interface Cleaned {
  text: string;
  /** Number of removed occurrences, by name. */
  found: Map<string, number>;
}

export type Clean = (text: string) => Cleaned;

/**
 * Shorter values occur in every text by chance. They aren't searched for, which the report says.
 */
export const MIN_SEARCHED = 4;
/** Shorter base64 fragments aren't specific. */
const MIN_ENCODED = 8;

interface Pattern {
  name: string;
  finds: RegExp;
  /** Returns what replaces the match: the groups to keep. */
  keeps: (match: readonly string[]) => string;
}

const OUT = '[removed]';

const PATTERNS: readonly Pattern[] = [
  {
    name: 'a private key',
    finds: /-----BEGIN ([A-Z ]*PRIVATE KEY)-----[\s\S]*?(?:-----END \1-----|$)/g,
    keeps: () => `[removed: private key]`,
  },
  {
    name: 'a cookie',
    finds: /((?:set-)?cookie["'\\]*\s*[:=](?!\s*["'\\]*\[removed)\s*["'\\]*)[^"'\n\r]+/gi,
    keeps: ([, head = '']) => `${head}${OUT}`,
  },
  {
    name: 'a session',
    finds: /((?:__Host-|__Secure-)?\b[\w-]*(?:session|csrf|sessid)[\w-]*=)(?!\[removed)[^\s"'\\;,&]{8,}/gi,
    keeps: ([, head = '']) => `${head}${OUT}`,
  },
  {
    name: 'an authorization',
    finds: /\b((?:Bearer|Basic)\s+)(?!\[removed)[A-Za-z0-9._~+/=-]{8,}/gi,
    keeps: ([, head = '']) => `${head}${OUT}`,
  },
  {
    name: 'a signed token',
    finds: /\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*/g,
    keeps: () => OUT,
  },
  {
    name: 'a password in a URL',
    finds: /(:\/\/[^\s/:@"']*:)(?!\[removed)[^\s/@"']+@/g,
    keeps: ([, head = '']) => `${head}${OUT}@`,
  },
  {
    name: 'a password',
    finds:
      /((?:pass(?:word|wd|phrase)?|secret|credential|(?:api|access|private|secret)[_-]?key|\btoken|[_-]token|[_-](?:pass|key))["'\\]*\s*[:=](?!\s*["'\\]*(?:\[removed|\*\*\*|\$\{|null\b|true\b|false\b))\s*["'\\]*)[^\s"'\\,;<>&[\]{}]{4,}/gi,
    keeps: ([, head = '']) => `${head}${OUT}`,
  },
];

/** Removes known values first, longest first, because a shorter one may be part of a longer one. */
export function cleanerOf(secrets: readonly KnownSecret[]): Clean {
  const forms = secrets
    .filter(({ value }) => value.length >= MIN_SEARCHED)
    .flatMap(({ name, value }) => formsOf(value).map((form) => ({ name, form })))
    .toSorted((a, b) => b.form.length - a.form.length);

  return function clean(text) {
    const found = new Map<string, number>();
    const count = (name: string, times: number): void => void found.set(name, (found.get(name) ?? 0) + times);
    let rest = text;
    for (const { name, form } of forms) {
      const parts = rest.split(form);
      if (parts.length === 1) continue;
      count(name, parts.length - 1);
      rest = parts.join(`[removed: ${name}]`);
    }
    for (const { name, finds, keeps } of PATTERNS)
      rest = rest.replace(finds, (...match: unknown[]) => {
        count(name, 1);
        return keeps(match.filter((each) => typeof each === 'string'));
      });
    return { text: rest, found };
  };
}

/** The forms of a value: as is, and as written in URLs, JSON, shells, XML and headers. */
export function formsOf(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1);
  const bytes = Buffer.from(value);
  const forms = [
    value,
    json,
    JSON.stringify(json).slice(1, -1),
    encodeURIComponent(value),
    encodeURIComponent(value).toLowerCase(),
    encodeURI(value),
    new URLSearchParams({ v: value }).toString().slice(2),
    value.replaceAll("'", String.raw`'\''`),
    value.replaceAll("'", "''"),
    value.replaceAll('$', '$$$$'),
    value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;'),
    bytes.toString('hex'),
    ...base64Of(bytes),
  ];
  return [...new Set(forms)].filter((form) => form.length >= MIN_SEARCHED);
}

/**
 * The three possible middle parts of the value's base64, depending on its offset (as in
 * `user:value`).
 */
function base64Of(bytes: Buffer): string[] {
  const middles = [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const first = [0, 2, 3][before] ?? 0;
    const whole = Math.floor(((before + bytes.length) * 8) / 6);
    const middle = text.slice(first, whole);
    return [middle, middle.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return middles.filter((middle) => middle.length >= MIN_ENCODED);
}
