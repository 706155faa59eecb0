import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareVersions } from '@holdfast/kit/release';
import { due, slotStart } from '@holdfast/kit/time';
import { evaluate, evaluateFailure, type Figure, type Finding, limitsOf } from '../../shared/health/evaluate.ts';
import { type ModuleThresholds, STATUSES, urgency, worstOf } from '../../shared/settings/status.ts';

const LIMITS: ModuleThresholds = { interval: 60, warning: 5, critical: 15, alert_min_level: 'warning' };

const figure = (value: number, more: Partial<Figure> = {}): Figure => ({
  kind: 'figure',
  subject: `thing ${value}`,
  value,
  limits: limitsOf(LIMITS),
  says: `${value} %`,
  ...more,
});
const statusOf = (...findings: Finding[]): string => evaluate(findings, 'All is well.', LIMITS).status;

describe('the remedies of findings', () => {
  it('are those of what is not ok, worst first, each once', () => {
    const findings: Finding[] = [
      { kind: 'fact', status: 'note', says: 'a note', remedy: 'Read it.' },
      figure(6, { remedy: 'Wait.' }),
      figure(1, { remedy: 'Nothing to do.' }),
      { kind: 'fact', status: 'critical', says: 'a fact', remedy: 'Run.' },
      { kind: 'fact', status: 'warning', says: 'another', remedy: 'Run.' },
      { kind: 'failure', says: 'a failure', remedy: 'Try again.' },
      { kind: 'fact', status: 'critical', says: 'without a remedy' },
    ];
    expect(evaluate(findings, '', LIMITS).remedies).toEqual(['Run.', 'Wait.', 'Read it.', 'Try again.']);
    expect(evaluateFailure('It broke', LIMITS).remedies).toEqual([]);
  });
});

describe('the evaluator', () => {
  it('is ok without findings, and says what the module says when well', () => {
    expect(evaluate([], 'All is well.', LIMITS)).toMatchObject({ status: 'ok', message: 'All is well.' });
  });

  it.each([
    [4.999, 'ok'],
    [5, 'warning'],
    [14.999, 'warning'],
    [15, 'critical'],
    [1000, 'critical'],
  ])('judges %f against 5 and 15, where more is worse, as %s', (value, status) =>
    expect(statusOf(figure(value))).toBe(status),
  );

  it.each([
    [31, 'ok'],
    [30, 'warning'],
    [8, 'warning'],
    [7, 'critical'],
    [-3, 'critical'],
  ])('judges %d against 30 and 7, where less is worse, as %s', (value, status) =>
    expect(statusOf(figure(value, { limits: { warning: 30, critical: 7 } }))).toBe(status),
  );

  it('asks the module for the direction when both thresholds are equal', () => {
    const equal = { warning: 7, critical: 7 };
    expect(statusOf(figure(8, { limits: equal }))).toBe('critical');
    expect(statusOf(figure(8, { limits: equal, lowerIsWorse: true }))).toBe('ok');
    expect(statusOf(figure(7, { limits: equal, lowerIsWorse: true }))).toBe('critical');
  });

  it('lets the worst item win and names it, with the threshold that it reached', () => {
    const { status, message } = evaluate([figure(6), figure(40), figure(20), figure(1)], '', LIMITS);
    expect(status).toBe('critical');
    expect(message).toBe('thing 40: 40 %; critical from 15 (and 1 more).');
  });

  it('names the smallest one where less is worse', () => {
    const days = { limits: { warning: 30, critical: 7 } };
    expect(evaluate([figure(5, days), figure(2, days)], '', LIMITS).message).toMatch(/^thing 2: .*critical at 7/);
  });

  it('never lets a note hide a worse level, wherever it stands', () => {
    const note: Finding = { kind: 'fact', status: 'note', says: 'a newer release is out' };
    expect(statusOf(note, figure(6))).toBe('warning');
    expect(statusOf(figure(16), note)).toBe('critical');
    expect(statusOf(note)).toBe('note');
    expect(statusOf(note, figure(1))).toBe('note');
  });

  it('counts failures in a row, and starts again after a success', () => {
    const rows: ModuleThresholds = { ...LIMITS, warning: 1, critical: 3 };
    const failure: Finding = { kind: 'failure', says: 'no address' };
    let history = { failuresInRow: 0, pollsInRow: 0 };
    const seen = [[failure], [failure], [failure], [], [failure]].map((findings) => {
      const verdict = evaluate(findings, '', rows, history);
      history = verdict;
      return [verdict.status, verdict.failuresInRow];
    });
    expect(seen).toEqual([
      ['warning', 1],
      ['warning', 2],
      ['critical', 3],
      ['ok', 0],
      ['warning', 1],
    ]);
  });

  it('never calls a failure ok, even below its thresholds', () => {
    const patient: ModuleThresholds = { ...LIMITS, warning: 2, critical: 3 };
    expect(evaluate([{ kind: 'failure', says: 'no address' }], '', patient).status).toBe('note');
  });

  it('makes a module that throws critical with its message', () => {
    expect(evaluateFailure('The database does not answer', LIMITS)).toMatchObject({
      status: 'critical',
      message: 'The database does not answer.',
    });
  });

  it('takes a missing figure for critical: absence of data is never ok', () => {
    expect(statusOf(figure(Number.NaN))).toBe('critical');
    expect(statusOf(figure(Number.POSITIVE_INFINITY, { limits: { warning: 30, critical: 7 } }))).toBe('critical');
  });

  it('never gives a better status than the worst single finding', () => {
    const finding = fc.oneof(
      fc.double({ min: 0, max: 30, noNaN: true }).map((value) => figure(value)),
      fc.constantFrom(...STATUSES).map((status): Finding => ({ kind: 'fact', status, says: 'x' })),
    );
    fc.assert(
      fc.property(fc.array(finding, { minLength: 1, maxLength: 8 }), (findings) => {
        const alone = findings.map((each) => evaluate([each], '', LIMITS).status);
        expect(evaluate(findings, '', LIMITS).status).toBe(worstOf(alone));
        expect(urgency(evaluate(findings, '', LIMITS).status)).toBe(Math.max(...alone.map(urgency)));
      }),
    );
  });
});

describe('whether an alert is due', () => {
  const alerts = (thresholds: ModuleThresholds, values: number[]): boolean[] => {
    let history = { failuresInRow: 0, pollsInRow: 0 };
    return values.map((value) => {
      const verdict = evaluate([figure(value)], '', thresholds, history);
      history = verdict;
      return verdict.shouldAlert;
    });
  };

  it('follows alert_min_level', () => {
    expect(alerts(LIMITS, [1, 6, 16])).toEqual([false, true, true]);
    expect(alerts({ ...LIMITS, alert_min_level: 'critical' }, [1, 6, 16])).toEqual([false, false, true]);
  });

  it('waits for alert_after_polls in a row, and counts again after an ok', () => {
    const patient: ModuleThresholds = { ...LIMITS, alert_after_polls: 3 };
    expect(alerts(patient, [6, 16, 6, 6, 1, 6, 6, 6])).toEqual([false, false, true, true, false, false, false, true]);
  });
});

describe('due', () => {
  it('is true once in each slot, however late the ticks are', () => {
    let last: number | undefined;
    const runs = [5, 1010, 2003, 2990, 4004, 4999].filter((now) => {
      const isDue = due(last, 1, now);
      if (isDue) last = now;
      return isDue;
    });
    expect(runs).toEqual([5, 1010, 2003, 4004]);
  });

  it('is true when it never ran, and when the clock was set back', () => {
    expect(due(undefined, 3600, 5)).toBe(true);
    expect(due(10_000_000, 3600, 5)).toBe(true);
  });

  it('is true exactly when a slot boundary lies between', () => {
    fc.assert(
      fc.property(fc.nat(1e9), fc.nat(1e9), fc.integer({ min: 1, max: 100_000 }), (a, b, seconds) => {
        const [last, now] = a < b ? [a, b] : [b, a];
        expect(due(last, seconds, now)).toBe(slotStart(last, seconds) !== slotStart(now, seconds));
      }),
    );
  });
});

describe('compareVersions', () => {
  it.each([
    ['16.9', '16.14', -1],
    ['v24.21.0', '24.21.0', 0],
    ['2.0.0-rc.2', '2.0.0-rc.10', -1],
    ['2.0.0', '2.0.0-rc.1', 1],
    ['2.0.0-alpha', '2.0.0-1', 1],
    ['16', '16.0', 0],
    ['2026.8.1', '2025.12', 1],
  ])('%s against %s', (a, b, sign) => {
    expect(Math.sign(compareVersions(a, b) ?? Number.NaN)).toBe(sign);
    expect(Math.sign(compareVersions(b, a) ?? Number.NaN)).toBe(sign === 0 ? 0 : -sign);
  });

  it('does not pretend to know what is no version', () => {
    for (const text of ['latest', '', '16.x', 'v']) expect(compareVersions(text, '1.0')).toBeUndefined();
  });
});
