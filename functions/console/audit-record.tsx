// One record of the audit log: when, who, what and how it ended; unfolded everything that it holds.

import { objectIn } from '../../shared/domain/json-text.ts';
import type { Status } from '../../shared/domain/status.ts';
import type { AuditRecord as Audited, AuditResult } from '../../shared/ports/audit.ts';
import { RETENTION_RUN } from '../../shared/verbs/retention-jobs.ts';
import { VACUUM_RUN } from '../../shared/verbs/vacuum-jobs.ts';
import { type Clock, timeInZone } from '../pages/clock.ts';
import { Facts } from '../pages/parts/card.tsx';
import { StatusBadge } from '../pages/parts/status.tsx';

const RESULTS: Record<AuditResult, [status: Status, word: string]> = {
  ok: ['ok', 'Done'],
  failed: ['warning', 'Failed'],
  denied: ['critical', 'Denied'],
  unknown: ['warning', 'Not known'],
};

const MEANS: Record<AuditResult | 'intent', string> = {
  intent: 'Begun. What became of it is a record of its own, above this one.',
  ok: 'It was done.',
  failed: 'It was not done.',
  denied: 'It was tried and not allowed.',
  unknown: 'It was begun, and what became of it could not be found out.',
};

export function AuditRecord({ record, clock }: { record: Audited; clock: Clock }) {
  const { seq, at, actor, action, target, result } = record;
  const [status, word] = result === null ? (['note', 'Begun'] as const) : RESULTS[result];
  return (
    <li class={result === null ? 'record begun' : 'record'}>
      <details id={`record-${seq}`}>
        <summary>
          <time datetime={at}>{timeInZone(at, clock.timeZone, { seconds: true })}</time>
          <span>
            <strong>{actor === '' ? 'nobody' : actor}</strong> <code>{action}</code> {target}
          </span>
          <StatusBadge status={status}>{word}</StatusBadge>
        </summary>
        <Unfolded record={record} />
      </details>
    </li>
  );
}

function Unfolded({ record }: { record: Audited }) {
  const { seq, actor, address, action, target, result, intent, detail, request_id: requestId, hash } = record;
  const told = Object.entries(objectIn(detail)).map(([name, value]) => [name.replaceAll('_', ' '), shown(value)]);
  return (
    <>
      <p>{MEANS[result ?? 'intent']}</p>
      {told.length === 0 ? null : <Facts of={Object.fromEntries(told)} />}
      <hr />
      <Facts
        of={{
          Who: only('actor', actor),
          From: address === '' ? 'this stack itself' : <code>{address}</code>,
          What: only('action', action),
          'To what': target === '' ? undefined : only('target', target),
          Job: JOB_ACTIONS.has(action) ? (
            <a href={`/jobs/${encodeURIComponent(target.toWellFormed())}`}>How it went</a>
          ) : undefined,
          Record: `${seq}${intent === null ? '' : `, which answers record ${intent}`}`,
          Request: requestId === '' ? undefined : <code>{requestId}</code>,
          Hash: <code>{hash}</code>,
        }}
      />
    </>
  );
}

function only(name: string, value: string) {
  return (
    <a href={`/audit?${new URLSearchParams({ [name]: value }).toString()}`} title={`Only records with ${value}`}>
      {value}
    </a>
  );
}

/** Their target is a job. */
const JOB_ACTIONS: ReadonlySet<string> = new Set([VACUUM_RUN, RETENTION_RUN]);

/** What a record tells besides: words and numbers plain, lists with commas, the rest as JSON. */
function shown(value: unknown) {
  if (typeof value === 'string') return value === '' ? '(empty)' : value;
  if (Array.isArray(value) && value.every((each) => typeof each === 'string' || typeof each === 'number'))
    return value.length === 0 ? 'none' : value.join(', ');
  if (typeof value === 'object' && value !== null && isFlat(value))
    return Object.entries(value)
      .map(([name, each]) => `${name} ${String(each)}`)
      .join(', ');
  if (typeof value === 'object' && value !== null) return <code>{JSON.stringify(value)}</code>;
  return String(value);
}

function isFlat(value: object): boolean {
  const values = Object.values(value);
  return values.length > 0 && values.every((each) => ['string', 'number', 'boolean'].includes(typeof each));
}
