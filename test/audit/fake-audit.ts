// An audit log in memory: the rules of the port, without a chain that anybody could break.

import { AppError } from '@holdfast/kit/app-error';
import type { Audit, AuditFilter, AuditRecord, AuditSubject } from '../../shared/audit/port.ts';

export interface FakeAudit extends Audit {
  /** Oldest first. */
  readonly records: AuditRecord[];
  /** While it is away nothing can be intended; the rest is kept as if it were there. */
  mood: 'up' | 'away';
}

/** `signInsEnded` is called with the person whose sign-ins an outcome has ended. */
export function fakeAudit(
  now: () => Date = () => new Date(),
  signInsEnded: (username: string) => void = () => undefined,
): FakeAudit {
  const records: AuditRecord[] = [];

  function append(
    { actor, action, target }: AuditSubject,
    rest: Pick<AuditRecord, 'phase' | 'result' | 'intent'>,
    detail: object | null | undefined,
  ): number {
    const seq = records.length + 1;
    records.push({
      seq,
      at: now().toISOString(),
      actor: actor.username,
      address: actor.address,
      action,
      target,
      ...rest,
      detail: JSON.stringify(detail ?? {}),
      request_id: actor.requestId,
      hash: seq.toString(16).padStart(64, '0'),
    });
    return seq;
  }

  function matches(record: AuditRecord, { actor, action, target, since, until }: AuditFilter): boolean {
    return (
      (actor === undefined || record.actor === actor) &&
      (action === undefined || record.action === action || record.action.startsWith(action.replace(/\.?$/, '.'))) &&
      (target === undefined || record.target === target) &&
      (since === undefined || record.at >= since) &&
      (until === undefined || record.at < until)
    );
  }

  const fake: FakeAudit = {
    records,
    mood: 'up',
    async intend(subject, detail) {
      if (fake.mood === 'away') throw new AppError('unavailable', 'Our own database does not answer');
      return append(subject, { phase: 'intent', result: null, intent: null }, detail);
    },
    async conclude(intent, subject, { result, detail, endsSignInsOf }) {
      append(subject, { phase: 'outcome', result, intent }, detail);
      if (endsSignInsOf !== undefined) signInsEnded(endsSignInsOf);
    },
    note(subject, result, detail) {
      append(subject, { phase: 'outcome', result, intent: null }, detail);
    },
    async list(filter, offset, limit) {
      const found = records.filter((record) => matches(record, filter)).toReversed();
      return { results: found.slice(offset, offset + limit), count: found.length };
    },
    verify: async () => ({ ok: true, records: records.length, first_broken: null }),
    async unfinished(before, limit) {
      const concluded = new Set(records.map(({ intent }) => intent));
      const open = records.filter(({ seq, phase, at }) => phase === 'intent' && at < before && !concluded.has(seq));
      return open.slice(0, limit).map((record) => ({
        ...record,
        later: records
          .filter(({ seq, phase, target }) => phase === 'intent' && seq > record.seq && target === record.target)
          .filter(({ action }) => kindOf(action) === kindOf(record.action))
          .filter(({ seq }) => !records.some(({ intent, result }) => intent === seq && result === 'failed'))
          .map(({ action, detail }) => ({ action, detail })),
      }));
    },
  };
  return fake;
}

function kindOf(action: string): string {
  return action.split('.', 1).join('');
}

/** What was done, without the attempts that were denied. */
export function actionsOf({ audit }: { audit: FakeAudit }): AuditRecord[] {
  return audit.records.filter(({ result }) => result !== 'denied');
}
