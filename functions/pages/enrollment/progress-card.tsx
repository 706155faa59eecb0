// How far the device has come: waited for, enrolled, connected, or refused. The page asks every few seconds for the tag of
// what it shows, which costs one list of the core.

import type { EnrolledDevice, EnrollmentProgress } from '../../../shared/verbs/enrollment-progress.ts';
import type { Clock } from '../clock.ts';
import { Missing } from '../parts/notice.tsx';
import { StatusBadge } from '../parts/status.tsx';
import { When } from '../parts/time.tsx';

/** What makes the page another one, as text. */
export function progressText(code: string, { devices, refused, problem }: EnrollmentProgress): string {
  return JSON.stringify({
    code,
    devices: devices.map(({ certificate, client }) => [
      certificate.hash,
      certificate.revokedAt,
      client?.connection ?? null,
      client?.callsign ?? null,
    ]),
    refused: refused?.at ?? null,
    problem: problem ?? null,
  });
}

interface ProgressCardProps {
  path: string;
  /** The entity tag of the text above. */
  tag: string;
  progress: EnrollmentProgress;
  clock: Clock;
  /** Of a refusal. */
  remedy: string | undefined;
  /** False: the code has ended, and nobody new can come. */
  open: boolean;
  /** False: this is no answer to GET, so there is nothing to ask again. */
  live: boolean;
  /** False: there never was one. */
  begun: boolean;
}

export function ProgressCard({ path, tag, progress, clock, remedy, open, live: asks, begun }: ProgressCardProps) {
  if (!begun) return <section id="progress" data-refresh="" hidden></section>;
  const { devices, refused, problem } = progress;
  const isDone = !open && devices.every(({ client, certificate }) => client !== undefined || certificate.revokedAt);
  const live = isDone || !asks ? {} : { 'data-live': `${path}/progress`, 'data-every': '3', 'data-tag': tag };
  return (
    <section class={`card progress ${devices.length > 0 ? 'good' : ''}`.trim()} id="progress" {...live}>
      <div aria-live="polite">
        {problem === undefined ? null : <Missing>Whether a device has come cannot be seen: {problem}</Missing>}
        {devices.map((device) => (
          <Enrolled device={device} clock={clock} />
        ))}
        {refused === undefined ? null : (
          <div class="notice bad">
            <p>
              <strong>A device was refused</strong> (<When at={refused.at} clock={clock} />, from {refused.address}):{' '}
              {refused.reason}
            </p>
            {remedy === undefined ? null : <p>What to do: {remedy}</p>}
          </div>
        )}
        {devices.length > 0 || problem !== undefined || !open ? null : (
          <p class="waiting">
            <strong>Waiting for the device…</strong> <span class="fine">It shows here as soon as it has come.</span>
          </p>
        )}
        {devices.length > 0 || open || problem !== undefined ? null : <p>No device has enrolled with this code.</p>}
      </div>
      <noscript>
        <p class="fine">Reload the page to see whether the device has come.</p>
      </noscript>
    </section>
  );
}

function Enrolled({ device, clock }: { device: EnrolledDevice; clock: Clock }) {
  const { certificate, client } = device;
  const { clientUid, issuedAt, expiresAt, revokedAt } = certificate;
  if (revokedAt !== null)
    return (
      <p>
        <StatusBadge status="note">Revoked</StatusBadge> {nameOf(device)} was enrolled, and is shut out again since{' '}
        <When at={revokedAt} clock={clock} />.
      </p>
    );
  return (
    <div class="enrolled">
      <p>
        <StatusBadge status="ok">{client === undefined ? 'Enrolled' : 'Connected'}</StatusBadge>{' '}
        {client === undefined ? (
          <>
            <strong>Device enrolled: {nameOf(device)}</strong>. Not connected yet.
          </>
        ) : (
          <>
            <strong>Connected as {client.callsign === '' ? client.uid : client.callsign}</strong> since{' '}
            <When at={client.since} clock={clock} never="just now" />.
          </>
        )}
      </p>
      <p class="fine">
        {client === undefined || clientUid === '' ? '' : `${clientUid}. `}
        {client === undefined || client.device === '' ? '' : `${client.device}. `}
        Certificate of <When at={issuedAt} clock={clock} />, good until <When at={expiresAt} clock={clock} />.
      </p>
    </div>
  );
}

function nameOf({ certificate: { clientUid, hash } }: EnrolledDevice): string {
  return clientUid === '' ? `certificate ${hash.slice(0, 11)}…` : clientUid;
}
