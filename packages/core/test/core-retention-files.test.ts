// The files of the retention service and the name of the server: made, read once, rewritten whole.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { StackError } from '@holdfast/kit/app-error';
import { retentionFiles } from '../admin/retention-files.ts';
import { readNodeId } from '../admin/server.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-retention-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const POLICY = 'conf/retention/retention-policy.yml';
const SCHEDULE = 'conf/retention/retention-service.yml';
const ARCHIVE = 'conf/retention/mission-archiving-config.yml';
const STORE = 'mission-archive/mission-store.yml';
const KEEP_ALL = { cot: null, geochat: null, files: null, missionpackages: null, missions: null };

const text = (file: string): string => readFileSync(join(folder, file), 'utf8');
function write(file: string, content: string): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), content);
}

describe('the retention files', () => {
  it('are edited when they say something else than what is in force, in whatever form', () => {
    const retention = retentionFiles(folder);
    retention.changePolicy({ cot: 30 });
    retention.changeSchedule('0 0 3 * * ?');
    const [policy, schedule] = [text(POLICY), text(SCHEDULE)];
    expect(retention.edited()).toBeUndefined();
    write(POLICY, `# mine\n${policy.replace('  geochat:\n', '')}`);
    write(SCHEDULE, "cronExpression: '0 0 3 * * ?'\n");
    expect(retention.edited()).toBeUndefined();
    for (const other of [policy.replace(' 30', ''), policy.replace('[]', '[keep]'), 'cot: [', '']) {
      write(POLICY, other);
      expect(retention.edited()).toBe(join(folder, POLICY));
    }
    write(POLICY, policy);
    write(SCHEDULE, 'cronExpression: -\n');
    expect(retention.edited()).toBe(join(folder, SCHEDULE));
    write(SCHEDULE, schedule);
    rmSync(join(folder, POLICY));
    expect(retention.edited()).toBe(join(folder, POLICY));
  });

  it('are not written over what somebody has edited and the core has not read', () => {
    const retention = retentionFiles(folder);
    const edit = 'dataRetentionMap:\n  files: 60\n';
    write(POLICY, edit);
    expect(() => retention.changePolicy({ cot: 30 })).toThrow(`${join(folder, POLICY)} was edited`);
    expect([text(POLICY), retention.policy()]).toEqual([edit, KEEP_ALL]);
    expect(retention.changeSchedule('0 0 4 * * ?')).toBe(true);
    write(SCHEDULE, 'cronExpression: 0 0 5 * * ?\n');
    expect(() => retention.changeSchedule('0 0 6 * * ?')).toThrow(`${join(folder, SCHEDULE)} was edited`);
    expect([text(SCHEDULE), retention.schedule()]).toEqual(['cronExpression: 0 0 5 * * ?\n', '0 0 4 * * ?']);
    for (const file of [POLICY, SCHEDULE]) rmSync(join(folder, file));
    expect(retention.changePolicy({ cot: 30 }).cot).toBe(30);
    expect(retention.changeSchedule('0 0 6 * * ?')).toBe(true);
  });

  it('are made when they are missing, and delete nothing', () => {
    const retention = retentionFiles(folder);
    expect([retention.policy(), retention.schedule(), retention.exemptKeywords()]).toEqual([KEEP_ALL, '-', []]);
    expect(parse(text(POLICY))).toEqual({
      dataRetentionMap: KEEP_ALL,
      retentionSettings: { files: { exemptKeywords: [] } },
    });
    expect(parse(text(SCHEDULE))).toEqual({ cronExpression: '-' });
    expect(text(SCHEDULE)).toContain('cronExpression: "-"');
    expect(parse(text(ARCHIVE))).toEqual({
      missionCronExpression: '-',
      timeToArchiveAfterNoActivityDays: 365,
      removeFromArchiveAfterDays: 1065,
      archiveMissionByNoContentActivity: false,
      archiveMissionByNoSubscriptionActivity: false,
    });
    expect(parse(text(STORE))).toEqual({ missionArchiveStoreEntries: [] });
    expect(statSync(join(folder, POLICY)).mode & 0o777).toBe(0o600);
  });

  it('are written with the unit on top, and read again as they were', () => {
    const first = retentionFiles(folder);
    expect(first.changePolicy({ cot: 30, missions: 365 })).toEqual({ ...KEEP_ALL, cot: 30, missions: 365 });
    first.changePolicy({ cot: null });
    expect(first.changeSchedule('0 30 4 * * ?')).toBe(true);
    first.changeArchive({ cronExpression: '@weekly', archiveMissionByNoContentActivity: true });
    expect(text(POLICY)).toMatch(/^---\n# The unit .*DAYS.*\ndataRetentionMap:\n {2}cot:\n/);
    expect(text(SCHEDULE)).toContain('\ncronExpression: 0 30 4 * * ?\n');
    const second = retentionFiles(folder);
    expect([second.policy(), second.schedule(), second.archive()]).toEqual([
      first.policy(),
      '0 30 4 * * ?',
      first.archive(),
    ]);
    expect(readdirSync(join(folder, 'conf/retention')).toSorted()).toEqual([
      'mission-archiving-config.yml',
      'retention-policy.yml',
      'retention-service.yml',
    ]);
  });

  it('keep the words that exempt a file through a change', () => {
    write(POLICY, 'dataRetentionMap:\n  cot:\nretentionSettings:\n  files:\n    exemptKeywords: [keep, "a: b"]\n');
    const retention = retentionFiles(folder);
    retention.changePolicy({ files: 7 });
    expect(retentionFiles(folder).exemptKeywords()).toEqual(['keep', 'a: b']);
  });

  it('take a schedule that is none as no change', () => {
    const retention = retentionFiles(folder);
    const before = text(SCHEDULE);
    for (const none of ['', 'every day', '0 0 4 * *', '@daily', '0 0 4 * * MON', '0 0 4 ? * ?', '- -'])
      expect(retention.changeSchedule(none)).toBe(false);
    expect([retention.schedule(), text(SCHEDULE)]).toEqual(['-', before]);
  });

  it.each(['0 0 4 * * ?', '0 0 4 ? * 2-6', '0 0 4 * * ? 2026', '0 0 4 * * *', '*/2 * * * * ?'])(
    'take %s as a schedule of Quartz, as it is written',
    (cron) => {
      expect(retentionFiles(folder).changeSchedule(cron)).toBe(true);
      expect(retentionFiles(folder).schedule()).toBe(cron);
    },
  );

  it('say of a schedule in the style of Spring which file, which value, and how it is to be written', () => {
    write(SCHEDULE, 'cronExpression: 0 0 4 * * MON-FRI\n');
    for (const message of [
      SCHEDULE,
      '"0 0 4 * * MON-FRI"',
      'in the style of Spring',
      'with ? in one of the day fields',
    ])
      expect(() => retentionFiles(folder)).toThrow(message);
  });

  it('are read at the start only', () => {
    const retention = retentionFiles(folder);
    write(SCHEDULE, 'cronExpression: "0 0 4 * * ?"\n');
    expect(retention.schedule()).toBe('-');
    expect(retentionFiles(folder).schedule()).toBe('0 0 4 * * ?');
  });

  it('tell whoever deletes of each change', () => {
    const retention = retentionFiles(folder);
    let reported = 0;
    retention.onChange(() => reported++);
    retention.changePolicy({ cot: 1 });
    retention.changeSchedule('0 0 4 * * ?');
    retention.changeSchedule('nonsense');
    expect(reported).toBe(2);
  });

  it.each([
    'cronExpression: -\n',
    'cronExpression: - # never\n',
    '---\ncronExpression: -',
    'cronExpression: "-"\r\n',
    '-',
    '-\n',
  ])('read a bare hyphen too: %j', (content) => {
    write(SCHEDULE, content);
    expect(retentionFiles(folder).schedule()).toBe('-');
  });

  it.each([
    [POLICY, 'dataRetentionMap:\n  cot: 2592000\n', 'looks like seconds'],
    [POLICY, 'dataRetentionMap:\n  cot: 36501\n', 'looks like seconds'],
    [POLICY, 'dataRetentionMap:\n  cot: 0\n', 'whole number of days'],
    [POLICY, 'dataRetentionMap:\n  files: -1\n', 'dataRetentionMap.files'],
    [POLICY, 'dataRetentionMap:\n  cot: 1.5\n', 'whole number of days'],
    [POLICY, 'dataRetentionMap:\n  cot: "30"\n', 'whole number of days'],
    [POLICY, 'dataRetentionMap: 30\n', 'dataRetentionMap'],
    [POLICY, 'dataRetentionMap:\n  cots: 30\n', 'cots'],
    [POLICY, 'dataRetention:\n  cot: 30\n', 'dataRetention'],
    [POLICY, 'dataRetentionMap: [\n', POLICY],
    [SCHEDULE, 'cronExpression:\n', 'cronExpression'],
    [SCHEDULE, 'cronExpression: 0 0 4 * *\n', 'it has 5 fields'],
    [SCHEDULE, '', SCHEDULE],
    [ARCHIVE, 'missionCronExpression: "-"\n', ARCHIVE],
    [STORE, 'missionArchiveStoreEntries: 5\n', STORE],
    [POLICY, `a: &a [x,x]\nb: [${Array.from({ length: 20 }, () => '*a').join()}]\n`, POLICY],
  ])('refuse the start for %s with %j', (file, content, output) => {
    write(file, content);
    expect(() => retentionFiles(folder)).toThrow(StackError);
    expect(() => retentionFiles(folder)).toThrow(output);
    expect(() => retentionFiles(folder)).toThrow(file);
    expect(text(file)).toBe(content);
  });
});

describe('the name of the server', () => {
  it('is made once and kept', () => {
    const made = readNodeId(folder);
    expect(made).toMatch(/^[0-9a-f]{32}$/);
    expect(readNodeId(folder)).toBe(made);
    expect(statSync(join(folder, 'node-id')).mode & 0o777).toBe(0o600);
    expect(existsSync(join(folder, 'node-id.new'))).toBe(false);
  });

  it('is not made up anew over something else', () => {
    writeFileSync(join(folder, 'node-id'), 'mine');
    expect(() => readNodeId(folder)).toThrow(StackError);
  });
});
