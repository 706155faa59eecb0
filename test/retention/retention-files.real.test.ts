// The retention files on a real disk: crashes at any step, writers at the same time, links, directories that cannot be written.

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KEEP_ALL } from '@holdfast/kit/retention';
import { replaceKeptFile } from '@holdfast/kit/shared-file';
import { retentionFiles as coreReads } from '../../packages/core/admin/retention-files.ts';
import { type ReplaceFile, retentionFiles } from '../../shared/retention/files.ts';
import type { WantedRetention } from '../../shared/retention/port.ts';
import { asRoot } from '../e2e/embedded/embedded.ts';

let data: string;
let directory: string;
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'holdfast-files-'));
  directory = join(data, 'conf/retention');
});
afterEach(() => rmSync(data, { recursive: true, force: true }));

const want = (given: Partial<WantedRetention> = {}): WantedRetention => ({
  cot: undefined,
  geochat: undefined,
  cron: undefined,
  unit: undefined,
  ...given,
});
const POLICY = 'retention-policy.yml';
const SCHEDULE = 'retention-service.yml';
const MEMORY = '.holdfast.json';
const text = (name: string): string => readFileSync(join(directory, name), 'utf8');
function write(name: string, content: string): void {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, name), content);
}
/** Name and content of everything there. */
const everything = (): Record<string, string> =>
  Object.fromEntries(readdirSync(directory).map((name) => [name, text(name)]));

describe('the retention files', () => {
  it('are made, read again, and beside them lies what Holdfast remembers, for its owner only', async () => {
    const files = retentionFiles(data);
    expect(await files.read()).toEqual({ policy: KEEP_ALL, exemptKeywords: [], schedule: '-' });
    const { written } = await files.sync(want({ cot: 30, geochat: 90, unit: 'days' }));
    expect(written).toEqual([POLICY, SCHEDULE]);
    expect(readdirSync(directory).toSorted()).toEqual([MEMORY, POLICY, SCHEDULE]);
    expect(statSync(join(directory, MEMORY)).mode & 0o777).toBe(0o600);
    expect(await files.read()).toEqual({
      policy: { ...KEEP_ALL, cot: 30, geochat: 90 },
      exemptKeywords: [],
      schedule: '0 0 3 * * ?',
    });
  });

  it('are not touched by a second look, not even to write the same again', async () => {
    await retentionFiles(data).sync(want({ cot: 30, unit: 'days' }));
    const times = () => readdirSync(directory).map((name) => [name, statSync(join(directory, name)).ino]);
    const before = times();
    expect(await retentionFiles(data).sync(want({ cot: 30, unit: 'days' }))).toEqual({ written: [], messages: [] });
    expect(times()).toEqual(before);
  });

  it('of a person stay byte for byte while nothing is set, and nothing is put beside them', async () => {
    write(POLICY, 'dataRetentionMap: {cot: 5} # mine\r\n');
    write(SCHEDULE, '-');
    const before = everything();
    expect(await retentionFiles(data).sync(want({ unit: 'days' }))).toEqual({ written: [], messages: [] });
    expect(everything()).toEqual(before);
  });

  it('keep their mode, and their owner where that may be given', async () => {
    write(POLICY, 'dataRetentionMap:\n');
    chmodSync(join(directory, POLICY), 0o640);
    if (asRoot) chownSync(join(directory, POLICY), 1234, 4321);
    await retentionFiles(data).sync(want({ cot: 30, unit: 'days' }));
    const { mode, uid, gid } = statSync(join(directory, POLICY));
    expect(mode & 0o777).toBe(0o640);
    if (asRoot) expect([uid, gid]).toEqual([1234, 4321]);
  });

  it('are read by the embedded core as they were meant', async () => {
    write(POLICY, 'dataRetentionMap:\n  missions: 400 # the season\n');
    await retentionFiles(data).sync(want({ cot: 30, geochat: 90, cron: '0 30 2 ? * SUN', unit: 'days' }));
    const core = coreReads(data);
    expect(core.policy()).toEqual({ ...KEEP_ALL, cot: 30, geochat: 90, missions: 400 });
    expect(core.schedule()).toBe('0 30 2 ? * SUN');
  });

  it('never touch the mission archiver', async () => {
    await retentionFiles(data).sync(want({ cot: 30, unit: 'days' }));
    expect(readdirSync(directory)).not.toContain('mission-archiving-config.yml');
    write('mission-archiving-config.yml', 'broken: [');
    await retentionFiles(data).sync(want({ cot: 31, unit: 'days' }));
    expect(text('mission-archiving-config.yml')).toBe('broken: [');
  });

  it('undo a withdrawn variable after a restart, unless somebody has changed the file', async () => {
    await retentionFiles(data).sync(want({ cot: 30, geochat: 90, unit: 'days' }));
    await retentionFiles(data).sync(want({ geochat: 90, unit: 'days' }));
    expect((await retentionFiles(data).read()).policy).toEqual({ ...KEEP_ALL, geochat: 90 });
    write(POLICY, `${text(POLICY)}# looked at\n`);
    const { messages } = await retentionFiles(data).sync(want());
    expect(messages).toEqual([
      expect.stringMatching(/^retention-policy.yml: geochat is unchanged although GEOCHAT_RETENTION_DAYS is unset/),
      'retention-service.yml: the schedule is off, because no variable is set any more',
    ]);
    expect((await retentionFiles(data).read()).policy).toEqual({ ...KEEP_ALL, geochat: 90 });
  });

  it('are undone by nobody who cannot read what Holdfast remembers', async () => {
    await retentionFiles(data).sync(want({ cot: 30, unit: 'days' }));
    for (const memory of ['{', '{"policy":[{"sha256":1}]}', '[]', '\0']) {
      write(MEMORY, memory);
      const before = everything();
      await retentionFiles(data).sync(want());
      expect(everything()).toEqual(before);
    }
  });
});

describe('a refusal', () => {
  const refusal = async (wanted: WantedRetention): Promise<unknown> => {
    const before = readdirSync(data, { recursive: true });
    const error = await retentionFiles(data)
      .sync(wanted)
      .catch((each: unknown) => each);
    expect(readdirSync(data, { recursive: true })).toEqual(before);
    return error;
  };

  it('meets days beside the program of a release, and a variable without a unit', async () => {
    writeFileSync(join(data, 'takserver-retention.jar'), '');
    expect(await refusal(want({ cot: 30, unit: 'days' }))).toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/takserver-retention\.jar exists: .* Remedy: set CORE_RETENTION_UNIT=seconds/),
    });
    expect(await refusal(want({ cot: 30 }))).toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/CORE_RETENTION_UNIT must be set/),
    });
    expect((await retentionFiles(data).sync(want({ cot: 30, unit: 'seconds' }))).written).toHaveLength(2);
  });

  it('meets days in the file of a core that is a release now, also where nothing is set', async () => {
    write(POLICY, '# The unit of dataRetentionMap is DAYS (embedded core).\ndataRetentionMap:\n  cot: 30\n');
    await retentionFiles(data).sync(want());
    writeFileSync(join(data, 'takserver-retention.jar'), '');
    for (const unit of [undefined, 'seconds'] as const)
      expect(await refusal(want({ unit }))).toMatchObject({
        code: 'invalid',
        message: expect.stringMatching(/line 1: its comment says it counts days, but the core counts seconds/),
      });
  });

  it.each([
    ['text that is no YAML', 'dataRetentionMap: {\n', / line 2: .*Remedy: correct that line, or delete the file/],
    ['a number that is none', '\ndataRetentionMap:\n  cot: 1.5\n', / line 3: cot is neither/],
    ['more than a megabyte', '#'.repeat(1024 * 1024 + 1), /is larger than 1048576 bytes/],
  ])('meets %s, naming the file, and nothing is written', async (_, content, message) => {
    write(POLICY, content);
    for (const call of [
      refusal(want({ cot: 1, unit: 'days' })),
      retentionFiles(data)
        .read()
        .catch((each: unknown) => each),
    ]) {
      const error = (await call) as Error;
      expect(error).toMatchObject({ code: 'invalid' });
      expect(error.message).toContain(join(directory, POLICY));
      expect(error.message).toMatch(message);
    }
  });

  it('meets bytes that are no text, a directory and a pipe in the place of a file', async () => {
    write(POLICY, '');
    writeFileSync(join(directory, POLICY), Buffer.from([0x64, 0xff, 0xfe]));
    expect(await refusal(want())).toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/is not UTF-8 text/),
    });
    rmSync(join(directory, POLICY));
    mkdirSync(join(directory, POLICY));
    expect(await refusal(want())).toMatchObject({ code: 'invalid', message: expect.stringMatching(/is not a file/) });
    rmSync(join(directory, POLICY), { recursive: true });
    execFileSync('mkfifo', [join(directory, POLICY)]);
    expect(await refusal(want())).toMatchObject({ code: 'invalid', message: expect.stringMatching(/is not a file/) });
  });

  it('meets a link in the place of a file, and a directory that leads elsewhere', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'holdfast-outside-'));
    try {
      writeFileSync(join(outside, POLICY), 'dataRetentionMap:\n');
      mkdirSync(directory, { recursive: true });
      symlinkSync(join(outside, POLICY), join(directory, POLICY));
      expect(await refusal(want({ cot: 1, unit: 'days' }))).toMatchObject({
        code: 'invalid',
        message: expect.stringMatching(/is a link/),
      });
      rmSync(directory, { recursive: true });
      symlinkSync(outside, directory);
      expect(await refusal(want({ cot: 1, unit: 'days' }))).toMatchObject({
        code: 'invalid',
        message: expect.stringMatching(/points outside .* and is not followed/),
      });
      expect(readdirSync(outside)).toEqual([POLICY]);
      expect(readFileSync(join(outside, POLICY), 'utf8')).toBe('dataRetentionMap:\n');
    } finally {
      rmSync(outside, { recursive: true });
    }
  });

  it('is unavailable where nothing can be made, and where there is no data directory', async () => {
    writeFileSync(join(data, 'conf'), 'a file');
    expect(await refusal(want())).toMatchObject({ code: 'unavailable', message: expect.stringMatching(/ENOTDIR/) });
    expect(
      await retentionFiles(join(data, 'nowhere'))
        .sync(want())
        .catch((each: unknown) => each),
    ).toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining(`Couldn't read or write ${join(data, 'nowhere')} (ENOENT)`),
    });
  });

  it.skipIf(!asRoot)(
    'of a directory that may not be written is unavailable, and unset variables do not need it',
    () => {
      mkdirSync(directory, { recursive: true });
      write(POLICY, 'dataRetentionMap:\n');
      write(SCHEDULE, '-');
      chmodSync(data, 0o755);
      const program = `import { retentionFiles } from './shared/retention/files.ts';
      const wanted = (cot) => ({ cot, geochat: undefined, cron: undefined, unit: 'days' });
      const end = (cot) => retentionFiles(${JSON.stringify(data)}).sync(wanted(cot)).then(() => 'done', ({ code }) => code);
      console.log(await end(undefined), await end(30));`;
      const asAnonymous = [
        '--reuid=65534',
        '--regid=65534',
        '--clear-groups',
        process.execPath,
        '--input-type=module',
        '-e',
        program,
      ];
      expect(execFileSync('setpriv', asAnonymous, { encoding: 'utf8' }).trim()).toBe('done unavailable');
    },
  );
});

describe('a crash', () => {
  class Crash extends Error {}
  /** Dies before or after the n-th write. */
  const dying = (atWrite: number, when: 'before' | 'after'): ReplaceFile => {
    let writes = 0;
    return async (file) => {
      writes += 1;
      if (writes === atWrite && when === 'before') throw new Crash();
      await replaceKeptFile(file);
      if (writes === atWrite && when === 'after') throw new Crash();
    };
  };
  const HISTORY = [
    want({ cot: 30, geochat: 90, unit: 'days' }),
    want({ geochat: 80, cron: '0 0 5 * * ?', unit: 'days' }),
    want({ unit: 'days' }),
  ];
  /** The first change has nothing to remember besides what it writes: three writes. */
  const moments = HISTORY.flatMap((_, change) =>
    [1, 2, 3, 4]
      .slice(0, change === 0 ? 3 : 4)
      .flatMap((atWrite) => (['before', 'after'] as const).map((when) => ({ change, atWrite, when }))),
  );

  it.each(moments)('$when write $atWrite of change $change is made good by the next call', async (moment) => {
    for (const [index, wanted] of HISTORY.entries()) {
      if (index === moment.change) {
        const dead = retentionFiles(data, dying(moment.atWrite, moment.when)).sync(wanted);
        await expect(dead).rejects.toBeInstanceOf(Crash);
        writeFileSync(join(directory, `.new-${POLICY}-left`), 'half');
        await retentionFiles(data).read();
      }
      await retentionFiles(data).sync(wanted);
      const { policy, schedule } = await retentionFiles(data).read();
      expect([policy.cot, policy.geochat, schedule]).toEqual(
        [
          [30, 90, '0 0 3 * * ?'],
          [null, 80, '0 0 5 * * ?'],
          [null, null, '-'],
        ][index],
      );
    }
    const memory = JSON.parse(text(MEMORY)) as { policy: unknown[]; schedule: unknown[] };
    expect([memory.policy.length, memory.schedule.length]).toEqual([1, 1]);
  });

  it('before a variable was withdrawn in between loses nothing of what is known', async () => {
    await retentionFiles(data).sync(want({ cot: 30, unit: 'days' }));
    await retentionFiles(data, dying(2, 'before'))
      .sync(want({ cot: 40, unit: 'days' }))
      .catch(() => undefined);
    await retentionFiles(data).sync(want());
    expect(await retentionFiles(data).read()).toMatchObject({ policy: KEEP_ALL, schedule: '-' });
  });

  it('that left its lock and half a file behind holds nobody up for long', async () => {
    write('.holdfast.lock', '');
    utimesSync(join(directory, '.holdfast.lock'), new Date(), new Date(Date.now() - 60_000));
    write(`.new-${POLICY}-half`, 'dataRet');
    await retentionFiles(data).sync(want({ cot: 30, unit: 'days' }));
    expect(readdirSync(directory).toSorted()).toEqual([MEMORY, POLICY, SCHEDULE]);
  });
});

describe('several writers', () => {
  it('with other variables each leave whole files, of one of them, and nothing of their own behind', async () => {
    const wanted = [10, 20, 30].map((cot) => want({ cot, unit: 'days' }));
    for (let round = 0; round < 10; round++) {
      await Promise.all(wanted.map((each) => retentionFiles(data).sync(each)));
      const { policy, schedule } = await retentionFiles(data).read();
      expect([10, 20, 30]).toContain(policy.cot);
      expect(schedule).toBe('0 0 3 * * ?');
      expect(readdirSync(directory).toSorted()).toEqual([MEMORY, POLICY, SCHEDULE]);
    }
    await retentionFiles(data).sync(want());
    expect((await retentionFiles(data).read()).policy).toEqual(KEEP_ALL);
  });

  it('do not overwrite what a person saves between the look and the write', async () => {
    await retentionFiles(data).sync(want({ cot: 10, unit: 'days' }));
    let saved = false;
    const meanwhile: ReplaceFile = async (file) => {
      if (file.path.endsWith(POLICY) && !saved) {
        saved = true;
        write(POLICY, `${text(POLICY)}# saved meanwhile\n`);
      }
      await replaceKeptFile(file);
    };
    await retentionFiles(data, meanwhile).sync(want({ cot: 20, unit: 'days' }));
    expect(text(POLICY)).toContain('cot: 20');
    expect(text(POLICY)).toContain('# saved meanwhile');
  });
});

describe('the log of a release', () => {
  it('is undefined when there is none', async () => {
    expect(await retentionFiles(data).log()).toBeUndefined();
  });

  it('is its last 2000 lines, oldest first, and never more than half a megabyte of it', async () => {
    mkdirSync(join(data, 'logs'));
    const log = join(data, 'logs/takserver-retention.log');
    const lines = Array.from({ length: 5000 }, (_, index) => `line ${index}`);
    writeFileSync(log, `${lines.join('\n')}\n`);
    expect(await retentionFiles(data).log()).toEqual(lines.slice(-2000));
    writeFileSync(log, `${'x'.repeat(2_000_000)}\nlast\n`);
    expect(await retentionFiles(data).log()).toEqual(['last']);
    writeFileSync(log, 'whole\ndeleteCotByTtl, Number of rows deleted 12');
    expect(await retentionFiles(data).log()).toEqual(['whole']);
    writeFileSync(log, '');
    expect(await retentionFiles(data).log()).toEqual([]);
    rmSync(log);
    execFileSync('mkfifo', [log]);
    await expect(retentionFiles(data).log()).rejects.toMatchObject({ code: 'invalid' });
  });
});
