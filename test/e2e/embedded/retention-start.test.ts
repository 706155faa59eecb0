// Retention when a stack starts: the variables are in the files before the core reads them, and a
// bad one stops the start before anything was started.

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { apiDevice, asDevice, coreOf, workDirectory } from './core-client.ts';
import { cleanEnvironment, home, newStack, type Outcome, outcomeOf, stop, type TestStack } from './embedded.ts';

const POLICY = 'conf/retention/retention-policy.yml';
const SCHEDULE = 'conf/retention/retention-service.yml';
const KEPT = { cot: null, geochat: null, files: null, missionpackages: null, missions: null };

describe('a start of the embedded stack', () => {
  let stack: TestStack;
  const fileOf = (name: string): string => join(stack.data, 'core', name);
  const text = (name: string): string => readFileSync(fileOf(name), 'utf8');
  const start = (env: Record<string, string> = {}): Promise<Outcome> => stack.start([], { env });
  /** What the log of the starts says in full. */
  const started = (): string => readFileSync(join(stack.data, 'logs', 'supervisor.log'), 'utf8');

  /** What the core itself says that it has in force. */
  async function inForce(): Promise<{ policy: unknown; schedule: unknown }> {
    const core = coreOf(stack);
    const device = await apiDevice(core, workDirectory(stack));
    const ask = async (path: string): Promise<unknown> => {
      const { status, body } = await asDevice(core, device, `/Marti/api/retention/${path}`);
      expect(status).toBe(200);
      return (JSON.parse(body) as { data: unknown }).data;
    };
    return { policy: await ask('policy'), schedule: await ask('service/schedule') };
  }

  beforeAll(async () => {
    stack = await newStack();
  });
  afterEach(() => stop(stack.data));
  afterAll(() => stop(stack.data));

  it('has the variables in force at the core, and says so in a step', async () => {
    const { code, output } = await start({
      COT_RETENTION_DAYS: '30',
      GEOCHAT_RETENTION_DAYS: '90',
      RETENTION_CRON: '0 30 4 * * ?',
    });
    expect([code, output]).toEqual([
      0,
      expect.stringMatching(/ok {3}retention {5}cot 30 days, geochat 90 days, at 0 30 4 \* \* \? \(\S+\) \(\d/),
    ]);
    expect(output.indexOf('retention ')).toBeLessThan(output.indexOf('database '));
    expect(await inForce()).toEqual({ policy: { ...KEPT, cot: 30, geochat: 90 }, schedule: '0 30 4 * * ?' });
    expect(text(POLICY)).toMatch(/^# The unit of dataRetentionMap is DAYS /);
  });

  it('undoes a withdrawn variable in files that are as Holdfast wrote them', async () => {
    expect(await start()).toMatchObject({
      code: 0,
      output: expect.stringMatching(/retention {5}keep everything \(/),
    });
    expect(await inForce()).toEqual({ policy: KEPT, schedule: '-' });
    expect(started()).toContain('geochat is kept forever again, because GEOCHAT_RETENTION_DAYS is unset');
  });

  it('leaves files that a person has edited byte for byte while nothing is set, and the core obeys them', async () => {
    writeFileSync(fileOf(POLICY), '# season of 2026\ndataRetentionMap: {missions: 400}\n');
    writeFileSync(fileOf(SCHEDULE), 'cronExpression: "0 15 2 * * ?"   # nights\n');
    const before = [text(POLICY), text(SCHEDULE)];
    const { output } = await start();
    expect(output).toMatch(/retention {5}missions 400 days, at 0 15 2 \* \* \? \(/);
    expect([text(POLICY), text(SCHEDULE)]).toEqual(before);
    expect(await inForce()).toEqual({ policy: { ...KEPT, missions: 400 }, schedule: '0 15 2 * * ?' });
  });

  it('changes only the key of a variable in such files, and leaves it there when a person edits them again', async () => {
    const { code } = await start({ COT_RETENTION_DAYS: '30' });
    expect([code, (await inForce()).policy]).toEqual([0, { ...KEPT, cot: 30, missions: 400 }]);
    expect(text(POLICY)).toContain('# season of 2026');
    expect(text(SCHEDULE)).toContain('# nights');
    await stop(stack.data);
    writeFileSync(fileOf(POLICY), `${text(POLICY)}# checked\n`);
    const { output } = await start();
    expect(output).toMatch(/retention {5}cot 30 days, missions 400 days, at /);
    expect(started()).toContain('cot is unchanged although COT_RETENTION_DAYS is unset');
    expect((await inForce()).policy).toEqual({ ...KEPT, cot: 30, missions: 400 });
  });

  it('refuses files that are broken by hand, by file and line, before a process was started', async () => {
    const before = readdirSync(join(stack.data, 'core'), { recursive: true });
    writeFileSync(fileOf(POLICY), 'dataRetentionMap:\n  cot: soon\n');
    for (const env of [{}, { COT_RETENTION_DAYS: '30' }]) {
      const { code, output } = await start(env);
      expect(code).toBe(1);
      expect(output).toContain(`${fileOf(POLICY)} line 2: cot is neither empty nor a whole number`);
      expect(output).toContain('Remedy: correct that line, or delete the file');
      expect(output).not.toContain('ok   database');
    }
    expect(text(POLICY)).toBe('dataRetentionMap:\n  cot: soon\n');
    expect(readdirSync(join(stack.data, 'core'), { recursive: true })).toEqual(before);
  });

  it('writes into the directory of its own core, wherever management is sent', async () => {
    // The remedy for a broken one.
    rmSync(fileOf(POLICY));
    const elsewhere = mkdtempSync(join(tmpdir(), 'holdfast-elsewhere-'));
    // Where that is, the core counts seconds: whoever would write there is refused.
    writeFileSync(join(elsewhere, 'takserver-retention.jar'), '');
    try {
      const { code, output } = await start({ COT_RETENTION_DAYS: '12', CORE_DATA_DIR: elsewhere });
      expect([code, output]).toEqual([0, expect.stringMatching(/ok {3}retention {5}cot 12 days, at /)]);
      expect(parse(text(POLICY))).toMatchObject({ dataRetentionMap: { ...KEPT, cot: 12 } });
      expect(readdirSync(elsewhere)).not.toContain('conf');
    } finally {
      await stop(stack.data);
      rmSync(elsewhere, { recursive: true, force: true });
    }
  });

  it('with values that are no days ends with a sentence for each and writes nothing', async () => {
    const all = (): unknown[] =>
      readdirSync(stack.data, { recursive: true, encoding: 'utf8' })
        .toSorted()
        .map((name) => [name, statSync(join(stack.data, name)).mtimeMs]);
    const before = all();
    const values = { COT_RETENTION_DAYS: '1.5', GEOCHAT_RETENTION_DAYS: '99999' };
    const { code, output } = await start(values);
    expect(code).toBe(1);
    for (const [name, value] of Object.entries(values)) {
      expect(output).toContain(`${name}=${value}: must be a whole number of days`);
      expect(output).toContain(`Remedy: set for example ${name}=`);
    }
    expect(all()).toEqual(before);
  });
});

describe('the program that runs before a core in a container', () => {
  let data: string;
  beforeEach(() => {
    data = mkdtempSync(join(tmpdir(), 'holdfast-before-'));
  });
  afterEach(() => rmSync(data, { recursive: true }));

  const program = (env: Record<string, string>, args = ['--env', '/dev/null']): Promise<Outcome> =>
    outcomeOf(
      spawn(join(home, 'node_modules/.bin/node'), [join(home, 'dist/sync-retention.js'), ...args], {
        env: cleanEnvironment(env),
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );

  it('writes seconds for a release, says what it did, and is content the second time', async () => {
    const file = join(data, 'settings.env');
    writeFileSync(file, `COT_RETENTION_DAYS=30\nRETENTION_CRON=0 0 3 ? * SUN\nCORE_RETENTION_UNIT=seconds\n`);
    writeFileSync(join(data, 'takserver-retention.jar'), '');
    const first = await program({ CORE_DATA_DIR: data }, ['--env', file]);
    expect([first.code, first.output]).toEqual([0, expect.stringContaining('cot is kept 30 days (COT_RETENTION_DAYS')]);
    expect(readFileSync(join(data, POLICY), 'utf8')).toContain('  cot: 2592000 # 30 days\n');
    expect(parse(readFileSync(join(data, SCHEDULE), 'utf8'))).toEqual({ cronExpression: '0 0 3 ? * 0' });
    const second = await program({ CORE_DATA_DIR: data }, ['--env', file]);
    expect([second.code, second.output]).toEqual([0, `The retention files in ${data} are up to date.\n`]);
  });

  it('makes files that keep everything when nothing is set', async () => {
    expect((await program({ CORE_DATA_DIR: data })).code).toBe(0);
    expect(parse(readFileSync(join(data, POLICY), 'utf8'))).toMatchObject({ dataRetentionMap: KEPT });
    expect(parse(readFileSync(join(data, SCHEDULE), 'utf8'))).toEqual({ cronExpression: '-' });
  });

  const SECONDS = { CORE_RETENTION_UNIT: 'seconds' };
  it.each<[Record<string, string>, RegExp]>([
    [{ COT_RETENTION_DAYS: '30' }, /CORE_RETENTION_UNIT: must be set, because COT_RETENTION_DAYS is/],
    [{ RETENTION_CRON: '0 0 3 * * ?' }, /CORE_RETENTION_UNIT: must be set, because RETENTION_CRON is/],
    [{ COT_RETENTION_DAYS: '1.5', ...SECONDS }, /COT_RETENTION_DAYS=1\.5: must be a whole number of days/],
    [
      { GEOCHAT_RETENTION_DAYS: '24856', ...SECONDS },
      /GEOCHAT_RETENTION_DAYS=24856: must be a whole number of days from 1 to 24855/,
    ],
    [
      { RETENTION_CRON: '0 0 3 * * ? 2099', ...SECONDS },
      /RETENTION_CRON=.*: can't be given to the core: it is for the year 2099/,
    ],
    [{ CORE_RETENTION_UNIT: 'hours' }, /CORE_RETENTION_UNIT=hours: must be days or seconds/],
  ])('refuses %j with a sentence and a remedy, and writes nothing', async (env, message) => {
    const { code, output } = await program({ CORE_DATA_DIR: data, ...env });
    expect([code, output]).toEqual([1, expect.stringMatching(message)]);
    expect(output).toContain('Remedy: ');
    expect(readdirSync(data)).toEqual([]);
  });

  it('refuses days beside the program of a release, a missing directory, and none at all', async () => {
    writeFileSync(join(data, 'takserver-retention.jar'), '');
    const release = await program({ CORE_DATA_DIR: data, CORE_RETENTION_UNIT: 'days', COT_RETENTION_DAYS: '30' });
    expect([release.code, release.output]).toEqual([
      1,
      expect.stringContaining('Remedy: set CORE_RETENTION_UNIT=seconds'),
    ]);
    expect(readdirSync(data)).toEqual(['takserver-retention.jar']);
    const missing = await program({ CORE_DATA_DIR: join(data, 'nowhere') });
    expect([missing.code, missing.output]).toEqual([
      1,
      expect.stringContaining(`Couldn't read or write ${data}/nowhere`),
    ]);
    const none = await program({});
    expect([none.code, none.output]).toEqual([1, expect.stringContaining('CORE_DATA_DIR: must be set')]);
  });

  it('refuses a broken file by its line and leaves both alone', async () => {
    mkdirSync(join(data, 'conf/retention'), { recursive: true });
    writeFileSync(join(data, SCHEDULE), 'cronExpression: [\n');
    const { code, output } = await program({ CORE_DATA_DIR: data });
    expect([code, output]).toEqual([1, expect.stringContaining(`${join(data, SCHEDULE)} line `)]);
    expect(readdirSync(join(data, 'conf/retention'))).toEqual(['retention-service.yml']);
  });

  it('explains itself', async () => {
    expect(await program({}, ['--help'])).toEqual({ code: 0, output: expect.stringMatching(/^Usage: /) });
    expect((await program({}, ['--envy'])).code).toBe(2);
  });
});
