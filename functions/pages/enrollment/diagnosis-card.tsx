// Why enrolling would fail now: the way that the phone goes, stage by stage, the first fault with its remedy, the last attempts.

import type { Diagnosis } from '../../../shared/verbs/diagnose-enrollment.ts';
import type { EnrollmentStage } from '../../../shared/verbs/enrollment-check.ts';
import type { Clock } from '../clock.ts';
import { StatusBadge } from '../parts/status.tsx';
import { Table } from '../parts/table.tsx';
import { When } from '../parts/time.tsx';
import { inPageWords } from './in-page-words.ts';

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
