// Reads certificates while the core is unavailable: Holdfast's own records stand in, with a note
// that they may be incomplete.

import { AppError } from '@holdfast/kit/app-error';
import type { Core, CoreCertificate } from '../../core/port.ts';
import type { CertificateStore, MadeCertificate, Revocation } from '../port.ts';

type Readable = Pick<Core, 'certificates' | 'certificate'>;

export interface UnavailableDeps {
  core: Readable;
  certificateStore: Pick<CertificateStore, 'made' | 'revocations'>;
}

export interface StandIn<D> {
  deps: D;
  /** Why what was read is not what the core has; undefined when it is. */
  problem: () => string | undefined;
}

/**
 * The same deps with a core that answers from our own book while the other one is away; for one
 * piece of reading.
 */
export function orAsWritten<D extends UnavailableDeps>(deps: D): StandIn<D> {
  let problem: string | undefined;

  async function orElse<T>(ask: () => Promise<T>, written: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      problem = error.message;
      return written();
    }
  }

  const core: Readable = {
    certificates: (username) =>
      orElse(
        () => deps.core.certificates(username),
        () => allWritten(deps, username),
      ),
    certificate: (hash) =>
      orElse(
        () => deps.core.certificate(hash),
        async () => (await allWritten(deps)).find((each) => each.hash === hash),
      ),
  };
  return { deps: { ...deps, core }, problem: () => problem };
}

/** The answer with the reason, if there is one. */
export function withProblem<T extends object>(answer: T, problem: string | undefined): T & { certs_error?: string } {
  return problem === undefined ? answer : { ...answer, certs_error: problem };
}

export function isUnavailable(error: unknown): error is AppError {
  return error instanceof AppError && (error.code === 'unavailable' || error.code === 'upstream');
}

async function allWritten({ certificateStore }: UnavailableDeps, username?: string): Promise<CoreCertificate[]> {
  const usernames = username === undefined ? undefined : [username];
  const [made, revocations] = await Promise.all([
    certificateStore.made(usernames),
    certificateStore.revocations(usernames),
  ]);
  const provenAt = new Map(revocations.map((each) => [each.hash, each.provenAt]));
  const all = new Map([...revocations, ...made].map((each) => [each.hash, each]));
  return [...all.values()].map((each) => recordOf(each, provenAt.get(each.hash) ?? null));
}

function recordOf(
  { hash, serial, username, clientUid, issuedAt, expiresAt }: MadeCertificate | Revocation,
  revokedAt: string | null,
): CoreCertificate {
  return { hash, serial, username, clientUid, issuedAt, expiresAt, revokedAt, pem: '' };
}
