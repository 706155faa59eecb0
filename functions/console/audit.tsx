// GET /audit: shows the audit log; with `verify`, checks that no record was changed or removed.

import { counted, grouped } from '@holdfast/kit/format';
import { objectIn } from '@holdfast/kit/json';
import type { AuditRecord as Audited, AuditFilter, AuditResult, AuditVerdict } from '../../shared/audit/port.ts';
import { VACUUM_RUN } from '../../shared/database/vacuum/jobs.ts';
import type { App } from '../../shared/http/context.ts';
import type { Deps } from '../../shared/http/deps.ts';
import { RETENTION_RUN } from '../../shared/retention/jobs.ts';
import type { Status } from '../../shared/settings/status.ts';
import { framed } from '../pages/frame.tsx';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Facts } from '../pages/parts/card.tsx';
import {
  csvAddress,
  type DaySpan,
  DaySpanFields,
  daySpanOf,
  Field,
  Filters,
  isFaulty,
  formatSpan,
} from '../pages/parts/field.tsx';
import { StatusBadge } from '../pages/parts/notice.tsx';
import { Empty, pageNumber, Pager } from '../pages/parts/table.tsx';
import { type Clock, clockOf, timeInZone } from '../pages/parts/time.tsx';

const RESULTS: Record<AuditResult, [status: Status, word: string]> = {
  ok: ['ok', 'Done'],
  failed: ['warning', 'Failed'],
  denied: ['critical', 'Denied'],
  unknown: ['warning', 'Unknown'],
};

const MEANS: Record<AuditResult | 'intent', string> = {
  intent: 'Started. The result has its own record above this one.',
  ok: 'Completed.',
  failed: 'Not completed.',
  denied: 'Attempted, but not allowed.',
  unknown: 'Started, but the result could not be determined.',
};

/** One record of the audit log: time, actor, action and result; its details unfold. */
export function AuditRecord({ record, clock }: { record: Audited; clock: Clock }) {
  const { seq, at, actor, action, target, result } = record;
  const [status, word] = result === null ? (['note', 'Started'] as const) : RESULTS[result];
  return (
    <li class={result === null ? 'record begun' : 'record'}>
      <details id={`record-${seq}`}>
        <summary>
          <time datetime={at}>{timeInZone(at, clock.timeZone, { seconds: true })}</time>
          <span>
            <strong>{actor === '' ? 'anonymous' : actor}</strong> <code>{action}</code> {target}
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
  const notices = Object.entries(objectIn(detail)).map(([name, value]) => [name.replaceAll('_', ' '), shown(value)]);
  return (
    <>
      <p>{MEANS[result ?? 'intent']}</p>
      {notices.length === 0 ? null : <Facts of={Object.fromEntries(notices)} />}
      <hr />
      <Facts
        of={{
          Actor: only('actor', actor),
          Address: address === '' ? 'this stack' : <code>{address}</code>,
          Action: only('action', action),
          Target: target === '' ? undefined : only('target', target),
          Job: JOB_ACTIONS.has(action) ? (
            <a href={`/jobs/${encodeURIComponent(target.toWellFormed())}`}>Job details</a>
          ) : undefined,
          Record: `${seq}${intent === null ? '' : `, result of record ${intent}`}`,
          Request: requestId === '' ? undefined : <code>{requestId}</code>,
          Hash: <code>{hash}</code>,
        }}
      />
    </>
  );
}

function only(name: string, value: string) {
  return (
    <a href={`/audit?${new URLSearchParams({ [name]: value }).toString()}`} title={`Show only records with ${value}`}>
      {value}
    </a>
  );
}

/** Actions whose target is a job. */
const JOB_ACTIONS: ReadonlySet<string> = new Set([VACUUM_RUN, RETENTION_RUN]);

/** Formats a detail: texts and numbers plain, lists with commas, the rest as JSON. */
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

const HERE = '/audit';
const VERIFY = '/audit?verify=yes';
const PAGE_SIZE = 50;
const MAX_LENGTH = 300;

/** Adds the route of this file. */
export function auditPage(app: App, deps: Deps): void {
  pagesOf(app, deps, ['console']).get(HERE, { access: 'admin' }, async function showAudit(c) {
    const page = pageNumber(c.req.query('page'));
    const span = daySpanOf(c, deps.timeZone);
    const filter = filterOf(c, span);
    const wantsVerdict = c.req.query('verify') === 'yes';
    const [{ results, count }, verdict] = await Promise.all([
      deps.audit.list(filter, (page - 1) * PAGE_SIZE, PAGE_SIZE),
      wantsVerdict ? deps.together('audit.verify', async () => deps.audit.verify()) : undefined,
    ]);
    const set = formatSet(filter, span);
    const clock = clockOf(deps);
    const body = (
      <>
        {verdict === undefined ? null : <Verdict verdict={verdict} />}
        <Filters action={HERE} set={set} csv={csvAddress('/api/audit', { ...filter })} open={isFaulty(span)}>
          <FilterFields filter={filter} span={span} />
        </Filters>
        {results.length === 0 ? (
          <None isFiltered={set.length > 0} />
        ) : (
          <ul class="records dense">
            {results.map((record) => (
              <AuditRecord record={record} clock={clock} />
            ))}
          </ul>
        )}
        {count === 0 ? null : <Pager url={listAddress(c)} page={page} pageSize={PAGE_SIZE} count={count} />}
      </>
    );
    const actions = (
      <a class="button" href={VERIFY}>
        Verify log
      </a>
    );
    return framed(c, deps, { title: 'Audit', current: 'audit', body, actions });
  });
}

/** Links to other pages of the list do not verify again. */
function listAddress({ req }: PageContext): URL {
  const url = new URL(req.url);
  url.searchParams.delete('verify');
  return url;
}

function filterOf({ req }: PageContext, { since, until }: DaySpan): AuditFilter {
  const text = (name: string): string | undefined => {
    const value = (req.query(name) ?? '').trim().slice(0, MAX_LENGTH);
    return value === '' ? undefined : value;
  };
  return { actor: text('actor'), action: text('action'), target: text('target'), since, until };
}

function formatSet({ actor, action, target }: AuditFilter, span: DaySpan): string[] {
  const texts = [actor, action, target].filter((text) => text !== undefined);
  return [...texts, ...formatSpan(span)];
}

function FilterFields({ filter, span }: { filter: AuditFilter; span: DaySpan }) {
  const { actor, action, target } = filter;
  return (
    <>
      <Field name="actor" label="Actor" value={actor} maxlength={MAX_LENGTH} plain />
      <Field
        name="action"
        label="Action"
        placeholder="user or user.create"
        value={action}
        maxlength={MAX_LENGTH}
        plain
      />
      <Field name="target" label="Target" value={target} maxlength={MAX_LENGTH} plain />
      <DaySpanFields {...span} />
    </>
  );
}

function None({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty>
        No records match these filters. Names must match exactly; an action may be its first words.{' '}
        <a href={HERE}>Clear filters</a>.
      </Empty>
    );
  return <Empty>No records yet. Every sign-in and every change appears here.</Empty>;
}

function Verdict({ verdict }: { verdict: AuditVerdict }) {
  const { ok, records, first_broken: broken } = verdict;
  if (ok)
    return (
      <p class="notice good" role="status">
        {records === 1 ? 'The only record is' : `All ${grouped(records)} records are`} unchanged, and none is missing.
      </p>
    );
  return (
    <div class="notice bad" role="alert">
      <p>
        <strong>
          The log was tampered with: {broken === null ? 'a record' : `record ${broken}`} was changed or removed.
        </strong>{' '}
        {counted(records, 'record')} checked. Earlier records are unchanged. Later ones can’t be trusted.
      </p>
      <p>
        Save the log as CSV now and keep the last backup of the management database. Find out who can access that
        database: Holdfast itself never changes a record.
      </p>
    </div>
  );
}
