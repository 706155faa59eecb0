// Upgrades a real installation to made-up versions: one that works, one that changes a database, one
// that cannot start; and kills it on the way.

import { execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { basic } from '../../http/fake-deps.ts';
import { cleanEnvironment, freeOffset, home, type Outcome, outcomeOf, query, run, type StackFile } from './embedded.ts';

const place = mkdtempSync(join(tmpdir(), 'holdfast-upgrade-'));
const installation = join(place, 'installation');
const data = join(installation, 'data');
const file = (): StackFile => JSON.parse(readFileSync(join(data, 'stack.json'), 'utf8')) as StackFile;
/** The operator's file, which may differ from the shipped one. */
const THRESHOLDS = 'monitor/config/thresholds.yml';
const ONLY_MINE = ` M ${THRESHOLDS}\n`;
const journal = join(installation, '.upgrade/journal.json');

/** A copy of this repository as a version of its own, without its packages. */
function makeVersion(name: string, version: string, change: (directory: string) => void = () => undefined): string {
  const directory = join(place, name);
  mkdirSync(directory);
  const list = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: home });
  const archive = execFileSync('tar', ['-c', '-T', '-'], { cwd: home, input: list, maxBuffer: 1e9 });
  execFileSync('tar', ['-x'], { cwd: directory, input: archive });
  edit(directory, 'package.json', (text) => text.replace(/"version": ".*"/, `"version": "${version}"`));
  change(directory);
  return directory;
}

function edit(directory: string, name: string, change: (text: string) => string): void {
  const path = join(directory, name);
  writeFileSync(path, change(readFileSync(path, 'utf8')));
}

function script(name: string, ...args: string[]) {
  return spawn(join(installation, 'scripts', name), args, {
    env: cleanEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
}

const upgrade = async (...args: string[]): Promise<Outcome> => outcomeOf(script('upgrade.sh', ...args));

async function api<T>(path: string): Promise<T> {
  const { api: url, webadmin } = file();
  const headers = { authorization: basic(webadmin.username, webadmin.password) };
  return (await (await fetch(`${url}/api/${path}`, { headers })).json()) as T;
}

const release = async (): Promise<string> => (await api<{ info: { version: string } }>('openapi.json')).info.version;

/** A line of the audit log that tells one state of the data from another. */
async function mark(name: string): Promise<void> {
  await query(file()['state_database'], `CREATE TABLE IF NOT EXISTS mark (name text)`);
  await query(file()['state_database'], `INSERT INTO mark VALUES ('${name}')`);
}

async function marks(): Promise<string[]> {
  const rows = await query<{ name: string }>(file()['state_database'], 'SELECT name FROM mark ORDER BY name');
  return rows.map(({ name }) => name);
}

const git = (...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.org', ...args], {
    cwd: installation,
    encoding: 'utf8',
  });

let good: string;
let changing: string;
let broken: string;
let demanding: string;

beforeAll(async () => {
  // Builds the programs if they are older than their sources.
  await outcomeOf(run('start.sh', ['--embedded', '--help']));
  makeVersion('installation', '0.1.0');
  execFileSync('cp', ['-al', join(home, 'node_modules'), join(home, 'dist'), installation]);
  const now = new Date();
  rmSync(join(installation, 'dist/.built'));
  writeFileSync(join(installation, 'dist/.built'), '');
  utimesSync(join(installation, 'dist/.built'), now, now);
  git('init', '--quiet', '--initial-branch', 'main');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'version 0.1.0');
  edit(installation, THRESHOLDS, (text) => `${text}# mine\n`);
  good = makeVersion('good', '0.2.0', (directory) => writeFileSync(join(directory, 'new-file'), 'of 0.2.0'));
  changing = makeVersion('changing', '0.3.0', (directory) => {
    writeFileSync(join(directory, 'shared/runtime/migrations/0999-new.sql'), 'CREATE TABLE new_in_030 (id int);\n');
    edit(directory, 'shared/runtime/migrations/index.ts', (text) =>
      text
        .replace('\nexport', "import newOne from './0999-new.sql';\n\nexport")
        .replace(/\n\];\s*$/, "\n  { number: NUMBER, name: 'new', sql: newOne },\n];\n")
        .replace('NUMBER', String((text.match(/number: /g) ?? []).length + 1)),
    );
  });
  broken = makeVersion('broken', '0.4.0', (directory) =>
    writeFileSync(join(directory, 'scripts/core.ts'), 'process.exit(3);\n'),
  );
  demanding = makeVersion('demanding', '0.9.0', (directory) =>
    edit(directory, 'package.json', (text) => text.replace(/"upgradesFrom": ".*"/, '"upgradesFrom": "0.8.0"')),
  );
  const offset = String(await freeOffset());
  writeFileSync(join(installation, '.env'), 'DB_AUTOVACUUM_COST_LIMIT=777\n');
  const started = await outcomeOf(script('start.sh', '--embedded', '--offset', offset, '--detach'));
  expect(started).toMatchObject({ code: 0 });
  await mark('first');
}, 240_000);

afterAll(async () => {
  await outcomeOf(script('stop.sh', '--data', data));
  rmSync(place, { recursive: true, force: true });
});

describe('check', () => {
  it('says what is available and what prevents it, with exit codes', async () => {
    expect(await upgrade('check', '--from', installation)).toMatchObject({
      code: 0,
      output: expect.stringContaining('Holdfast 0.1.0 is up to date'),
    });
    expect(await upgrade('check', '--from', good)).toMatchObject({
      code: 10,
      output: expect.stringMatching(/0\.2\.0 is available[^]*ok +room[^]*ok +health[^]*ok +work[^]*note +backup/),
    });
    const { code, output } = await upgrade('check', '--from', demanding, '--json');
    expect([code, JSON.parse(output)]).toMatchObject([11, { current: '0.1.0', newest: '0.9.0', fetched: false }]);
    expect((await upgrade('apply', '--from', demanding)).output).toMatch(
      /does not upgrade from 0\.1\.0, only from 0\.8\.0[^]*Nothing was changed/,
    );
    for (const args of [[], ['upwards'], ['check', '--to', '../x']]) expect((await upgrade(...args)).code).toBe(2);
    expect(await upgrade('check', '--from', place)).toMatchObject({ code: 1, output: expect.stringContaining('git') });
    expect(await upgrade('back')).toMatchObject({ code: 3, output: expect.stringContaining('no upgrade') });
  });

  it('refuses local changes, and files in the way', async () => {
    const readme = readFileSync(join(installation, 'README.md'), 'utf8');
    writeFileSync(join(installation, 'README.md'), 'mine');
    expect(await upgrade('check', '--from', good)).toMatchObject({
      code: 11,
      output: expect.stringContaining('README.md was changed here'),
    });
    writeFileSync(join(installation, 'README.md'), readme);
    expect(await upgrade('fetch', '--from', good)).toMatchObject({ code: 0 });
    writeFileSync(join(installation, 'new-file'), 'mine');
    expect((await upgrade('check', '--from', good)).output).toContain('new-file is not a part of Holdfast 0.1.0');
    rmSync(join(installation, 'new-file'));
    expect(await release()).toBe('0.1.0');
  });
});

describe('a version that cannot start', () => {
  it('goes back by itself with all data, says so in health, and refuses the next upgrade', async () => {
    expect(await upgrade('apply', '--from', broken, '--within', '120')).toMatchObject({
      code: 4,
      output: expect.stringContaining('The upgrade to 0.4.0 failed. Version 0.1.0 runs'),
    });
    expect([await release(), await marks(), git('status', '--porcelain')]).toEqual(['0.1.0', ['first'], ONLY_MINE]);
    const { modules } = await api<{ modules: Record<string, { status: string; message: string }> }>('health');
    expect(modules['updates']).toMatchObject({
      status: 'warning',
      message: expect.stringMatching(/upgrade to 0\.4\.0 .* failed and 0\.1\.0 runs again.*core exited with code 3/),
    });
    expect(readdirSync(data)).toContain('set-aside-upgrade-0.4.0');
    expect(await upgrade('apply', '--from', good)).toMatchObject({
      code: 11,
      output: expect.stringMatching(/failed +earlier upgrade[^]*--again[^]*Nothing was changed/),
    });
    expect((await upgrade('check', '--from', good, '--again')).code).toBe(10);
    expect((await upgrade('check', '--from', good, '--clear')).code).toBe(10);
    expect(readdirSync(data).filter((name) => name.includes('upgrade-'))).toEqual([]);
  });
});

describe('kill -9', () => {
  /** Runs an upgrade and kills it in that step, with everything that it waits for. */
  async function killedIn(step: string, from: string): Promise<void> {
    const child = script('upgrade.sh', 'apply', '--from', from);
    const ended = outcomeOf(child);
    const at = (): unknown => {
      try {
        return (JSON.parse(readFileSync(journal, 'utf8')) as { step: string }).step;
      } catch {
        return undefined;
      }
    };
    for (const end = performance.now() + 60_000; at() !== step && performance.now() < end;) await delay(1);
    expect(at()).toBe(step);
    process.kill(child.pid ?? 0, 'SIGKILL');
    await ended;
    expect(existsSync(journal)).toBe(true);
  }

  it.each(['stop', 'snapshot'])('in %s changes nothing: the next call starts the stack again', async (step) => {
    await killedIn(step, good);
    expect((await upgrade('check', '--from', good)).output).toContain('interrupted before it changed anything');
    expect([existsSync(journal), await release(), await marks()]).toEqual([false, '0.1.0', ['first']]);
  });

  it('while the programs change is finished by the next start', async () => {
    await killedIn('switch', good);
    const offset = String(new URL(file().api).port ? Number(new URL(file().api).port) - 8080 : 0);
    expect(await outcomeOf(script('start.sh', '--embedded', '--offset', offset, '--detach'))).toMatchObject({
      code: 0,
      output: expect.stringContaining('Holdfast is running'),
    });
    expect([existsSync(journal), await release(), await marks()]).toEqual([false, '0.2.0', ['first']]);
    expect(readFileSync(join(installation, 'new-file'), 'utf8')).toBe('of 0.2.0');
    expect(readFileSync(join(installation, '.env'), 'utf8')).toContain('777');
    expect(readFileSync(join(installation, THRESHOLDS), 'utf8')).toMatch(/# mine\n$/);
  });
});

describe('the way back', () => {
  it('keeps the current data when no database was changed', async () => {
    await mark('on 0.2.0');
    expect(await upgrade('back')).toMatchObject({ code: 0 });
    expect([await release(), await marks()]).toEqual(['0.1.0', ['first', 'on 0.2.0']]);
    expect([existsSync(join(installation, 'new-file')), git('status', '--porcelain')]).toEqual([false, ONLY_MINE]);
    expect(git('symbolic-ref', 'HEAD').trim()).toBe('refs/heads/main');
    expect((await upgrade('back')).code).toBe(3);
  });

  it('needs the data of before when a database was changed, and says what that loses', async () => {
    await killedAndFinished();
    expect(await query(file()['state_database'], 'SELECT * FROM new_in_030')).toEqual([]);
    await mark('on 0.3.0');
    expect(await upgrade('back')).toMatchObject({
      code: 3,
      output: expect.stringMatching(
        /0\.3\.0 changed a database[^]*This loses everything[^]*CoT messages?[^]*--to-snapshot/,
      ),
    });
    expect(await upgrade('back', '--to-snapshot')).toMatchObject({ code: 0 });
    expect([await release(), await marks()]).toEqual(['0.1.0', ['first', 'on 0.2.0']]);
    expect(readdirSync(data)).toContain('set-aside-upgrade-0.3.0');
    expect((await upgrade('check', '--clear', '--from', installation)).code).toBe(0);
    expect(readdirSync(data).filter((name) => name.includes('upgrade-'))).toEqual([]);
  });

  /** Killed during the start, the next call starts it again, checks it and keeps it. */
  async function killedAndFinished(): Promise<void> {
    const child = script('upgrade.sh', 'apply', '--from', changing);
    const ended = outcomeOf(child);
    await expect
      .poll(() => existsSync(journal) && readFileSync(journal, 'utf8'), { timeout: 60_000, interval: 5 })
      .toContain('"step": "start"');
    process.kill(child.pid ?? 0, 'SIGKILL');
    await ended;
    expect(await upgrade('check', '--from', changing)).toMatchObject({
      code: 0,
      output: expect.stringMatching(/Version 0\.3\.0 runs[^]*Holdfast 0\.3\.0 is up to date/),
    });
    expect(await release()).toBe('0.3.0');
  }
});

it('lets no second upgrade run beside it, and leaves nothing in the data directory of others', async () => {
  const [one, other] = await Promise.all([
    upgrade('fetch', '--from', good),
    delay(300).then(() => upgrade('check', '--from', good)),
  ]);
  expect([one.code, other]).toMatchObject([0, { code: 1, output: expect.stringContaining('Another upgrade') }]);
  expect(dirname(data)).toBe(installation);
});
