// How far the proof of a revocation is, step by step, and what is waited for.

import type { RevocationListContent } from '../../../shared/core/port.ts';
import type { CertificateView } from '../../../shared/devices/certificates/view.ts';
import type { CanaryRun, Revocation } from '../../../shared/devices/port.ts';
import type { Status } from '../../../shared/settings/status.ts';
import { StatusBadge } from '../parts/notice.tsx';
import { type Clock, timeInZone, When } from '../parts/time.tsx';

export interface ProofFacts {
  certificate: CertificateView;
  revocation: Revocation | undefined;
  /** Undefined: it cannot be read. */
  list: RevocationListContent | undefined;
  canary: CanaryRun | undefined;
}

interface Step {
  status: Status;
  word: string;
  says: string;
}

const HEADINGS: Partial<Record<CertificateView['state'], string>> = {
  revoked: 'Shut out, and proven',
  revoking: 'Being revoked: the proof is still to come',
  revocation_failed: 'Not shut out yet: treat the device as connected',
};

export function RevocationProof({ facts, clock }: { facts: ProofFacts; clock: Clock }) {
  const { certificate, revocation } = facts;
  const { state } = certificate;
  return (
    <section class={`card ${state === 'revocation_failed' ? 'critical' : ''}`.trim()}>
      <h2>{HEADINGS[state]}</h2>
      <ul class="checks-done">
        {stepsOf(facts, clock).map(({ status, word, says }) => (
          <li>
            <StatusBadge status={status}>{word}</StatusBadge>
            <span>{says}</span>
          </li>
        ))}
      </ul>
      {revocation === undefined || revocation.problem === null ? null : (
        <p class={`notice ${state === 'revocation_failed' ? 'bad' : 'warn'}`}>
          {state === 'revocation_failed' ? 'Seen that must not be: ' : 'Waited for: '}
          {revocation.problem}
        </p>
      )}
      {revocation === undefined ? null : (
        <p class="fine">
          Revoked on <When at={revocation.wantedAt} clock={clock} />.{' '}
          {state === 'revoked' ? (
            <>
              Proven on <When at={revocation.provenAt} clock={clock} />.
            </>
          ) : (
            <>
              Looked at last on <When at={revocation.checkedAt} clock={clock} never="not yet" />; it is tried again
              every 5 seconds until it stands.
            </>
          )}
        </p>
      )}
    </section>
  );
}

const proven = (says: string): Step => ({ status: 'ok', word: 'Proven', says });
const open = (says: string): Step => ({ status: 'warning', word: 'Open', says });

function stepsOf({ certificate, revocation, list, canary }: ProofFacts, { timeZone }: Clock): Step[] {
  const { revoked_at: revokedAt, serial, state } = certificate;
  const isOver = state === 'revoked';
  return [
    revokedAt === null
      ? open('The core has not recorded the revocation.')
      : proven(`The core has recorded the revocation (${timeInZone(revokedAt, timeZone)}).`),
    list === undefined
      ? open('The revocation list cannot be read now.')
      : list.ours && list.serials.includes(serial)
        ? proven('The revocation list names it, and the CA has signed that list.')
        : open('The revocation list does not name it, or is not signed by the CA.'),
    streamStep(revocation, isOver),
    canaryStep(canary, isOver, timeZone),
  ];
}

function streamStep(revocation: Revocation | undefined, isOver: boolean): Step {
  if (revocation?.streams === 'unverifiable')
    return {
      status: 'note',
      word: 'Not visible',
      says: 'Whether it still has a connection cannot be told: its person has other certificates in force, and a core does not say which one a connection has come with.',
    };
  return revocation?.streams === 'none' || isOver
    ? proven('Nobody is connected with it.')
    : open('Whether nobody is connected with it is not known yet.');
}

function canaryStep(canary: CanaryRun | undefined, isOver: boolean, timeZone: string): Step {
  if (canary !== undefined && canary.ok)
    return proven(
      `This core refuses revoked certificates (tried with one of our own, ${timeInZone(canary.at, timeZone)}).`,
    );
  if (isOver) return proven('This core refused revoked certificates at that time.');
  if (canary !== undefined && !canary.signed)
    return open('This core did not sign a test certificate, so whether it refuses revoked ones was not tried.');
  return open(
    canary === undefined
      ? 'Whether this core refuses revoked certificates was not tried yet.'
      : `A revoked certificate of our own was not refused: ${canary.problem ?? 'it was let in'}`,
  );
}
