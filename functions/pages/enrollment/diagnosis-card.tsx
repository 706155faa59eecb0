// Why enrolling would fail now: the way that the phone goes, stage by stage, the first fault with its remedy, the last attempts.

import type { EnrollmentStage } from '../../../shared/devices/enrollment/check.ts';
import type { Diagnosis } from '../../../shared/devices/enrollment/diagnose.ts';
import { StatusBadge } from '../parts/notice.tsx';
import { Table } from '../parts/table.tsx';
import { type Clock, timeInZone, When } from '../parts/time.tsx';

/** In this order: what is longer comes first. */
const WORDS: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/Issue it anew: POST \/api\/\S+, and scan the new code\./g, 'Make a new code, and scan that one.'],
  [/ \((?:GET|PUT|POST|PATCH|DELETE) \/api\/[^()]*\)/g, ''],
  [/take it back \(DELETE\) and begin anew/g, 'take the code back and begin anew'],
  [/See GET \/api\/health\/(\w+), and ask again/g, 'See $1 on the overview, and check again'],
  [/See GET \/api\/health,/g, 'See the overview,'],
  [/GET \/api\/health\/(\w+) and GET \/api\/health\/(\w+) say/g, '$1 and $2 on the overview say'],
  [/GET \/api\/health\/(\w+)/g, '$1 on the overview'],
  [/GET \/api\/health\b/g, 'the overview'],
  [/gives a new expires_at, or null for none, with is_active true/g, 'gives the user a new end, or none'],
  [/Give a new expires_at, or null for none\./g, 'Give the user a new end, or none.'],
  [/a valid token/g, 'a valid code'],
  [/no valid token/g, 'no valid code'],
  [/there is a token/g, 'there is a code'],
  [/\bask again\b/gi, 'check again'],
];
const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/**
 * What the diagnosis says to programs, as a page says it: where the sentence names a route of the API, the page names the place
 * that a person knows; and times are those of the stack.
 */
export function inPageWords(text: string, { timeZone }: Pick<Clock, 'timeZone'>): string {
  const message = WORDS.reduce((before, [pattern, words]) => before.replaceAll(pattern, words), text);
  return message.replaceAll(TIME, (iso) => timeInZone(iso, timeZone));
}

const STAGES: Record<EnrollmentStage, string> = {
  account: 'The person',
  name: 'The name of the server',
  port: 'The enrollment port',
  chain: 'The certificate of the server',
  token: 'The code',
  bind: 'Name and app password',
  groups: 'The groups',
  signing: 'Signing',
};

interface DiagnosisCardProps {
  /** Of the page itself, with what checks now. */
  checkPath: string;
  /** Undefined: not asked for. */
  diagnosis: Diagnosis | undefined;
  clock: Clock;
}

export function DiagnosisCard({ checkPath, diagnosis, clock }: DiagnosisCardProps) {
  return (
    <section class="card" id="diagnosis" data-refresh="">
      <div class="head">
        <h2>Does it not work?</h2>
        <a class="button small" href={`${checkPath}#diagnosis`}>
          Check now
        </a>
      </div>
      {diagnosis === undefined ? (
        <p class="fine">Goes the way that the phone goes, and says what stops it. Takes a few seconds.</p>
      ) : (
        <Found diagnosis={diagnosis} clock={clock} />
      )}
    </section>
  );
}

function Found({ diagnosis, clock }: { diagnosis: Diagnosis; clock: Clock }) {
  const { reason, remedy, checks, notes, attempts } = diagnosis;
  return (
    <>
      {reason === null ? (
        <p class="notice good">From here, nothing stands in the way of a device.</p>
      ) : (
        <div class="notice bad">
          <p>
            <strong>{inPageWords(reason, clock)}</strong>
          </p>
          {remedy === null ? null : <p>What to do: {inPageWords(remedy, clock)}</p>}
        </div>
      )}
      <ul class="checks-done">
        {checks.map(({ stage, ok, detail }) => (
          <li>
            <StatusBadge status={ok ? 'ok' : isUntried(detail) ? 'note' : 'critical'}>
              {ok ? 'OK' : isUntried(detail) ? 'Not tried' : 'Fails'}
            </StatusBadge>
            <span>
              <strong>{STAGES[stage]}.</strong> {inPageWords(detail, clock)}
            </span>
          </li>
        ))}
      </ul>
      {notes.length === 0 ? null : (
        <>
          <h3>Good to know</h3>
          <ul>
            {notes.map((note) => (
              <li>{inPageWords(note, clock)}</li>
            ))}
          </ul>
        </>
      )}
      <Attempts attempts={attempts} clock={clock} />
    </>
  );
}

function isUntried(detail: string): boolean {
  return detail.startsWith('This was not tried');
}

function Attempts({ attempts, clock }: { attempts: Diagnosis['attempts']; clock: Clock }) {
  if (attempts === null) return <p class="fine">This core does not tell who has tried to enroll.</p>;
  if (attempts.length === 0)
    return <p class="fine">Nobody has tried to enroll under this name since the core began.</p>;
  return (
    <>
      <h3>Last attempts</h3>
      <Table
        caption="Last attempts to enroll"
        columns={[{ label: 'When' }, { label: 'Result' }, { label: 'Device' }, { label: 'From' }]}
        rows={attempts.map(({ at, result, reason, client_uid: uid, address }) => [
          <When at={at} clock={clock} />,
          result === 'signed' ? 'Enrolled' : `Refused: ${inPageWords(reason, clock)}`,
          uid,
          address,
        ])}
      />
    </>
  );
}
