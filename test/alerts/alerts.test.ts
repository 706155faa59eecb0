import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Level } from '../../shared/alerts/port.ts';
import {
  alertGivenUp,
  alertSent,
  type AlertState,
  type Decision,
  isAtRest,
  mergeStates,
  reduce,
  retryPauseSeconds,
  UNREPORTED,
} from '../../shared/alerts/rules.ts';
import { NO_HISTORY, type Status, STATUSES, urgency } from '../../shared/settings/status.ts';
import { runs } from '../support/runs.ts';

const COOLDOWN = 300;
const POLICY = { cooldownSeconds: COOLDOWN, anybody: true };

type Event =
  | { kind: 'evaluation'; status: Status; shouldAlert: boolean; afterSeconds: number; anybody: boolean }
  | { kind: 'sent'; afterSeconds: number }
  | { kind: 'given up'; afterSeconds: number };

/** What became of one evaluation, and when. */
interface Report {
  atMs: number;
  level: Status;
  decision: Decision['kind'];
  reason: string | undefined;
}

/** The engine, fed with events; each raised alert is named by its place. */
function play(events: readonly Event[]): Report[] {
  let state = UNREPORTED;
  let atMs = 1_000_000;
  return events.flatMap((event, index) => {
    atMs += event.afterSeconds * 1000;
    if (event.kind === 'sent') state = alertSent(state, state.raised?.id ?? '', atMs);
    if (event.kind === 'given up') state = alertGivenUp(state, state.raised?.id ?? '');
    if (event.kind !== 'evaluation') return [];
    const step = reduce(
      state,
      { ...event, ...NO_HISTORY, atMs },
      { ...POLICY, anybody: event.anybody },
      `alert ${index}`,
    );
    state = step.state;
    const { decision } = step;
    const reason = decision.kind === 'suppress' ? decision.reason : undefined;
    return [{ atMs, level: event.shouldAlert ? event.status : 'ok', decision: decision.kind, reason }];
  });
}

type Line = { atMs: number } & (
  | { kind: 'evaluation'; status: Status; level: Status; decision: Decision['kind']; held: boolean; reported: boolean }
  | { kind: 'sent' | 'given up' }
);

const lowest = (levels: readonly Status[]): Status => levels.toSorted((a, b) => urgency(a) - urgency(b))[0] ?? 'ok';

/** The reference: decides by reading the whole diary again each time, and remembers nothing else. */
function readTheDiary(events: readonly Event[]): Report[] {
  const diary: Line[] = [];
  let atMs = 1_000_000;
  return events.flatMap((event) => {
    atMs += event.afterSeconds * 1000;
    if (event.kind !== 'evaluation') {
      const raised = lastRaise(diary);
      if (raised !== undefined && raised.sentMs === undefined) diary.push({ kind: event.kind, atMs });
      return [];
    }
    const level = event.shouldAlert ? event.status : 'ok';
    const { decision, reason, held, waits } = judge(diary, event.status, level, atMs, event.anybody);
    diary.push({
      kind: 'evaluation',
      atMs,
      status: event.status,
      level,
      decision,
      held,
      reported: decision === 'raise' || waits,
    });
    return [{ atMs, level, decision, reason }];
  });
}

function judge(
  diary: readonly Line[],
  status: Status,
  level: Status,
  atMs: number,
  anybody: boolean,
): { decision: Decision['kind']; reason: string | undefined; held: boolean; waits: boolean } {
  const nothing = { reason: undefined, held: false, waits: false };
  const before = known(diary);
  if (level === 'ok' || urgency(level) <= urgency(lowest([before, status])))
    return { decision: status === 'ok' && before !== 'ok' ? 'recover' : 'none', ...nothing };
  const raised = lastRaise(diary);
  const covered = raised !== undefined && urgency(level) <= urgency(raised.level);
  const waits = covered && raised.sentMs === undefined;
  const cool = covered && raised.sentMs !== undefined && Math.abs(atMs - raised.sentMs) < COOLDOWN * 1000;
  const reason = !anybody ? 'nobody' : waits ? 'still_waiting' : cool ? 'cooldown' : undefined;
  if (reason === undefined) return { decision: 'raise', ...nothing };
  const waiting = { held: reason !== 'still_waiting', waits: reason === 'still_waiting' };
  const last = diary.filter(({ kind }) => kind !== 'sent').at(-1);
  const alreadyReported = last?.kind === 'evaluation' && last.held && urgency(level) <= urgency(last.level);
  return alreadyReported
    ? { decision: 'none', reason: undefined, ...waiting }
    : { decision: 'suppress', reason, ...waiting };
}

/** What people know: the lowest level since they were told last, unless that was in vain. */
function known(diary: readonly Line[]): Status {
  const last = diary.findLastIndex((line) => line.kind === 'given up' || (line.kind === 'evaluation' && line.reported));
  const since = diary
    .slice(last === -1 ? diary.length : last)
    .flatMap((line) => (line.kind === 'evaluation' ? line.status : []));
  return diary[last]?.kind === 'evaluation' ? lowest(since) : 'ok';
}

function lastRaise(diary: readonly Line[]): { level: Status; sentMs: number | undefined } | undefined {
  const last = diary.findLastIndex((line) => line.kind === 'evaluation' && line.decision === 'raise');
  const line = diary[last];
  if (line?.kind !== 'evaluation') return undefined;
  const after = diary.slice(last).find(({ kind }) => kind !== 'evaluation');
  if (after?.kind === 'given up') return undefined;
  return { level: line.level, sentMs: after?.atMs };
}

const anyEvent: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .record({
        kind: fc.constant('evaluation' as const),
        status: fc.constantFrom(...STATUSES),
        shouldAlert: fc.boolean(),
        afterSeconds: fc.integer({ min: 0, max: 400 }),
        anybody: fc.oneof({ weight: 9, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
      })
      .map((event) => ({ ...event, shouldAlert: event.shouldAlert && event.status !== 'ok' })),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('sent' as const), afterSeconds: fc.integer({ min: 0, max: 30 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('given up' as const), afterSeconds: fc.integer({ min: 0, max: 30 }) }),
  },
);

/** A module at these levels, so many seconds apart, where every alert arrives at once. */
function raisedBy(...levels: [afterSeconds: number, Status][]): Status[] {
  const events = levels.flatMap(([afterSeconds, status]): Event[] => [
    { kind: 'evaluation', status, shouldAlert: status !== 'ok', afterSeconds, anybody: true },
    { kind: 'sent', afterSeconds: 0 },
  ]);
  return play(events).flatMap(({ decision, level }) => (decision === 'raise' ? level : []));
}

const TEN_MINUTES = 600;

describe('the alert engine', () => {
  it('does what a reader of the whole diary does, for every sequence', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 60 }), (events) => {
        expect(play(events)).toEqual(readTheDiary(events));
      }),
      { numRuns: runs(2000) },
    );
  });

  it('sends three for ok, warning, ok, warning, critical, ten minutes apart', () => {
    const sequence: Status[] = ['ok', 'warning', 'ok', 'warning', 'critical'];
    expect(raisedBy(...sequence.map((status): [number, Status] => [TEN_MINUTES, status]))).toEqual([
      'warning',
      'warning',
      'critical',
    ]);
  });

  it('delivers an escalation inside the cooldown', () => {
    expect(raisedBy([0, 'warning'], [10, 'critical'])).toEqual(['warning', 'critical']);
  });

  it('alerts an unchanged level once, however long it stands', () => {
    const accountStatus = Array.from({ length: 100 }, (): [number, Status] => [60, 'warning']);
    expect(raisedBy(...accountStatus)).toEqual(['warning']);
  });

  it('alerts nobody twice because measurements in a row are counted anew after a restart', () => {
    const bad = { kind: 'evaluation', status: 'critical', afterSeconds: 600, anybody: true } as const;
    const events: Event[] = [true, false, false, true].flatMap((shouldAlert) => [
      { ...bad, shouldAlert },
      { kind: 'sent', afterSeconds: 0 },
    ]);
    expect(play(events).map(({ decision }) => decision)).toEqual(['raise', 'none', 'none', 'none']);
  });

  it('does not take an improvement for news, and a worsening after the cooldown for news', () => {
    expect(raisedBy([0, 'critical'], [60, 'warning'], [60, 'warning'])).toEqual(['critical']);
    expect(raisedBy([0, 'critical'], [400, 'warning'], [400, 'critical'])).toEqual(['critical', 'critical']);
  });

  it('tells a level that comes back inside the cooldown when that has passed and it still stands', () => {
    expect(raisedBy([0, 'warning'], [60, 'ok'], [60, 'warning'], [170, 'warning'])).toEqual(['warning']);
    expect(raisedBy([0, 'warning'], [60, 'ok'], [60, 'warning'], [180, 'warning'])).toEqual(['warning', 'warning']);
    expect(raisedBy([0, 'warning'], [60, 'ok'], [60, 'warning'], [170, 'ok'], [170, 'ok'])).toEqual(['warning']);
  });

  it('sends nothing for a return to ok', () => {
    expect(raisedBy([0, 'ok'], [600, 'ok'], [600, 'ok'])).toEqual([]);
    const last = play([
      { kind: 'evaluation', status: 'critical', shouldAlert: true, afterSeconds: 0, anybody: true },
      { kind: 'evaluation', status: 'ok', shouldAlert: false, afterSeconds: 60, anybody: true },
    ]);
    expect(last.map(({ decision }) => decision)).toEqual(['raise', 'recover']);
  });

  it('does not let a failed send use up the cooldown', () => {
    const bad = { kind: 'evaluation', status: 'warning', shouldAlert: true, anybody: true } as const;
    const played = play([
      { ...bad, afterSeconds: 0 },
      { ...bad, afterSeconds: 60 },
      { kind: 'given up', afterSeconds: 1 },
      { ...bad, afterSeconds: 60 },
    ]);
    expect(played.map(({ decision }) => decision)).toEqual(['raise', 'none', 'raise']);
  });

  it('does not stay silent for longer than the cooldown when the clock was set back', () => {
    const raised = { id: 'a', level: 'warning' as Level, atMs: 9_000_000, sent: true };
    const state: AlertState = { ...UNREPORTED, raised };
    const at = (atMs: number): string =>
      reduce(state, { status: 'warning', shouldAlert: true, atMs, ...NO_HISTORY }, POLICY, 'b').decision.kind;
    expect([at(8_999_990), at(9_000_000 - COOLDOWN * 1000)]).toEqual(['suppress', 'raise']);
  });

  it('counts the time since when a module is not ok', () => {
    const evaluation = (status: Status, atMs: number) => ({
      status,
      shouldAlert: status === 'critical',
      atMs,
      ...NO_HISTORY,
    });
    const first = reduce(UNREPORTED, evaluation('note', 5), POLICY, 'a').state;
    const second = reduce(first, evaluation('critical', 9), POLICY, 'b').state;
    expect([first.sinceMs, second.sinceMs]).toEqual([5, 5]);
    expect([isAtRest(first), isAtRest(reduce(second, evaluation('ok', 12), POLICY, 'c').state)]).toEqual([false, true]);
  });

  it('tells nothing again after two processes have found each other', () => {
    const raised = { id: 'a', level: 'warning' as Level, atMs: 10, sent: true };
    const mine: AlertState = { told: 'warning', raised, heldBack: null, sinceMs: 10, history: null };
    const theirs: AlertState = {
      told: 'critical',
      raised: { ...raised, id: 'b', level: 'critical', atMs: 20 },
      heldBack: null,
      sinceMs: 5,
      history: null,
    };
    expect(mergeStates(mine, theirs, [])).toEqual({ ...theirs, sinceMs: 5 });
    expect(mergeStates(theirs, mine, [])).toEqual(mergeStates(mine, theirs, []));
    const recovered = { ...mine, reported: 'ok' as const, sinceMs: null };
    expect(mergeStates(recovered, mine, [])).toEqual(recovered);
    expect(mergeStates({ ...theirs, told: 'note' }, mine, ['', 'a']).told).toBe('note');
    const unsent = { ...mine, raised: { ...raised, sent: false } };
    expect(mergeStates(unsent, mine, []).raised).toEqual(raised);
  });
});

describe('pauses between attempts', () => {
  it('begin at 5 s, grow, stay under a minute for ten minutes, and end after three days', () => {
    let age = 0;
    const pauses: number[] = [];
    for (let attempt = 1; ; attempt++) {
      const pause = retryPauseSeconds(attempt, age);
      if (pause === undefined) break;
      if (age < 600) expect(pause).toBeLessThan(60);
      pauses.push(pause);
      age += pause;
    }
    expect(pauses.slice(0, 6)).toEqual([5, 10, 20, 40, 50, 50]);
    expect(pauses.at(-1)).toBe(300);
    expect(age).toBeGreaterThanOrEqual(3 * 86_400);
  });

  it('respect a service that asks for more time, within the same bounds', () => {
    const request = (ageSeconds: number, requestedSeconds: number) =>
      retryPauseSeconds(1, ageSeconds, { requestedSeconds });
    expect([request(0, 30), request(0, 3600), request(700, 3600)]).toEqual([30, 50, 300]);
  });

  it('are an hour after a refusal for good, though not within the first ten minutes', () => {
    const refused = (attempts: number, ageSeconds: number) =>
      retryPauseSeconds(attempts, ageSeconds, { permanent: true, requestedSeconds: 7200 });
    expect([refused(1, 0), retryPauseSeconds(1, 0, { permanent: true })]).toEqual([50, 5]);
    expect([refused(1, 600), refused(20, 86_400), refused(20, 3 * 86_400)]).toEqual([3600, 3600, undefined]);
  });
});
