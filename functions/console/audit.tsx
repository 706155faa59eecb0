// GET /audit: who did what, tried what, and what became of it; with `verify` whether all of it is as it was written.

import { counted, grouped } from '../../shared/domain/amounts.ts';
import type { Deps } from '../../shared/http/deps.ts';
import type { App } from '../../shared/http/env.ts';
import type { AuditFilter, AuditVerdict } from '../../shared/ports/audit.ts';
import { clockOf } from '../pages/clock.ts';
import { framed } from '../pages/frame.tsx';
import { type PageContext, pagesOf } from '../pages/page-routes.ts';
import { Field } from '../pages/parts/field.tsx';
import { Filters } from '../pages/parts/filters.tsx';
import { Empty, pageNumber, Pager } from '../pages/parts/table.tsx';
import { AuditRecord } from './audit-record.tsx';
import { csvAddress, type DaySpan, DaySpanFields, daySpanOf, isFaulty, spanInWords } from './day-span.tsx';

const HERE = '/audit';
const VERIFY = '/audit?verify=yes';
const PAGE_SIZE = 50;
const LONGEST = 300;

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
    const set = setInWords(filter, span);
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
        Verify the chain
      </a>
    );
    return framed(c, deps, { title: 'Audit', current: 'audit', body, actions });
  });
}

/** The way through the pages does not verify anew. */
function listAddress({ req }: PageContext): URL {
  const url = new URL(req.url);
  url.searchParams.delete('verify');
  return url;
}

function filterOf({ req }: PageContext, { since, until }: DaySpan): AuditFilter {
  const text = (name: string): string | undefined => {
    const value = (req.query(name) ?? '').trim().slice(0, LONGEST);
    return value === '' ? undefined : value;
  };
  return { actor: text('actor'), action: text('action'), target: text('target'), since, until };
}

function setInWords({ actor, action, target }: AuditFilter, span: DaySpan): string[] {
  const texts = [actor, action, target].filter((text) => text !== undefined);
  return [...texts, ...spanInWords(span)];
}

function FilterFields({ filter, span }: { filter: AuditFilter; span: DaySpan }) {
  const { actor, action, target } = filter;
  return (
    <>
      <Field name="actor" label="Who" value={actor} maxlength={LONGEST} plain />
      <Field name="action" label="What" placeholder="user or user.create" value={action} maxlength={LONGEST} plain />
      <Field name="target" label="To what or whom" value={target} maxlength={LONGEST} plain />
      <DaySpanFields {...span} />
    </>
  );
}

function None({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty>
        No record is like that. Names are compared as a whole, only what was done by its first words.{' '}
        <a href={HERE}>Show all of them</a>.
      </Empty>
    );
  return <Empty>Nothing is recorded yet. Every sign-in and every change is, from the first one on.</Empty>;
}

function Verdict({ verdict }: { verdict: AuditVerdict }) {
  const { ok, records, first_broken: broken } = verdict;
  if (ok)
    return (
      <p class="notice good" role="status">
        {records === 1 ? 'The one record is' : `All ${grouped(records)} records are`} as written, and none is missing.
      </p>
    );
  return (
    <div class="notice bad" role="alert">
      <p>
        <strong>
          The log was changed: {broken === null ? 'a record' : `record ${broken}`} is not as it was written, or is
          missing.
        </strong>{' '}
        {counted(records, 'record')} looked at. What stands before it is as it was written; from there on nothing is
        sure.
      </p>
      <p>
        Save the log as CSV now, keep the last backup of the management database, and find out who can reach that
        database: nothing in Holdfast changes a record.
      </p>
    </div>
  );
}
