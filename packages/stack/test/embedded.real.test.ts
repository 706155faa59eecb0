import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { writeFileAtomically } from '@holdfast/kit/files';
import { DAY_MS } from '@holdfast/kit/time';
import { scramVerifier } from '../database/roles.ts';
import { planEmbedded } from '../embedded-plan.ts';
import { checkDiskSpace, checkPorts } from '../preflight.ts';
import { takeLock } from '../process/guard.ts';
import { layoutOf } from '../process/layout.ts';
import { identify, isAlive, listenerOn, lockDirectory } from '../process/ownership.ts';
import {
  EarlyEnd,
  explainEarlyEnd,
  longerPauseMs,
  type ProcessEvents,
  type ProcessSpec,
  supervise,
} from '../process/supervised-process.ts';
import { GENERATED_NAMES, generatePassword, keptSecrets } from '../secrets.ts';

const guardScript = resolve(import.meta.dirname, '../process/guard.sh');
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'holdfast-embedded-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describe('secrets', () => {
  it('are generated once for what is wanted, and kept', () => {
    const path = join(directory, 'secrets.json');
    const first = keptSecrets(path, ['CORE_DB_PASSWORD', 'APP_DB_PASSWORD']);
    expect(first.changed).toBe(true);
    expect(Object.keys(first.values).toSorted()).toEqual(['APP_DB_PASSWORD', 'CORE_DB_PASSWORD']);
    expect(existsSync(path)).toBe(false);
    writeFileAtomically(path, JSON.stringify(first.values));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(keptSecrets(path, ['CORE_DB_PASSWORD'])).toEqual({
      values: first.values,
      readFrom: JSON.stringify(first.values),
      changed: false,
    });
  });

  it('that a later release wants are added, the others stay', () => {
    const path = join(directory, 'secrets.json');
    writeFileSync(path, '{"CORE_DB_PASSWORD":"old","APP_DB_PASSWORD":""}');
    const { values, changed } = keptSecrets(path, GENERATED_NAMES);
    expect([values['CORE_DB_PASSWORD'], changed, Object.keys(values).length]).toEqual([
      'old',
      true,
      GENERATED_NAMES.length,
    ]);
  });

  it('give way to those that are set, and are then not kept', () => {
    const environment = {
      IDENTITY_SECRET_KEY: 'of-the-environment-and-long-enough',
      IDENTITY_DB_PASSWORD: 'y',
      CORE_READER_PASSWORD: 'z',
    };
    const args = {
      embedded: true,
      data: directory,
      offset: 0,
      detach: false,
      flows: false,
      listen: undefined,
      env: '/dev/null',
    };
    const plan = planEmbedded(resolve(import.meta.dirname, '../../..'), args, environment);
    if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
    const names = Object.keys(environment);
    expect(Object.keys(plan.secretsToKeep ?? {}).toSorted()).toEqual(
      GENERATED_NAMES.filter((name) => !names.includes(name)).toSorted(),
    );
    expect(plan.databasePasswords).toMatchObject({ identity: 'y', reader: 'z' });
    expect(JSON.stringify(plan.identity.environment)).toContain(environment.IDENTITY_SECRET_KEY);
  });

  it('and a start says when only one half of the identity provider is redirected', () => {
    const args = {
      embedded: true,
      data: directory,
      offset: 0,
      detach: false,
      flows: false,
      listen: undefined,
      env: '/dev/null',
    };
    const messagesOf = (environment: Record<string, string>): string[] => {
      const plan = planEmbedded(resolve(import.meta.dirname, '../../..'), args, environment);
      return Array.isArray(plan) ? [JSON.stringify(plan)] : plan.warnings;
    };
    const [http, ldap] = ['http://127.0.0.1:1', 'ldap://127.0.0.1:1'];
    expect(messagesOf({ IDENTITY_URL: http })).toEqual([
      expect.stringMatching(/^IDENTITY_URL is set but LDAP_URL is not/),
    ]);
    expect(messagesOf({ LDAP_URL: ldap })).toEqual([expect.stringMatching(/^LDAP_URL is set but IDENTITY_URL is not/)]);
    expect([messagesOf({}), messagesOf({ IDENTITY_URL: http, LDAP_URL: ldap })]).toEqual([[], []]);
  });

  it('are long, and never the same', () => {
    const many = new Set(Array.from({ length: 200 }, generatePassword));
    expect(many.size).toBe(200);
    for (const password of many) expect(password).toMatch(/^[A-Za-z2-9]{32}$/);
  });
});

describe('an atomic write', () => {
  it('replaces the file, and survives a leftover of a crash', () => {
    const path = join(directory, 'file');
    writeFileSync(`${path}.new`, 'half');
    writeFileAtomically(path, 'one');
    writeFileAtomically(path, 'two', 0o644);
    expect([readFileSync(path, 'utf8'), existsSync(`${path}.new`)]).toEqual(['two', false]);
  });

  it('into a place that is a file says so', () => {
    writeFileSync(join(directory, 'file'), '');
    expect(() => writeFileAtomically(join(directory, 'file/deeper'), 'x')).toThrow(/a part of this path is a file/);
  });
});

describe('a SCRAM verifier', () => {
  it('is the one of RFC 7677 for its example', () => {
    const salt = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64');
    expect(scramVerifier('pencil', salt)).toBe(
      'SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=',
    );
  });
});

describe('the process table', () => {
  it('knows a process by number and start, and not its zombie', async () => {
    const child = spawn('sleep', ['30']);
    const identity = identify(child.pid ?? 0);
    expect(identity && isAlive(identity)).toBe(true);
    expect(identity && isAlive({ ...identity, startTicks: identity.startTicks - 1 })).toBe(false);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(identity && isAlive(identity)).toBe(false);
  });

  it('names who listens on a port', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    expect(listenerOn(port)?.pid).toBe(process.pid);
    server.close();
  });
});

describe('preflight', () => {
  it('lists every taken port at once', async () => {
    const servers = [createServer().listen(0, '127.0.0.1'), createServer().listen(0, '127.0.0.1')];
    await Promise.all(servers.map((server) => once(server, 'listening')));
    const wanted = servers.map((server, index) => {
      const address = server.address();
      return {
        address: '127.0.0.1',
        port: typeof address === 'object' && address !== null ? address.port : 0,
        purpose: `part ${index}`,
      };
    });
    await expect(checkPorts(wanted)).rejects.toThrow(/part 0\) is in use by .*part 1\) is in use by/);
    for (const server of servers) server.close();
  });

  it('is content with free ports and room on the disk', async () => {
    await checkPorts([{ address: '127.0.0.1', port: 0, purpose: 'any' }]);
    checkDiskSpace(directory, true);
  });
});

describe('the guard', () => {
  it('holds the lock alone, ends what it owns when its input ends, and then gives the lock back', async () => {
    const lock = join(directory, 'lock');
    const guard = await takeLock(guardScript, lock, () => undefined);
    expect(await takeLock(guardScript, lock, () => undefined)).toBeUndefined();
    const owned = spawn('sleep', ['60']);
    const freed = spawn('sleep', ['60']);
    guard?.own(owned.pid ?? 0, 'SIGTERM');
    guard?.own(freed.pid ?? 0, 'SIGTERM');
    guard?.free(freed.pid ?? 0);
    const ended = once(owned, 'exit');
    await guard?.release();
    expect(await ended).toEqual([null, 'SIGTERM']);
    expect(freed.exitCode).toBeNull();
    freed.kill();
    const next = await takeLock(guardScript, lock, () => undefined);
    expect(next).toBeDefined();
    await next?.release();
  });

  it('is waited for as long as it may take, whatever the clock does', async () => {
    const layout = layoutOf(directory);
    mkdirSync(layout.run);
    const before = await takeLock(guardScript, layout.lock, () => undefined);
    vi.useFakeTimers({ toFake: ['Date'] });
    const report = { step: () => () => undefined, warn: vi.fn(), event: () => undefined };
    const waiting = lockDirectory(guardScript, layout, report, () => undefined, new AbortController().signal);
    waiting.catch(() => undefined);
    await expect.poll(() => report.warn.mock.calls).toHaveLength(1);
    vi.setSystemTime(Date.now() + DAY_MS);
    await delay(400);
    await before?.release();
    await (await waiting).release();
    vi.useRealTimers();
  });

  it('ends the database when the others have ended, for they still write into it', async () => {
    const guard = await takeLock(guardScript, join(directory, 'lock-of-three'), () => undefined);
    const database = spawn('sleep', ['60']);
    const writer = spawn('sh', ['-c', 'trap "sleep 0.3; exit" TERM; echo; while :; do sleep 0.02; done']);
    await once(writer.stdout, 'data');
    guard?.own(database.pid ?? 0, 'SIGINT');
    guard?.own(writer.pid ?? 0, 'SIGTERM');
    const order: string[] = [];
    const ended = [
      once(database, 'exit').then(() => order.push('database')),
      once(writer, 'exit').then(() => order.push('writer')),
    ];
    await guard?.release();
    await Promise.all(ended);
    expect([order, database.signalCode]).toEqual([['writer', 'database'], 'SIGINT']);
  });
});

describe('a supervised process', () => {
  const events = (log: string[] = []): ProcessEvents => ({
    started: (role) => log.push(`${role} started`),
    ended: (role) => log.push(`${role} ended`),
    died: (role, how, words, pauseMs) => log.push(`${role} died ${how} (${words}) ${pauseMs}`),
    restarted: (role) => log.push(`${role} restarted`),
  });
  const spec = (over: Partial<ProcessSpec>): ProcessSpec => ({
    role: 'part',
    start: () => spawn('sleep', ['60']),
    answers: async () => true,
    answersWithinMs: 5000,
    stopSignal: 'SIGTERM',
    stopWithinMs: 300,
    lastWords: () => 'words',
    ...over,
  });

  it('that ends before it answers rejects with its last words, and is not restarted', async () => {
    const log: string[] = [];
    const part = supervise(spec({ start: () => spawn('false'), answers: async () => false }), events(log));
    await expect(part.start()).rejects.toThrow(new EarlyEnd('part', 'with code 1', 'words').message);
    await new Promise((tick) => setTimeout(tick, 700));
    expect(log).toEqual(['part started', 'part ended']);
  });

  it('that told a remedy when it ended in its first start: that one is shown, else the log', () => {
    const shown = (words?: string): string[] => {
      const { message, remedy } = explainEarlyEnd(new EarlyEnd('core', 'with code 1', words), '/logs/core.log');
      return [message, remedy];
    };
    expect(shown('/d/node-id holds nothing. Remedy: put it back; or delete it.')).toEqual([
      'core exited with code 1: /d/node-id holds nothing.',
      'put it back; or delete it',
    ]);
    expect(shown()).toEqual(['core exited with code 1.', 'read the end of /logs/core.log']);
    expect(shown('write: No space left on device')[0]).toMatch(/^The disk of \/logs\/core\.log is full/);
  });

  it('that never answers is ended after its time', async () => {
    const part = supervise(spec({ answers: async () => false, answersWithinMs: 200 }), events());
    await expect(part.start()).rejects.toThrow('by signal SIGKILL');
  });

  it('that cannot be started rejects with the reason', async () => {
    const part = supervise(spec({ start: () => spawn('/nonexistent/program') }), events());
    await expect(part.start()).rejects.toThrow('ENOENT');
  });

  it('that dies again and again is restarted after pauses that grow to some seconds', () => {
    let pauseMs = 500;
    const pauses = Array.from({ length: 6 }, () => (pauseMs = longerPauseMs(pauseMs)));
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
  });

  it('that dies is restarted, and stopped for good when asked', async () => {
    const log: string[] = [];
    const part = supervise(spec({}), events(log));
    await part.start();
    const first = part.pid() ?? 0;
    process.kill(first, 'SIGKILL');
    await new Promise((tick) => setTimeout(tick, 900));
    expect(part.pid()).not.toBe(first);
    await part.stop();
    expect(log).toEqual([
      'part started',
      'part ended',
      'part died by signal SIGKILL (words) 500',
      'part started',
      'part restarted',
      'part ended',
    ]);
  });

  it('that ignores its stop signal is killed', async () => {
    const part = supervise(spec({ start: () => spawn('sh', ['-c', "trap '' TERM; sleep 60 & wait; wait"]) }), events());
    await part.start();
    await new Promise((tick) => setTimeout(tick, 100));
    const begun = Date.now();
    await part.stop();
    expect(Date.now() - begun).toBeGreaterThanOrEqual(250);
    expect(part.pid()).toBeUndefined();
  });
});
