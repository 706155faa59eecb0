// The retention log of the embedded core, and what an order may ask for.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { KEEP_ALL } from '@holdfast/kit/retention';
import { orderedLimits } from '../retention/limits.ts';
import { retentionLog } from '../retention/retention-log.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-retention-log-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const NAME = 'takserver-retention.log';
const text = (name = NAME): string => readFileSync(join(folder, 'logs', name), 'utf8');

describe('the retention log', () => {
  it('has the layout of a release, one line for each text', () => {
    const at = new Date(2026, 0, 31, 4, 0, 0, 12);
    const log = retentionLog(folder, () => at);
    log.info('retention run begins');
    log.error('retention run failed:\n  why');
    expect(text()).toBe(
      '2026-01-31-04:00:00.012 [retention] INFO  holdfast.retention - retention run begins\n' +
        '2026-01-31-04:00:00.012 [retention] ERROR holdfast.retention - retention run failed: why\n',
    );
    expect(statSync(join(folder, 'logs', NAME)).mode & 0o777).toBe(0o600);
  });

  it('is bounded: three old ones are kept', () => {
    const log = retentionLog(folder, () => new Date(), 200);
    for (let n = 0; n < 20; n++) log.info(`retention ${n} ${'x'.repeat(100)}`);
    expect(readdirSync(join(folder, 'logs')).toSorted()).toEqual([NAME, `${NAME}.1`, `${NAME}.2`, `${NAME}.3`]);
    expect(text()).toContain('retention 19');
    expect(text(`${NAME}.1`)).toContain('retention 17');
  });

  it('stops nothing when it cannot be written', () => {
    mkdirSync(join(folder, 'logs', NAME), { recursive: true });
    expect(() => retentionLog(folder, () => new Date()).info('retention')).not.toThrow();
  });
});

describe('an order', () => {
  const NOW = new Date('2026-05-10T12:00:00.000Z');
  const POLICY = { ...KEEP_ALL, cot: 30, files: 1 };

  it('may name limits up to those of the policy, with a second for the way', () => {
    expect(orderedLimits({ cot: '2026-04-10T14:00:01+02:00', files: '2020-01-01T00:00:00Z' }, POLICY, NOW)).toEqual({
      cot: '2026-04-10T12:00:01.000Z',
      files: '2020-01-01T00:00:00.000Z',
    });
  });

  it.each([
    [{ cot: '2026-04-10T12:00:01.001Z' }, 'keeps cot for 30 days'],
    [{ cot: '2026-04-01T00:00:00Z', geochat: '2020-01-01T00:00:00Z' }, 'keeps geochat forever'],
    [{}, 'no type is named'],
  ])('is refused for %j', (limits, message) => {
    expect(() => orderedLimits(limits, POLICY, NOW)).toThrow(message);
  });
});
