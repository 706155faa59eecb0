// Upgrades an installation of the release before to this version and back, with data and secrets; then to made-up
// versions: one that works, one that cannot start; and kills it on the way.

import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { basic } from '../../http/fake-deps.ts';
import { cleanEnvironment, freeOffset, type Outcome, outcomeOf, query, secretsOf, type StackFile } from './embedded.ts';
import { commitAll, git, releaseBefore, takePackages, unpack } from './release-before.ts';

const place = mkdtempSync(join(tmpdir(), 'holdfast-upgrade-'));
const installation = join(place, 'installation');
const data = join(installation, 'data');
const file = (): StackFile => JSON.parse(readFileSync(join(data, 'stack.json'), 'utf8')) as StackFile;
/** The operator's file, which may differ from the shipped one. */
const THRESHOLDS = 'monitor/config/thresholds.yml';
const ONLY_MINE = ` M ${THRESHOLDS}\n`;
const journal = join(installation, '.upgrade/journal.json');

const LONG = { timeout: 240_000 };
/** This checkout as a version, and later ones. */
const [CURRENT, GOOD, BROKEN, DEMANDING] = ['99.0.0', '99.1.0', '99.2.0', '99.9.0'];

const packageOf = (directory: string): { version: string } =>
  JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as { version: string };

/** This checkout under a version of its own, with one table more in our own database. */
function makeVersion(version: string): string {
  const directory = join(place, version);
  unpack(directory, undefined);
  edit(directory, 'package.json', (text) => text.replace(/"version": ".*"/, `"version": "${version}"`));
  // As `npm version` does: in the two first places.
  edit(directory, 'package-lock.json', (text) => {
    const [own = ''] = /"version": ".*"/.exec(text) ?? [];
    return text.replace(own, `"version": "${version}"`).replace(own, `"version": "${version}"`);
  });
  writeFileSync(join(directory, 'shared/runtime/migrations/0999-new.sql'), 'CREATE TABLE new_in_99 (id int);\n');
  edit(directory, 'shared/runtime/migrations/index.ts', (text) =>
    text
      .replace('\nexport', "import newOne from './0999-new.sql';\n\nexport")
      .replace(/\n\];\s*$/, "\n  { number: NUMBER, name: 'new', sql: newOne },\n];\n")
      .replace('NUMBER', String((text.match(/number: /g) ?? []).length + 1)),
  );
  return directory;
}

/** The version in place as a later one, with its programs, so that none are built. */
function laterVersion(version: string, change: (directory: string) => void = () => undefined): string {
  const directory = makeVersion(version);
  cpSync(join(installation, 'dist'), join(directory, 'dist'), { recursive: true });
  for (const program of globSync('dist/*.js', { cwd: directory }))
    edit(directory, program, (text) => text.replaceAll(CURRENT, version));
  change(directory);
  rmSync(join(directory, 'dist/.built'));
  writeFileSync(join(directory, 'dist/.built'), '');
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

async function api<T>(path: string, body?: object): Promise<T> {
  const { api: url, webadmin } = file();
  const headers = { authorization: basic(webadmin.username, webadmin.password), 'content-type': 'application/json' };
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(`${url}/api/${path}`, { headers, ...sent });
  expect([path, response.ok]).toEqual([path, true]);
  return (await response.json()) as T;
}

const release = async (): Promise<string> => (await api<{ info: { version: string } }>('openapi.json')).info.version;

/** What neither an upgrade nor the way back may change. */
async function kept(): Promise<object> {
  const { results } = await api<{ results: { username: string }[] }>('users');
  return {
    people: results.map(({ username }) => username).toSorted(),
    authority: readFileSync(file().ca_certificate, 'utf8'),
    secrets: secretsOf({ data }),
    marks: await marks(),
  };
}

/** A line of the audit log that tells one state of the data from another. */
async function mark(name: string): Promise<void> {
  await query(file()['state_database'], `CREATE TABLE IF NOT EXISTS mark (name text)`);
  await query(file()['state_database'], `INSERT INTO mark VALUES ('${name}')`);
}

async function marks(): Promise<string[]> {
  const rows = await query<{ name: string }>(file()['state_database'], 'SELECT name FROM mark ORDER BY name');
  return rows.map(({ name }) => name);
}

/** Runs an upgrade and kills it in that step. What it waits for goes on. */
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
  for (const end = performance.now() + 120_000; at() !== step && performance.now() < end;) await delay(1);
  expect(at()).toBe(step);
  process.kill(child.pid ?? 0, 'SIGKILL');
  await ended;
  expect(existsSync(journal)).toBe(true);
}

const before = releaseBefore();
let current: string;
let offset: string;
let old: string;
let first: object;

beforeAll(async () => {
  unpack(installation, before);
  takePackages(installation);
  old = packageOf(installation).version;
  commitAll(installation, `version ${old}`);
  edit(installation, THRESHOLDS, (text) => `${text}# mine\n`);
  writeFileSync(join(installation, '.env'), 'DB_AUTOVACUUM_COST_LIMIT=777\n');
  current = makeVersion(CURRENT);
  writeFileSync(join(current, 'new-file'), `of ${CURRENT}`);
  commitAll(current, `version ${CURRENT}`);
  takePackages(current);
  offset = String(await freeOffset());
  const started = await outcomeOf(script('start.sh', '--embedded', '--offset', offset, '--detach'));
  expect(started).toMatchObject({ code: 0 });
  await mark('first');
  await api('users', { username: 'ada', name: 'Ada' });
  first = await kept();
  expect(first).toMatchObject({ people: expect.arrayContaining(['ada']) });
}, 240_000);

afterAll(async () => {
  await outcomeOf(script('stop.sh', '--data', data));
  rmSync(place, { recursive: true, force: true });
});

const title = before ?? 'none in this clone, so this checkout stands for it';
describe(`the release before (${title})`, () => {
  it(
    'becomes this version with its data and secrets, although the upgrade is killed during the start',
    LONG,
    async () => {
      await killedIn('start', current);
      expect(await upgrade('check', '--from', current)).toMatchObject({
        code: 0,
        output: expect.stringMatching(/Version 99\.0\.0 runs[^]*Holdfast 99\.0\.0 is up to date/),
      });
      expect([await release(), readFileSync(join(installation, 'new-file'), 'utf8')]).toEqual([
        CURRENT,
        `of ${CURRENT}`,
      ]);
      // A version may add secrets of its own.
      expect(await kept()).toMatchObject(first);
      expect(await query(file()['state_database'], 'SELECT * FROM new_in_99')).toEqual([]);
    },
  );

  it('comes back with the data of before, and says what that loses', async () => {
    await mark('on 99.0.0');
    expect(await upgrade('back')).toMatchObject({
      code: 3,
      output: expect.stringMatching(
        /99\.0\.0 changed a database[^]*This loses everything[^]*CoT messages?[^]*--to-snapshot/,
      ),
    });
    expect(await upgrade('back', '--to-snapshot')).toMatchObject({ code: 0 });
    expect([await release(), await kept()]).toEqual([old, first]);
    expect([existsSync(join(installation, 'new-file')), git(installation, 'status', '--porcelain')]).toEqual([
      false,
      ONLY_MINE,
    ]);
    expect(git(installation, 'symbolic-ref', 'HEAD').trim()).toBe('refs/heads/main');
    expect(readdirSync(data)).toContain('set-aside-upgrade-99.0.0');
    expect((await upgrade('check', '--clear', '--from', installation)).code).toBe(0);
    expect(readdirSync(data).filter((name) => name.includes('upgrade-'))).toEqual([]);
  });

  it('stays when the upgrade is killed during the copy', async () => {
    await killedIn('snapshot', current);
    expect(await upgrade('recover', '--leave-stopped')).toMatchObject({
      code: 4,
      output: expect.stringContaining('interrupted before it changed anything'),
    });
    expect([existsSync(journal), packageOf(installation).version]).toEqual([false, old]);
  });

  it('becomes this version at the next start when the upgrade is killed while the programs change', LONG, async () => {
    await killedIn('switch', current);
    expect(await outcomeOf(script('start.sh', '--embedded', '--offset', offset, '--detach'))).toMatchObject({
      code: 0,
      output: expect.stringContaining('Holdfast is running'),
    });
    expect([existsSync(journal), await release()]).toEqual([false, CURRENT]);
    expect(await kept()).toMatchObject(first);
    expect(readFileSync(join(installation, '.env'), 'utf8')).toContain('777');
    expect(readFileSync(join(installation, THRESHOLDS), 'utf8')).toMatch(/# mine\n$/);
  });
});

describe('this version', () => {
  let good: string;
  beforeAll(() => {
    good = laterVersion(GOOD, (directory) => writeFileSync(join(directory, 'newer-file'), `of ${GOOD}`));
  });

  it('says what is available and what prevents it, with exit codes', async () => {
    expect(await upgrade('check', '--from', installation)).toMatchObject({
      code: 0,
      output: expect.stringContaining('Holdfast 99.0.0 is up to date'),
    });
    expect(await upgrade('check', '--from', good)).toMatchObject({
      code: 10,
      output: expect.stringMatching(/99\.1\.0 is available[^]*ok +room[^]*ok +health[^]*ok +work[^]*note +backup/),
    });
    const demanding = laterVersion(DEMANDING, (directory) =>
      edit(directory, 'package.json', (text) => text.replace(/"upgradesFrom": ".*"/, '"upgradesFrom": "99.8.0"')),
    );
    const { code, output } = await upgrade('check', '--from', demanding, '--json');
    expect([code, JSON.parse(output)]).toMatchObject([11, { current: CURRENT, newest: DEMANDING, fetched: false }]);
    expect(output).toContain('does not upgrade from 99.0.0, only from 99.8.0 and later');
  });

  it('sees a backup by backup.sh, which waits for an upgrade in turn', async () => {
    const [lock, backup] = ['.upgrade/lock', 'scripts/backup.sh'].map((name) => join(installation, name));
    const under = (held: string, ...command: string[]): Promise<Outcome> =>
      outcomeOf(spawn('flock', [held, ...command], { env: cleanEnvironment(), stdio: ['ignore', 'pipe', 'pipe'] }));
    expect(await under(backup ?? '', join(installation, 'scripts/upgrade.sh'), 'check', '--from', good)).toMatchObject({
      code: 11,
      output: expect.stringMatching(/failed +work +running or queued: \.\/scripts\/backup\.sh/),
    });
    expect(await under(lock ?? '', backup ?? '', '--data', data)).toMatchObject({
      code: 1,
      output: expect.stringContaining('An upgrade of this installation is running.'),
    });
  });

  it('refuses local changes, and files in the way', async () => {
    const readme = readFileSync(join(installation, 'README.md'), 'utf8');
    writeFileSync(join(installation, 'README.md'), 'mine');
    expect(await upgrade('check', '--from', good)).toMatchObject({
      code: 11,
      output: expect.stringContaining('README.md was changed here'),
    });
    writeFileSync(join(installation, 'README.md'), readme);
    // Its packages are those of this version.
    expect(await upgrade('fetch', '--from', good)).toMatchObject({
      code: 0,
      output: expect.not.stringContaining('Installing packages'),
    });
    writeFileSync(join(installation, 'newer-file'), 'mine');
    expect((await upgrade('check', '--from', good)).output).toContain('newer-file is not a part of Holdfast 99.0.0');
    rmSync(join(installation, 'newer-file'));
    expect(await release()).toBe(CURRENT);
  });

  it(
    'comes back by itself with all data when a later one cannot start, and refuses the next upgrade',
    LONG,
    async () => {
      const broken = laterVersion(BROKEN, (directory) =>
        writeFileSync(join(directory, 'dist/core.js'), 'process.exit(3);\n'),
      );
      expect(await upgrade('apply', '--from', broken, '--within', '120')).toMatchObject({
        code: 4,
        output: expect.stringContaining('The upgrade to 99.2.0 failed. Version 99.0.0 runs'),
      });
      expect([await release(), await marks(), git(installation, 'status', '--porcelain')]).toEqual([
        CURRENT,
        ['first'],
        ONLY_MINE,
      ]);
      const { modules } = await api<{ modules: Record<string, { status: string; message: string }> }>('health');
      expect(modules['updates']).toMatchObject({
        status: 'warning',
        message: expect.stringMatching(
          /upgrade to 99\.2\.0 .* failed and 99\.0\.0 runs again.*core exited with code 3/,
        ),
      });
      expect(readdirSync(data)).toContain('set-aside-upgrade-99.2.0');
      expect(await upgrade('apply', '--from', good)).toMatchObject({
        code: 11,
        output: expect.stringMatching(/failed +earlier upgrade[^]*--again[^]*Nothing was changed/),
      });
      expect((await upgrade('check', '--from', good, '--again')).code).toBe(10);
      expect((await upgrade('check', '--from', good, '--clear')).code).toBe(10);
      expect(readdirSync(data).filter((name) => name.includes('set-aside'))).toEqual([]);
    },
  );

  it('comes back with the current data when the later one changed no database', async () => {
    expect(await upgrade('apply', '--from', good)).toMatchObject({
      code: 0,
      output: expect.stringContaining('Version 99.1.0 runs and passed the connection check'),
    });
    expect([await release(), existsSync(join(installation, 'newer-file'))]).toEqual([GOOD, true]);
    await mark('on 99.1.0');
    expect(await upgrade('back')).toMatchObject({ code: 0 });
    expect([await release(), await marks()]).toEqual([CURRENT, ['first', 'on 99.1.0']]);
    expect([existsSync(join(installation, 'newer-file')), git(installation, 'status', '--porcelain')]).toEqual([
      false,
      ONLY_MINE,
    ]);
    expect(await upgrade('back')).toMatchObject({ code: 3, output: expect.stringContaining('no upgrade') });
  });

  it('lets no second upgrade run beside it, and leaves nothing in the data directory of others', async () => {
    const lock = spawn('flock', [join(installation, '.upgrade/lock'), 'sleep', '60']);
    await expect.poll(() => spawnSync('flock', ['-n', join(installation, '.upgrade/lock'), 'true']).status).toBe(1);
    expect(await upgrade('check', '--from', good)).toMatchObject({
      code: 1,
      output: expect.stringContaining('Another upgrade'),
    });
    lock.kill();
    expect(dirname(data)).toBe(installation);
  });
});
