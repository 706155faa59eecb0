// The steps of an upgrade on a real file system, with a start.sh and a connection check that do what
// a test wants. With real versions: test/e2e/embedded/upgrade.test.ts.

import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DAY_MS } from '@holdfast/kit/time';
import { layoutOf } from '../process/layout.ts';
import { type Journal, readJournal, writeJournal } from '../upgrade/journal.ts';
import { upgrade } from '../upgrade/program.ts';
import { continueUpgrade, EXIT } from '../upgrade/run.ts';

const MIB = 1024 ** 2;
const repository = resolve(import.meta.dirname, '../../..');
const mayMount = process.getuid?.() === 0 && spawnSync('unshare', ['-m', 'true']).status === 0;

let place: string;
let home: string;
let data: string;

beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), 'holdfast-upgrade-run-'));
  home = join(place, 'home');
  data = join(place, 'data');
  const node = join(home, `node_modules/node-linux-${process.arch}/bin`);
  for (const path of [node, join(home, 'scripts'), join(home, 'dist'), join(home, '.upgrade/0.2.0'), data])
    mkdirSync(path, { recursive: true });
  symlinkSync(process.execPath, join(node, 'node'));
  cpSync(join(repository, 'packages/stack/process/guard.sh'), join(home, 'packages/stack/process/guard.sh'));
  starts('exit 0');
  writeFileSync(join(home, 'dist/prove.js'), '');
});
afterEach(() => {
  vi.useRealTimers();
  spawnSync('umount', ['--lazy', '--quiet', data]);
  rmSync(place, { recursive: true, force: true });
});

function starts(script: string): void {
  writeFileSync(join(home, 'scripts/start.sh'), `#!/bin/sh\necho start >>"${place}/starts"\n${script}\n`, {
    mode: 0o755,
  });
}

function fill(bytes: number): void {
  const { pgdata, run, management } = layoutOf(data);
  for (const directory of [pgdata, run, management]) mkdirSync(directory);
  writeFileSync(join(pgdata, 'table'), Buffer.alloc(bytes, 1));
}

function journal(change: Partial<Journal>): Journal {
  return {
    kind: 'apply',
    direction: 'forward',
    step: 'snapshot',
    from: '0.1.0',
    to: '0.2.0',
    data,
    arguments: [],
    was_running: true,
    within_seconds: 30,
    snapshot: join(data, 'before-upgrade-0.2.0'),
    set_aside: join(data, 'set-aside-upgrade-0.2.0'),
    schema_changed: false,
    reason: null,
    ...change,
  };
}

async function carriedOut(change: Partial<Journal>): Promise<number> {
  const wanted = journal(change);
  writeJournal(home, wanted);
  return continueUpgrade({ home, tools: home }, wanted, false);
}

const record = (): unknown => JSON.parse(readFileSync(join(data, 'management/upgrade.json'), 'utf8'));

describe.skipIf(!mayMount)('a full disk (needs the right to mount)', () => {
  it('during the copy goes back before anything was changed, and says so to health', async () => {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${16 * MIB}`, 'tmpfs', data]);
    fill(10 * MIB);
    expect(await carriedOut({})).toBe(EXIT.returned);
    expect(record()).toMatchObject({ outcome: 'returned', reason: expect.stringContaining('No space left on device') });
    expect(readdirSync(data).toSorted()).toEqual(['management', 'pgdata', 'run']);
    expect(readFileSync(join(place, 'starts'), 'utf8')).toBe('start\n');
    expect(readJournal(home)).toBeUndefined();
  });
});

describe('the next call', () => {
  const call = (...argv: string[]): Promise<number> =>
    upgrade({ argv: [...argv, '--home', home], home, cwd: place, environment: {} });

  it.each(['stop', 'snapshot'] as const)('starts the stack again after a kill in %s', async (step) => {
    fill(10);
    mkdirSync(join(data, 'before-upgrade-0.2.0.partial'));
    writeJournal(home, journal({ step }));
    expect(await call('recover')).toBe(EXIT.returned);
    expect([readJournal(home), readFileSync(join(place, 'starts'), 'utf8')]).toEqual([undefined, 'start\n']);
    expect(readdirSync(data).toSorted()).toEqual(['management', 'pgdata', 'run']);
  });

  it('refuses what it does not know', async () => {
    for (const args of [[], ['upwards'], ['check', '--to', '../x']]) expect(await call(...args)).toBe(2);
    writeFileSync(join(home, 'package.json'), '{ "name": "holdfast", "version": "0.1.0" }');
    await expect(call('check', '--from', place)).rejects.toThrow('is not a git clone');
  });
});

describe('a way back that fails', () => {
  it('is stuck: nothing is deleted, and the next call finishes it', async () => {
    fill(MIB);
    const copy = join(data, 'before-upgrade-0.2.0');
    mkdirSync(copy);
    starts('echo "could not write to file: No space left on device" >&2\necho "  Remedy: free some space" >&2\nexit 1');
    const back = { direction: 'return', step: 'start', reason: 'it did not start' } as const;
    expect(await carriedOut(back)).toBe(EXIT.stuck);
    expect(record()).toMatchObject({ outcome: 'stuck', reason: 'it did not start' });
    expect(readdirSync(data)).toContain('before-upgrade-0.2.0');
    starts('exit 0');
    expect(await continueUpgrade({ home, tools: home }, readJournal(home) ?? journal({}), true)).toBe(EXIT.returned);
    expect(record()).toMatchObject({ outcome: 'returned', reason: 'it did not start' });
  });
});

describe('a clock that changes', () => {
  it.each([
    ['ahead', DAY_MS],
    ['back', -DAY_MS],
  ])('%s during the start neither ends it nor lets it run on', async (_way, byMs) => {
    fill(10);
    vi.useFakeTimers({ toFake: ['Date'] });
    const jump = setInterval(() => vi.setSystemTime(Date.now() + byMs), 100);
    try {
      starts('sleep 1');
      expect(await carriedOut({ kind: 'back', step: 'start', within_seconds: 20 })).toBe(EXIT.done);
      starts('[ -f "$0.ended" ] || { touch "$0.ended"; exec sleep 60; }');
      const begun = performance.now();
      expect(await carriedOut({ step: 'start', kind: 'back', direction: 'return', within_seconds: 1 })).toBe(
        EXIT.stuck,
      );
      expect(performance.now() - begun).toBeLessThan(40_000);
    } finally {
      clearInterval(jump);
    }
  });
});

it('takes the packages that are there for a version with the same ones', () => {
  const lock = readFileSync(join(repository, 'package-lock.json'), 'utf8');
  writeFileSync(join(home, 'node_modules/.holdfast-lock'), lock);
  const source = join(place, 'source');
  mkdirSync(source);
  const entriesAfter = (version: string, change: (text: string) => string): string[] => {
    writeFileSync(join(source, 'package-lock.json'), change(lock));
    const script = join(repository, 'scripts/versions.sh');
    execFileSync('bash', [script, 'fetch', home, version, source], {
      env: { ...process.env, HOLDFAST_SOURCES_ONLY: '1' },
    });
    return readdirSync(join(home, '.upgrade', version)).filter((name) => name === 'node_modules');
  };
  // As `npm version` writes it: in the two first places.
  const [own = ''] = /"version": ".*"/.exec(lock) ?? [];
  const released = lock.replace(own, '"version": "9.1.0"').replace(own, '"version": "9.1.0"');
  expect(entriesAfter('9.1.0', () => released)).toEqual(['node_modules']);
  expect(entriesAfter('9.2.0', (text) => text.replace('"hono": "~', '"hono": "~1'))).toEqual([]);
});
