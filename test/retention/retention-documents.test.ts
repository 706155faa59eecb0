// What becomes of the retention files: written where a variable asks for it, left as a person has them everywhere else.

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import {
  NO_MEMORY,
  planRetention,
  readSchedule,
  type RetentionMemory,
  type RetentionTexts,
} from '../../shared/retention/documents.ts';
import { readPolicy } from '../../shared/retention/policy-text.ts';
import type { WantedRetention } from '../../shared/retention/port.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const want = (given: Partial<WantedRetention> = {}): WantedRetention => ({
  cot: undefined,
  geochat: undefined,
  cron: undefined,
  unit: undefined,
  ...given,
});

interface Files {
  texts: RetentionTexts;
  memory: RetentionMemory;
  messages: string[];
  fault: string | undefined;
}

/** The files after Holdfast has looked at them. */
function synced({ texts, memory }: Pick<Files, 'texts' | 'memory'>, wanted: WantedRetention): Files {
  const plan = planRetention(texts, memory, wanted, sha256);
  if ('fault' in plan) {
    const where = plan.file === undefined ? '' : `${plan.file} line ${plan.line}: `;
    return { texts, memory, messages: [], fault: where + plan.fault };
  }
  const next = { policy: plan.policy ?? texts.policy, schedule: plan.schedule ?? texts.schedule };
  return { texts: next, memory: plan.memory, messages: plan.messages, fault: undefined };
}

const files = (policy: string | undefined, schedule: string | undefined) => ({
  texts: { policy, schedule },
  memory: NO_MEMORY,
});
const NONE = files(undefined, undefined);
const KEPT = { cot: null, geochat: null, files: null, missionpackages: null, missions: null };

const HAND = `---
# how long we keep what; ask Vera before a change
dataRetentionMap:
    missions: 400   # the season
    cot:   60 # two months
    # chat is evidence

    geochat: ~
retentionSettings: {files: {exemptKeywords: [keep, "never delete"]}}
`;
const HAND_CRON = "# nights only\ncronExpression: '0 30 4 ? * SUN' # Sundays\n";

describe('the retention files', () => {
  it('are made with nothing in them when they are missing and nothing is set', () => {
    const { texts, messages } = synced(NONE, want());
    expect(parse(texts.policy ?? '')).toEqual({
      dataRetentionMap: KEPT,
      retentionSettings: { files: { exemptKeywords: [] } },
    });
    expect(texts.schedule).toMatch(/^# .*\ncronExpression: "-"\n$/);
    expect(messages).toHaveLength(2);
  });

  it('hold the days of a core that counts days, and the default schedule, with the unit on top', () => {
    const { texts, messages: reported } = synced(NONE, want({ cot: 30, unit: 'days' }));
    expect(texts.policy).toMatch(
      /^# The unit of dataRetentionMap is DAYS .*\ndataRetentionMap:\n {2}cot: 30\n {2}geochat:\n/,
    );
    expect(texts.schedule).toMatch(/^# Core that counts days: Quartz, .*\ncronExpression: "0 0 3 \* \* \?"\n$/);
    expect(reported).toContain('retention-policy.yml: cot is kept 30 days (COT_RETENTION_DAYS)');
  });

  it('hold seconds for a release, with the days behind them, and its own cron', () => {
    const { texts } = synced(NONE, want({ cot: 30, geochat: 1, cron: '0 0 3 ? * SUN', unit: 'seconds' }));
    expect(texts.policy).toMatch(/^# The unit of dataRetentionMap is SECONDS /);
    expect(texts.policy).toContain('\n  cot: 2592000 # 30 days\n  geochat: 86400 # 1 day\n  files:\n');
    expect(readSchedule(texts.schedule ?? '')).toBe('0 0 3 ? * 0');
  });

  it('of a person stay byte for byte while nothing is set', () => {
    for (const [policy, schedule] of [
      [HAND, HAND_CRON],
      [HAND.replaceAll('\n', '\r\n'), 'cronExpression: -\n'],
      ['dataRetentionMap:\n', '-'],
      ['dataRetentionMap: {cot: 5}', '-\n'],
      ['retentionSettings:\n', 'cronExpression: "-"'],
    ] as const) {
      const before = files(policy, schedule);
      expect(synced(before, want())).toEqual({ ...before, messages: [], fault: undefined });
      expect(synced(before, want({ unit: 'days' })).texts).toEqual(before.texts);
    }
  });

  it('keep the comments, the order and the other values of a person when a variable changes one', () => {
    const { texts } = synced(files(HAND, HAND_CRON), want({ cot: 30, unit: 'days' }));
    const unit = '# The unit of dataRetentionMap is DAYS (embedded core); no value keeps forever.\n';
    expect(texts.policy).toBe(
      unit +
        HAND.replace('cot:   60', 'cot: 30').replace('geochat: ~\n', 'geochat: ~\n    files:\n    missionpackages:\n'),
    );
    expect(texts.schedule).toBe(HAND_CRON);
  });

  it('are left alone by variables that say what they say already', () => {
    const before = files(HAND, HAND_CRON);
    expect(synced(before, want({ cot: 60, cron: '0 30 4 ? * SUN', unit: 'days' })).texts).toEqual(before.texts);
    const seconds = files('dataRetentionMap: {cot: 86400}\n', 'cronExpression: "0 30 4 ? * 0"\n');
    expect(synced(seconds, want({ cot: 1, cron: '0 30 4 ? * SUN', unit: 'seconds' })).texts).toEqual(seconds.texts);
  });

  it.each([
    ['dataRetentionMap:\n', { ...KEPT, cot: 9 }],
    ['dataRetentionMap: # nothing\n', { ...KEPT, cot: 9 }],
    ['dataRetentionMap: {}\n', { ...KEPT, cot: 9 }],
    ['dataRetentionMap: null', { ...KEPT, cot: 9 }],
    ['dataRetentionMap: {files: 3, cot: 4,}\n', { ...KEPT, cot: 9, files: 3 }],
    ['dataRetentionMap:\n  files: 3', { ...KEPT, cot: 9, files: 3 }],
    ['dataRetentionMap:\n  cot:\n  # why\n  files: 3\n', { ...KEPT, cot: 9, files: 3 }],
    ['dataRetentionMap:\r\n  cot: \r\n', { ...KEPT, cot: 9 }],
    ['retentionSettings:\n  files:\n    exemptKeywords: [a]\n', { ...KEPT, cot: 9 }],
    ['---\nother: [1, 2]\ndataRetentionMap:\n  cot:\n    7\n', { ...KEPT, cot: 9 }],
  ])('take a value however they are written: %j', (policy, expected) => {
    const { texts, fault } = synced(files(policy, '-'), want({ cot: 9, unit: 'days' }));
    expect(fault).toBeUndefined();
    expect((parse(texts.policy ?? '') as { dataRetentionMap: unknown }).dataRetentionMap).toEqual(expected);
    for (const comment of policy.match(/# \w+/g) ?? []) expect(texts.policy).toContain(comment);
  });

  it.each(['-', '-\n', 'cronExpression: -', 'cronExpression: - # off\r\n', '# off\ncronExpression: "-"\n'])(
    'take the schedule over %j, which means never',
    (schedule) => {
      const { texts } = synced(files(undefined, schedule), want({ cot: 9, unit: 'days' }));
      expect(parse(texts.schedule ?? '')).toEqual({ cronExpression: '0 0 3 * * ?' });
      expect(texts.schedule).toContain(schedule.includes('# off') ? '# off' : '');
    },
  );
});

describe('a variable that is withdrawn', () => {
  const both = synced(NONE, want({ cot: 30, geochat: 90, unit: 'days' }));

  it('is undone while the file is as Holdfast wrote it, and the default schedule goes with the last one', () => {
    const one = synced(both, want({ geochat: 90, unit: 'days' }));
    expect(readPolicy(one.texts.policy ?? '').policy).toEqual({ ...KEPT, geochat: 90 });
    expect(one.texts.schedule).toBe(both.texts.schedule);
    const none = synced(one, want());
    expect([readPolicy(none.texts.policy ?? '').policy, readSchedule(none.texts.schedule ?? '')]).toEqual([KEPT, '-']);
    expect(none.messages).toContain(
      'retention-policy.yml: geochat is kept forever again, because GEOCHAT_RETENTION_DAYS is unset',
    );
    expect(synced(none, want())).toEqual({ ...none, messages: [] });
  });

  it('leaves a schedule of RETENTION_CRON to the default while days are set, and to never without them', () => {
    const set = synced(NONE, want({ cot: 30, cron: '0 0 5 * * ?', unit: 'days' }));
    expect(readSchedule(set.texts.schedule ?? '')).toBe('0 0 5 * * ?');
    expect(readSchedule(synced(set, want({ cot: 30, unit: 'days' })).texts.schedule ?? '')).toBe('0 0 3 * * ?');
    expect(readSchedule(synced(set, want({ unit: 'days' })).texts.schedule ?? '')).toBe('-');
  });

  it('leaves a file that a person has changed, says so once, and does not come back to it', () => {
    const edited = { ...both, texts: { ...both.texts, policy: `${both.texts.policy}# mine\n` } };
    const after = synced(edited, want());
    expect(after.texts.policy).toBe(edited.texts.policy);
    expect(after.messages).toContain(
      'retention-policy.yml: cot is unchanged although COT_RETENTION_DAYS is unset, because the file was edited since Holdfast wrote it',
    );
    expect(synced(after, want()).messages).toEqual([]);
    const reverted = { ...after, texts: both.texts };
    expect(synced(reverted, want()).texts.policy).toBe(both.texts.policy);
  });

  it('never touches what a person had written with the same value before', () => {
    const before = files('dataRetentionMap:\n  cot: 30\n', 'cronExpression: "0 0 3 * * ?"\n');
    const set = synced(before, want({ cot: 30, unit: 'days' }));
    expect(synced(set, want()).texts).toEqual(before.texts);
  });

  it('is followed by another unit: what Holdfast had written is written anew', () => {
    const { texts, fault } = synced(both, want({ cot: 30, unit: 'seconds' }));
    expect([fault, readPolicy(texts.policy ?? '')]).toEqual([
      undefined,
      { policy: { ...KEPT, cot: 2_592_000 }, exemptKeywords: [], unit: 'seconds' },
    ]);
    expect(texts.policy?.match(/unit of dataRetentionMap/g)).toHaveLength(1);
  });
});

describe('a fault', () => {
  it.each([
    ['dataRetentionMap:\n  cot: 30\n  cot: 40\n', 'line 3: Map keys must be unique'],
    ['dataRetentionMap:\n  cot: {\n', 'line 3: '],
    ['dataRetentionMap:\n\tcot: 1\n', 'line 2: '],
    ['dataRetentionMap:\n  cot: soon\n', 'line 2: cot is neither empty nor a whole number from 1 to 2147483647'],
    ['dataRetentionMap:\n  cot: "30"\n', 'line 2: cot is neither'],
    ['dataRetentionMap:\n  cot: 0\n', 'line 2: cot is neither'],
    ['dataRetentionMap:\n  cot: -3\n', 'line 2: cot is neither'],
    ['dataRetentionMap:\n  cot: 1.5\n', 'line 2: cot is neither'],
    ['dataRetentionMap:\n  cot: 030\n', 'line 2: cot is neither'],
    ['dataRetentionMap:\n  cot: 1e2\n', 'line 2: cot is neither'],
    ['dataRetentionMap:\n  cot: 2147483648\n', 'line 2: cot is neither'],
    ['dataRetentionMap:\n  cot: [1]\n', 'line 2: cot is neither'],
    ['dataRetentionMap:\n  cots: 3\n', 'line 2: cots is not a type of data'],
    ['dataRetentionMap:\n  cot: &a 3\n  files: *a\n', 'line 3: files leads to a value elsewhere'],
    ['dataRetentionMap: 30\n', 'line 1: dataRetentionMap is not a map of names'],
    ['- a\n', 'line 1: there are no names with values here'],
    ['', 'line 1: there are no names with values here'],
    ['a: 1\n---\nb: 2\n', 'line 2: '],
    ['retentionSettings:\n  files:\n    exemptKeywords: keep\n', 'line 3: exemptKeywords is not a list'],
    ['retentionSettings:\n  files:\n    exemptKeywords: [1]\n', 'line 3: exemptKeywords has an entry that is not text'],
    ['['.repeat(50_000), 'line 1: '],
  ])('in the policy names the file and the line, and nothing is planned: %j', (policy, fault) => {
    for (const wanted of [want(), want({ cot: 30, unit: 'days' })])
      expect(synced(files(policy, '-'), wanted).fault).toContain(`retention-policy.yml ${fault}`);
  });

  it.each([
    ['cronExpression:\n', 'line 1: cronExpression is not a schedule'],
    ['# x\ncronExpression: 5\n', 'line 2: cronExpression is not a schedule'],
    ['cron: "-"\n', 'line 1: cronExpression is missing'],
    ['--', 'line 1: there are no names'],
    ['cronExpression: "-"\ncronExpression: "-"\n', 'line 2: Map keys must be unique'],
  ])('in the schedule too: %j', (schedule, fault) =>
    expect(synced(files(undefined, schedule), want()).fault).toContain(`retention-service.yml ${fault}`),
  );

  it('is a value of a person that counts otherwise than the core does', () => {
    const days = '# The unit of dataRetentionMap is DAYS (embedded core).\ndataRetentionMap:\n  files: 30\n';
    expect(synced(files(days, '-'), want({ cot: 30, unit: 'seconds' })).fault).toMatch(
      /its comment says it counts days, but the core counts seconds, and files has the value 30/,
    );
    const seconds = 'dataRetentionMap:\n  files: 2592000\n';
    expect(synced(files(seconds, '-'), want({ cot: 30, unit: 'days' })).fault).toMatch(/which looks like seconds/);
    const most = (days: number) =>
      synced(files(`dataRetentionMap:\n  files: ${days}\n`, undefined), want({ cot: 30, unit: 'days' })).fault;
    expect([most(36_500), most(36_501)]).toEqual([undefined, expect.stringMatching(/more than 36500 days/)]);
  });

  it('is a file of the other unit without any variable, too, from whatever editor: the core would read it', () => {
    const days = '# The unit of dataRetentionMap is DAYS (embedded core).\r\ndataRetentionMap:\r\n  cot: 30\r\n';
    for (const text of [days, `\uFEFF${days}`, `\uFEFF---\r\n${days}`])
      expect(synced(files(text, '-'), want({ unit: 'seconds' })).fault).toMatch(
        /its comment says it counts days, but the core counts seconds, and cot has the value 30/,
      );
    const none = days.replace(' 30', '');
    expect(synced(files(none, '-'), want({ unit: 'seconds' })).fault).toBeUndefined();
  });

  it('is a value of less than a day for a core that counts seconds, unless the file says that it counts them', () => {
    const days = 'dataRetentionMap:\n  cot: 2592000\n  files: 30\n';
    const seconds = `# The unit of dataRetentionMap is SECONDS (TAK Server release); no value keeps forever.\n${days}`;
    for (const input of [want({ unit: 'seconds' }), want({ cot: 30, unit: 'seconds' })]) {
      const { fault } = synced(files(days, '-'), input);
      expect(fault).toMatch(/files is 30 seconds, which looks like days.*: write 2592000 for 30 days/);
      expect(fault).toContain(seconds.split('\n')[0]);
      expect(synced(files(seconds, '-'), input).fault).toBeUndefined();
    }
  });

  it('is none: a mark at the beginning, as some editors write it, stays there', () => {
    const marked = (text: string): string => `\uFEFF${text}`;
    for (const head of ['# mine\n', '# The unit of dataRetentionMap is DAYS.\n', '']) {
      const policy = `${head}dataRetentionMap:\n  cot: 30\n`;
      const schedule = `${head}cronExpression: "-"\n`;
      const requested = want({ cot: 9, cron: '0 0 5 * * ?', unit: 'days' });
      const { texts } = synced(files(policy, schedule), requested);
      expect(synced(files(marked(policy), marked(schedule)), requested).texts).toEqual(
        files(marked(texts.policy ?? ''), marked(texts.schedule ?? '')).texts,
      );
    }
  });

  it('is a variable without a unit, and a schedule that a release cannot read', () => {
    expect(synced(NONE, want({ cot: 30 })).fault).toMatch(/^CORE_RETENTION_UNIT must be set/);
    expect(synced(NONE, want({ cron: '0 0 3 * * ? 2099', unit: 'seconds' })).fault).toMatch(
      /^RETENTION_CRON=0 0 3 \* \* \? 2099 can't be used by this core: it is for the year 2099/,
    );
  });
});
