// Shows how far a revocation is confirmed, step by step.

import type { RevocationListContent } from '../../../shared/core/port.ts';
import type { CertificateView } from '../../../shared/devices/certificates/view.ts';
import type { CanaryRun, Revocation } from '../../../shared/devices/port.ts';
import type { Status } from '../../../shared/settings/status.ts';
import { StatusBadge } from '../parts/notice.tsx';
import { type Clock, timeInZone, When } from '../parts/time.tsx';

export interface ProofFacts {
  certificate: CertificateView;
  revocation: Revocation | undefined;
  /** Undefined when it can't be read. */
  list: RevocationListContent | undefined;
  canary: CanaryRun | undefined;
}

interface Step {
  status: Status;
  label: string;
  text: string;
}

const HEADINGS: Partial<Record<CertificateView['state'], string>> = {
  revoked: 'Revocation confirmed',
  revoking: 'Waiting for confirmation',
  revocation_failed: 'Revocation not confirmed: treat the device as connected',
};

export function RevocationProof({ facts, clock }: { facts: ProofFacts; clock: Clock }) {
  const { certificate, revocation } = facts;
  const { state } = certificate;
  return (
    <section class={`card ${state === 'revocation_failed' ? 'critical' : ''}`.trim()}>
      <h2>{HEADINGS[state]}</h2>
      <ul class="checks-done">
        {stepsOf(facts, clock).map(({ status, label, text }) => (
          <li>
            <StatusBadge status={status}>{label}</StatusBadge>
            <span>{text}</span>
          </li>
        ))}
      </ul>
      {revocation === undefined || revocation.problem === null ? null : (
        <p class={`notice ${state === 'revocation_failed' ? 'bad' : 'warn'}`}>
          {state === 'revocation_failed' ? 'Problem: ' : 'Waiting for: '}
          {revocation.problem}
        </p>
      )}
      {revocation === undefined ? null : (
        <p class="fine">
          Revoked at <When at={revocation.wantedAt} clock={clock} />.{' '}
          {state === 'revoked' ? (
            <>
              Confirmed at <When at={revocation.provenAt} clock={clock} />.
            </>
          ) : (
            <>
              Last check: <When at={revocation.checkedAt} clock={clock} never="none yet" />. Holdfast retries every 5
              seconds until the revocation is confirmed.
            </>
          )}
        </p>
      )}
    </section>
  );
}

const confirmed = (text: string): Step => ({ status: 'ok', label: 'Confirmed', text });
const pending = (text: string): Step => ({ status: 'warning', label: 'Pending', text });

function stepsOf({ certificate, revocation, list, canary }: ProofFacts, { timeZone }: Clock): Step[] {
  const { revoked_at: revokedAt, serial, state } = certificate;
  const isDone = state === 'revoked';
  return [
    revokedAt === null
      ? pending('The core has not recorded the revocation.')
      : confirmed(`The core recorded the revocation (${timeInZone(revokedAt, timeZone)}).`),
    list === undefined
      ? pending("Couldn't read the revocation list.")
      : list.ours && list.serials.includes(serial)
        ? confirmed('The revocation list contains this certificate and is signed by the CA.')
        : pending("The revocation list doesn't contain this certificate, or isn't signed by the CA."),
    streamStep(revocation, isDone),
    canaryStep(canary, isDone, timeZone),
  ];
}

function streamStep(revocation: Revocation | undefined, isDone: boolean): Step {
  if (revocation?.streams === 'unverifiable')
    return {
      status: 'note',
      label: 'Unknown',
      text: "Couldn't check for a connection: this person has other active certificates. The core doesn't report which certificate a connection uses.",
    };
  return revocation?.streams === 'none' || isDone
    ? confirmed('No device is connected with this certificate.')
    : pending('Not known yet: a device may still be connected with this certificate.');
}

function canaryStep(canary: CanaryRun | undefined, isDone: boolean, timeZone: string): Step {
  if (canary !== undefined && canary.ok)
    return confirmed(
      `The core refuses revoked certificates (checked with a test certificate, ${timeInZone(canary.at, timeZone)}).`,
    );
  if (isDone) return confirmed('The core refused revoked certificates at that time.');
  if (canary !== undefined && !canary.signed)
    return pending('Not checked: the core did not sign a test certificate, so revoking one could not be tried.');
  return pending(
    canary === undefined
      ? 'Not checked yet: Holdfast has not tried a revoked test certificate.'
      : `The core did not refuse a revoked test certificate: ${canary.problem ?? 'it connected'}`,
  );
}
