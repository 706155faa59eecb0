// The retention variables: what they take, alone and with the unit of the core.

import { describe, expect, it } from 'vitest';
import { loadSettings } from '../../shared/settings/load.ts';
import { describeProblem } from '../../shared/settings/setting.ts';

const CONTAINER = {
  SERVER_ADDRESS: 'cot.example.org',
  DEPLOY_MODE: 'direct',
  DATABASE_URL: 'postgres://holdfast@database/holdfast',
  AUDIT_KEY: 'audit-key-0123456789-0123456789-0123',
  SESSION_KEY: 'session-key-0123456789-0123456789-01',
};

const load = (values: Record<string, string>) =>
  loadSettings([{ source: 'environment', values: { ...CONTAINER, ...values } }], 'container');
const problems = (values: Record<string, string>): string[] => load(values).problems.map(describeProblem);

describe.each(['COT_RETENTION_DAYS', 'GEOCHAT_RETENTION_DAYS'] as const)('%s', (name) => {
  it.each(['abc', '0', '-1', '1.5', '99999', '1e2', '1e400', '030x', '1_000', 'null'])(
    '=%s stops the start of both cores, naming variable, value and remedy',
    (value) => {
      for (const CORE_RETENTION_UNIT of ['days', 'seconds']) {
        const [text = '', ...others] = problems({ [name]: value, CORE_RETENTION_UNIT });
        expect(others).toEqual([]);
        expect(text).toContain(`${name}=${value}: must be a whole number of days from 1 to 36500`);
        expect(text).toContain(`Remedy: set for example ${name}=`);
      }
    },
  );

  it('=24856 fits a core that counts days, and not the 32 bits of one that counts seconds', () => {
    expect(problems({ [name]: '24856', CORE_RETENTION_UNIT: 'days' })).toEqual([]);
    expect(problems({ [name]: '24855', CORE_RETENTION_UNIT: 'seconds' })).toEqual([]);
    const [text = ''] = problems({ [name]: '24856', CORE_RETENTION_UNIT: 'seconds' });
    expect(text).toContain(`${name}=24856: must be a whole number of days from 1 to 24855`);
    expect(text).toContain(`Remedy: set ${name}=24855 or less, or remove it to keep everything`);
  });

  it.each([
    [' 30', 30],
    ['30\t', 30],
    ['1', 1],
    ['', undefined],
    ['   ', undefined],
  ])('=%j is %s', (value, days) => {
    const { settings, problems: found } = load({ [name]: value, CORE_RETENTION_UNIT: 'days' });
    expect([found, settings[name]]).toEqual([[], days]);
  });
});

describe('RETENTION_CRON with a core that counts seconds, a TAK Server release', () => {
  it.each(['0 0 3 * * ?', '0 0 3 ? * 6L', '0 0 3 LW * ? *', '0 0 22-4 ? * FRI-MON'])('=%s is taken', (cron) =>
    expect(problems({ RETENTION_CRON: cron, CORE_RETENTION_UNIT: 'seconds' })).toEqual([]),
  );

  it('stops the start when it cannot be said in Spring, with name, value, why and remedy', () => {
    const [text = '', ...others] = problems({ RETENTION_CRON: '0 0 3 * * ? 2099', CORE_RETENTION_UNIT: 'seconds' });
    expect(others).toEqual([]);
    expect(text).toContain("RETENTION_CRON=0 0 3 * * ? 2099: can't be given to the core: it is for the year 2099");
    expect(text).toContain('Remedy: leave the year out, such as RETENTION_CRON=0 0 3 * * ?, or remove it');
    expect(problems({ RETENTION_CRON: '0 0 3 * * ? 2099', CORE_RETENTION_UNIT: 'days' })).toEqual([]);
  });

  it('is judged once when it is no schedule at all', () => {
    expect(problems({ RETENTION_CRON: '0 3 * * *', CORE_RETENTION_UNIT: 'seconds' })).toEqual([
      expect.stringContaining('RETENTION_CRON=0 3 * * *: must be a Quartz schedule'),
    ]);
  });
});
