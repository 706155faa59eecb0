// Shows the enrollment check: each stage, the first fault with its remedy, and recent attempts.

import type { EnrollmentStage } from '../../../shared/devices/enrollment/check.ts';
import type { Diagnosis } from '../../../shared/devices/enrollment/diagnose.ts';
import { StatusBadge } from '../parts/notice.tsx';
import { Table } from '../parts/table.tsx';
import { type Clock, timeInZone, When } from '../parts/time.tsx';

/** Longer patterns come first. */
const REPLACEMENTS: readonly (readonly [pattern: RegExp, text: string])[] = [
  [/Issue a new code: POST \/api\/\S+, and scan it\./g, 'Create a new code and scan it.'],
  [/ \((?:GET|PUT|POST|PATCH|DELETE) \/api\/[^()]*\)/g, ''],
  [/cancel the enrollment \(DELETE\)/g, 'cancel the enrollment'],
  [/Check GET \/api\/health\/(\w+), and try again/g, 'See $1 on the overview, then try again'],
  [/see GET \/api\/health\/(\w+)/g, 'see $1 on the overview'],
  [/GET \/api\/health\/(\w+) and GET \/api\/health\/(\w+) show/g, '$1 and $2 on the overview show'],
  [/GET \/api\/health\/(\w+)/g, '$1 on the overview'],
  [/GET \/api\/health\b/g, 'the overview'],
  [/set a new expires_at, or null for never, with is_active true/g, 'set a new expiry date, or none'],
  [/Give a new expires_at, or null for never\./g, 'Give the user a new expiry date, or none.'],
];
const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/**
 * The text of the diagnosis for a page: names pages instead of API routes, and shows times in the
 * stack's time zone.
 */
export function toPageText(text: string, { timeZone }: Pick<Clock, 'timeZone'>): string {
  const message = REPLACEMENTS.reduce((before, [pattern, after]) => before.replaceAll(pattern, after), text);
  return message.replaceAll(TIME, (iso) => timeInZone(iso, timeZone));
}

const STAGES: Record<EnrollmentStage, string> = {
  account: 'Account',
  name: 'Server name',
  port: 'Enrollment port',
  chain: 'Server certificate',
  token: 'Code',
  bind: 'Username and app password',
  groups: 'Groups',
  signing: 'Signing',
};

interface DiagnosisCardProps {
  /** The path of the page with the query that runs the check. */
  checkPath: string;
  /** Undefined until requested. */
  diagnosis: Diagnosis | undefined;
  clock: Clock;
}

export function DiagnosisCard({ checkPath, diagnosis, clock }: DiagnosisCardProps) {
  return (
    <section class="card" id="diagnosis" data-refresh="">
      <div class="head">
        <h2>Trouble connecting?</h2>
        <a class="button small" href={`${checkPath}#diagnosis`}>
          Run check
        </a>
      </div>
      {diagnosis === undefined ? (
        <p class="fine">Checks every step of enrollment and shows what fails. Takes a few seconds.</p>
      ) : (
        <Findings diagnosis={diagnosis} clock={clock} />
      )}
    </section>
  );
}

function Findings({ diagnosis, clock }: { diagnosis: Diagnosis; clock: Clock }) {
  const { reason, remedy, checks, notes, attempts } = diagnosis;
  return (
    <>
      {reason === null ? (
        <p class="notice good">No problems found. A device can enroll.</p>
      ) : (
        <div class="notice bad">
          <p>
            <strong>{toPageText(reason, clock)}</strong>
          </p>
          {remedy === null ? null : <p>Next step: {toPageText(remedy, clock)}</p>}
        </div>
      )}
      <ul class="checks-done">
        {checks.map(({ stage, ok, detail }) => (
          <li>
            <StatusBadge status={ok ? 'ok' : isUntried(detail) ? 'note' : 'critical'}>
              {ok ? 'OK' : isUntried(detail) ? 'Not checked' : 'Failed'}
            </StatusBadge>
            <span>
              <strong>{STAGES[stage]}.</strong> {toPageText(detail, clock)}
            </span>
          </li>
        ))}
      </ul>
      {notes.length === 0 ? null : (
        <>
          <h3>Notes</h3>
          <ul>
            {notes.map((note) => (
              <li>{toPageText(note, clock)}</li>
            ))}
          </ul>
        </>
      )}
      <Attempts attempts={attempts} clock={clock} />
    </>
  );
}

function isUntried(detail: string): boolean {
  return detail.startsWith('Not checked');
}

function resultText(result: NonNullable<Diagnosis['attempts']>[number]['result'], reason: string): string {
  if (result === 'signed') return 'Enrolled';
  return `${result === 'refused' ? 'Refused' : 'Connection refused'}: ${reason}`;
}

function Attempts({ attempts, clock }: { attempts: Diagnosis['attempts']; clock: Clock }) {
  if (attempts === null) return <p class="fine">This core does not report enrollment attempts.</p>;
  if (attempts.length === 0) return <p class="fine">No enrollment attempts under this name since the core started.</p>;
  return (
    <>
      <h3>Recent attempts</h3>
      <Table
        caption="Recent attempts to enroll or connect"
        columns={[{ label: 'Time' }, { label: 'Result' }, { label: 'Device' }, { label: 'From' }]}
        rows={attempts.map(({ at, result, reason, client_uid: uid, address }) => [
          <When at={at} clock={clock} />,
          resultText(result, toPageText(reason, clock)),
          uid,
          address,
        ])}
      />
    </>
  );
}
