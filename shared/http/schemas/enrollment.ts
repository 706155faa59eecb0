// How enrollment looks in answers: what a phone scans, and why it would fail.

import { z } from '@hono/zod-openapi';
import { ATTEMPT_RESULTS } from '@holdfast/kit/core-wire';
import { AppError } from '@holdfast/kit/app-error';
import { qrSvg } from '@holdfast/kit/qr';
import { type EnrollmentLinks, enrollmentLinks, streamingPortOf } from '../../devices/links.ts';
import type { Deps } from '../deps.ts';

const time = z.iso.datetime();
const code = z.string().openapi({ description: 'SVG' });

export const enrollmentSchema = z
  .object({
    url: z.string().openapi({ description: 'The link for ATAK; it contains the app password' }),
    expires_at: time,
    ca_fingerprint: z.string().openapi({ description: 'SHA-256' }),
    ca_certificate: z.string().openapi({ description: 'PEM, the CA first, then the certificates above it' }),
    qr_svg: code.openapi({ description: 'The link for ATAK as SVG' }),
    formats: z.object({
      atak: z.string(),
      itak: z.string().openapi({ description: 'The username and password are typed in' }),
      takaware: z.string().openapi({ description: 'TAK Aware and TAK Tracker' }),
      package: z.string().openapi({ description: 'Address of the data package, to be opened on the device first' }),
    }),
    qr: z.object({ atak: code, itak: code, takaware: code }),
  })
  .openapi('Enrollment');

/** `stages` and `states` are those of the diagnosis. */
export function diagnosisSchema<const S extends string, const T extends string>(
  states: readonly S[],
  stages: readonly T[],
) {
  return z
    .object({
      state: z.enum(states).openapi({ description: 'stale: the CA of the core has changed since the code was issued' }),
      expires_at: time.nullable(),
      ca_fingerprint: z.string().nullable(),
      reason: z.string().nullable().openapi({ description: 'Why it would fail now; null when it would work' }),
      remedy: z.string().nullable(),
      stage: z.enum(stages).nullable(),
      checks: z.array(z.object({ stage: z.enum(stages), ok: z.boolean(), detail: z.string(), milliseconds: z.int() })),
      notes: z.array(z.string()),
      attempts: z
        .array(
          z.object({
            at: time,
            address: z.string(),
            client_uid: z.string(),
            result: z.enum(ATTEMPT_RESULTS),
            reason: z.string(),
          }),
        )
        .nullable()
        .openapi({
          description:
            'The latest attempts and refused connections, newest first; null when the core does not report them',
        }),
    })
    .openapi('EnrollmentDiagnosis');
}

interface View {
  accountId: number;
  username: string;
  expiresAt: string;
  caFingerprint: string;
  chainPem: readonly string[];
  registrationId: string;
  key: string;
  /** SERVER_ADDRESS. */
  host: string;
}

type PlaceDeps = Pick<Deps, 'settings' | 'place'>;

/** What the apps read. */
export function linksOf(
  { settings, place }: PlaceDeps,
  { username, registrationId, key, host }: Pick<View, 'username' | 'registrationId' | 'key' | 'host'>,
): EnrollmentLinks {
  return enrollmentLinks({
    host,
    streamingPort: streamingPortOf(settings.CORE_STREAMING_URL),
    username,
    token: key,
    description: place.name,
    registrationId,
  });
}

export function serverAddress({ settings }: Pick<Deps, 'settings'>): string {
  if (settings.SERVER_ADDRESS !== undefined) return settings.SERVER_ADDRESS;
  throw new AppError('unavailable', "Devices don't have an address to connect to. Remedy: set SERVER_ADDRESS.");
}

export function toEnrollmentView(deps: PlaceDeps, shown: View) {
  const links = linksOf(deps, shown);
  const qr = { atak: qrSvg(links.atak), itak: qrSvg(links.itak), takaware: qrSvg(links.takaware) };
  return {
    url: links.atak,
    expires_at: shown.expiresAt,
    ca_fingerprint: shown.caFingerprint,
    ca_certificate: shown.chainPem.map((pem) => `${pem.trim()}\n`).join(''),
    qr_svg: qr.atak,
    formats: { ...links, package: `/api/users/${shown.accountId}/enrollment/package` },
    qr,
  };
}
