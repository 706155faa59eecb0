// Finds requested revocations that are not proven yet, and checks the canary: a core must reject
// revoked certificates.

import { messageOf } from '@holdfast/kit/app-error';
import { counted } from '@holdfast/kit/format';
import type { CertificateStore, RevocationState } from '../../devices/port.ts';
import type { Finding } from '../evaluate.ts';

export interface UnprovenRevocation {
  username: string;
  /** SHA-256; null means all certificates of the user, while the core has not listed them yet. */
  fingerprint: string | null;
  state: RevocationState;
  since: string;
  problem: string | null;
}

export interface Revocations {
  /** Oldest first; at most 200. */
  unproven: UnprovenRevocation[];
  /** The number of all of them. */
  unprovenCount: number;
  /** Null before the first one. */
  canary: { at: string; ok: boolean; signed: boolean; problem: string | null } | null;
  /** Why our own records could not be read; null if they were. */
  problem: string | null;
}

const MAX_SHOWN = 200;
/** A revocation normally takes less while the core answers. */
const EXPECTED_WITHIN_MS = 20_000;

/** When the newest overdue revocation became overdue; earlier measurements do not show it. */
export function lateSinceMs(open: readonly { wantedAt: string }[], now: Date): number | undefined {
  const late = open
    .map(({ wantedAt }) => Date.parse(wantedAt) + EXPECTED_WITHIN_MS)
    .filter((since) => since <= now.getTime());
  return late.length === 0 ? undefined : Math.max(...late);
}

export async function readRevocations(
  store: Pick<CertificateStore, 'openRevocations' | 'openRevocationCount' | 'orders' | 'lastCanary'>,
): Promise<Revocations> {
  try {
    const [open, openCount, orders, canary] = await Promise.all([
      store.openRevocations(MAX_SHOWN),
      store.openRevocationCount(),
      store.orders(),
      store.lastCanary(),
    ]);
    const whole = orders.map(({ username, wantedAt }): UnprovenRevocation => ({
      username,
      fingerprint: null,
      state: 'revoking',
      since: wantedAt,
      problem: 'the core has not listed the certificates yet',
    }));
    const single = open.map(({ username, hash, state, wantedAt, problem }): UnprovenRevocation => ({
      username,
      fingerprint: hash,
      state,
      since: wantedAt,
      problem,
    }));
    return {
      unproven: [...whole, ...single].slice(0, MAX_SHOWN),
      unprovenCount: whole.length + openCount,
      canary:
        canary === undefined ? null : { at: canary.at, ok: canary.ok, signed: canary.signed, problem: canary.problem },
      problem: null,
    };
  } catch (error) {
    return { unproven: [], unprovenCount: 0, canary: null, problem: messageOf(error).replace(/\.$/, '') };
  }
}

/** While the core is unavailable, every open revocation counts as overdue. */
export function judgeRevocations(
  { unproven, canary, problem }: Pick<Revocations, 'unproven' | 'canary' | 'problem'>,
  { now, coreAnswers }: { now: Date; coreAnswers: boolean },
): Finding[] {
  if (problem !== null)
    return [{ kind: 'fact', status: 'critical', says: `couldn't read which revocations are proven: ${problem}` }];
  const canaryFailed: Finding[] =
    canary === null || canary.ok
      ? []
      : [
          {
            kind: 'fact',
            status: 'critical',
            says: canary.signed
              ? `the revocation canary failed: ${withoutStop(canary.problem)}`
              : `the core doesn't sign certificates, so no device can enroll: ${withoutStop(canary.problem)}`,
          },
        ];
  return [...unproven.map((each) => judge(each, now, coreAnswers)), ...canaryFailed];
}

function judge(
  { username, fingerprint, state, since, problem }: UnprovenRevocation,
  now: Date,
  coreAnswers: boolean,
): Finding {
  const what =
    fingerprint === null
      ? `all certificates of ${username}`
      : `a certificate of ${username} (${fingerprint.slice(0, 11)}…)`;
  const seconds = Math.max(0, Math.round((now.getTime() - Date.parse(since)) / 1000));
  const isYoung = coreAnswers && state === 'revoking' && seconds * 1000 < EXPECTED_WITHIN_MS;
  const verb = fingerprint === null ? 'are' : 'is';
  if (isYoung) return { kind: 'fact', status: 'note', says: `${what} ${verb} being revoked` };
  const known = problem ?? (coreAnswers ? null : 'the core does not answer');
  const why = known === null ? '' : `: ${withoutStop(known)}`;
  const says =
    state === 'revocation_failed'
      ? `the revocation of ${what} does not hold${why}`
      : `the revocation of ${what} is not proven after ${counted(seconds, 'second')}${why}`;
  return { kind: 'fact', status: 'critical', says };
}

function withoutStop(sentence: string | null): string {
  return (sentence ?? '').replace(/\.$/, '');
}
