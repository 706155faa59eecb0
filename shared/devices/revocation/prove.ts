// Takes revocations from their record to their proof: revokes what the core has not revoked yet,
// then checks everything that the proof needs. Only a complete proof counts as revoked; anything
// missing is reported and retried.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import { mapConcurrent } from '@holdfast/kit/concurrency';
import type { Attributes } from '@holdfast/kit/json';
import { CANARY_ACCOUNT, isSameUser } from '@holdfast/kit/names';
import { DAY_MS, MINUTE_MS } from '@holdfast/kit/time';
import { audited } from '../../audit/audited.ts';
import type { Actor } from '../../audit/port.ts';
import type { Core, CoreCertificate, CoreStatus } from '../../core/port.ts';
import type { Judgement, MadeCertificate, Revocation, RevocationDeps } from '../port.ts';
import { certificateFile, hasEnded } from '../rules.ts';
import { CONCURRENCY, GONE, judgeAll, type RevocationState } from './proof.ts';

/** Who revokes when nobody waits for it. */
export const BY_ITSELF: Actor = { username: 'prove-revocations', address: '', requestId: '' };

type Certificate = Omit<MadeCertificate, 'name'>;

/** From here on a job sees to it that they are revoked, whatever happens to this process. */
export async function noteAsRevoking(
  { certificateStore, health }: Pick<RevocationDeps, 'certificateStore' | 'health'>,
  certificates: readonly Certificate[],
  wantedAt: string,
): Promise<void> {
  if (certificates.length === 0) return;
  const noted = certificates.map(({ hash, username, serial, clientUid, issuedAt, expiresAt }) => ({
    hash,
    username,
    serial,
    clientUid,
    issuedAt,
    expiresAt,
  }));
  await certificateStore.wantRevoked(noted, wantedAt);
  await health.forget('certificates');
}

/** One revocation at a time. Rejects as the core does. */
export function revokeAtCore(
  { core, coreLock }: Pick<RevocationDeps, 'core' | 'coreLock'>,
  hash: string,
): Promise<CoreCertificate> {
  return coreLock('revocation', () => core.revoke(hash));
}

/** For the audit log. */
export async function revocationDetail(
  { certificateStore }: Pick<RevocationDeps, 'certificateStore'>,
  { hash, serial, username, clientUid }: Pick<Certificate, 'hash' | 'serial' | 'username' | 'clientUid'>,
): Promise<Attributes> {
  const made = (await certificateStore.made([username])).find((each) => each.hash === hash);
  return { hash, serial, file: certificateFile({ hash, username, clientUid }, made) };
}

/** Read in one go, so that those which fail again and again do not keep the others waiting. */
const MAX_READ = 1000;
const MAX_PER_RUN = 40;

export interface ProofSummary extends Record<string, number> {
  revoked: number;
  revoking: number;
  revocation_failed: number;
}

/** One run over what is open: what was not looked at for longest comes first. */
export async function proveOpenRevocations(deps: RevocationDeps, signal: AbortSignal): Promise<ProofSummary> {
  const found = await deps.certificateStore.openRevocations(MAX_READ);
  const open = found.filter((each) => !isForLater(each, GONE, deps.now()));
  const next = open.toSorted((a, b) => (a.checkedAt ?? '').localeCompare(b.checkedAt ?? '')).slice(0, MAX_PER_RUN);
  const summary = { revoked: 0, revoking: 0, revocation_failed: 0 };
  for (const { state } of await proveRevocations(deps, next, signal)) summary[state] += 1;
  return summary;
}

/** Resolves with them as they are then. Rejects when our own database is away. */
export async function proveRevocations(
  deps: RevocationDeps,
  revocations: readonly Revocation[],
  signal?: AbortSignal,
): Promise<Revocation[]> {
  if (revocations.length === 0) return [];
  const core = await statusOf(deps);
  if ('state' in core) return settleAll(deps, revocations, () => core, signal);
  const statuses = new Map<string, RevocationState>();
  const judged = new Map<string, Judgement>();
  const looked = await mapConcurrent(revocations, CONCURRENCY, (each) => lookAt(deps, each));
  for (const [at, revocation] of revocations.entries()) {
    const { hash } = revocation;
    const found = looked[at];
    const status = found === undefined || signal?.aborted ? undefined : await revokedOf(deps, revocation, found);
    if (status === undefined) judged.set(hash, revocation);
    else if ('state' in status) judged.set(hash, status);
    else statuses.set(hash, status);
  }
  const ended = [...statuses.values()];
  const judgements = ended.length === 0 || signal?.aborted ? [] : await judgeAll(deps, ended, core);
  for (const [at, { revocation }] of ended.entries()) judged.set(revocation.hash, judgements[at] ?? revocation);
  return settleAll(deps, revocations, ({ hash }) => judged.get(hash), signal);
}

async function statusOf({ core }: RevocationDeps): Promise<CoreStatus | Judgement> {
  try {
    return await core.status();
  } catch (error) {
    return { state: 'revoking', problem: `Couldn't ask the core: ${messageOf(error)}`, streams: null };
  }
}

/** As the core's table has it; a failure says nothing of it. */
async function lookAt({ core }: RevocationDeps, revocation: Revocation): Promise<RevocationState | Judgement> {
  try {
    return { revocation, certificate: await core.certificate(revocation.hash) };
  } catch (error) {
    return { state: 'revoking', problem: `Couldn't ask the core: ${messageOf(error)}`, streams: null };
  }
}

/**
 * It with its date, or how it stands without one; undefined when it is not to be tried just now.
 */
async function revokedOf(
  deps: RevocationDeps,
  revocation: Revocation,
  found: RevocationState | Judgement,
): Promise<RevocationState | Judgement | undefined> {
  if ('state' in found || found.certificate?.revokedAt !== null) return found;
  if (isForLater(revocation, NOT_REVOKED, deps.now())) return undefined;
  const { certificate } = found;
  try {
    const detail = await revocationDetail(deps, certificate);
    const auditedAction = { actor: BY_ITSELF, action: 'certificate.revoke', target: revocation.username, detail };
    const revoked: CoreCertificate = await audited(deps, auditedAction, () => revokeAtCore(deps, revocation.hash));
    return { revocation, certificate: revoked };
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return { revocation, certificate: undefined };
    return notRevoked(error);
  }
}

const NOT_REVOKED = 'The core did not revoke it: ';

/** A core that does not do what it is asked for has been seen; one that is away has not. */
export function notRevoked(error: unknown): Judgement {
  const isUnavailable = error instanceof AppError && error.code === 'unavailable';
  return {
    state: isUnavailable ? 'revoking' : 'revocation_failed',
    problem: `${NOT_REVOKED}${messageOf(error)}`,
    streams: null,
  };
}

/**
 * What the core has refused for a minute is asked of it once a minute: each time stands in the
 * audit log. So is what is gone: each look at it may read everything that the core has.
 */
function isForLater({ wantedAt, checkedAt, problem }: Revocation, because: string, now: Date): boolean {
  const since = (iso: string): number => now.getTime() - Date.parse(iso);
  if (checkedAt === null || problem?.startsWith(because) !== true) return false;
  return since(wantedAt) > MINUTE_MS && since(checkedAt) < MINUTE_MS;
}

/** Undefined, and what was not looked at, stays as it was. */
async function settleAll(
  deps: RevocationDeps,
  revocations: readonly Revocation[],
  judgementOf: (revocation: Revocation) => Judgement | undefined,
  signal: AbortSignal | undefined,
): Promise<Revocation[]> {
  const settled: Revocation[] = [];
  for (const revocation of revocations) {
    const judgement = judgementOf(revocation);
    const isOpen = judgement !== undefined && judgement !== revocation && signal?.aborted !== true;
    settled.push(isOpen ? await settleOne(deps, revocation, judgement) : revocation);
  }
  return settled;
}

/**
 * The key goes when it can open nothing any more, and not before: it is what the handshake is tried
 * with.
 */
export async function settleOne(
  deps: RevocationDeps,
  before: Revocation,
  { state, problem, streams }: Judgement,
): Promise<Revocation> {
  const { hash, username } = before;
  const checkedAt = deps.now().toISOString();
  await deps.certificateStore.settle(hash, { state, checkedAt, problem, streams });
  if (state !== before.state || problem !== before.problem) {
    await deps.health.forget('certificates');
    const fields = { username, hash, state, problem };
    if (state === 'revocation_failed') deps.log.error('revocation.failed', fields);
    else deps.log.info(state === 'revoked' ? 'revocation.proven' : 'revocation.open', fields);
  }
  if (state === 'revoked') await forgetKey(deps, hash);
  return { ...before, state, checkedAt, problem, streams, provenAt: state === 'revoked' ? checkedAt : null };
}

/** One that cannot be removed now is found again by a job. */
async function forgetKey({ clientKeys, log }: RevocationDeps, hash: string): Promise<void> {
  try {
    await clientKeys.remove(hash);
  } catch (error) {
    log.warn('certificate.key_not_removed', { hash, reason: messageOf(error) });
  }
}

/**
 * Finds what was revoked past Holdfast, so that it is proven as well, and keys of revoked
 * certificates that were left behind.
 */
export type FindRevocationsDeps = RevocationDeps & { core: Pick<Core, 'revokedCertificates'> };

/**
 * Notes what has a date at the core and is not in the book; resolves with their number. Rejects as
 * the core does.
 */
export async function findRevocations(deps: FindRevocationsDeps): Promise<number> {
  const revoked = await deps.core.revokedCertificates();
  const now = deps.now();
  // The canary is proven by its own run.
  const inForce = revoked.filter((each) => !hasEnded(each, now) && !isSameUser(each.username, CANARY_ACCOUNT));
  const known = new Set(await deps.certificateStore.noted(inForce.map(({ hash }) => hash)));
  const found = inForce.filter(({ hash }) => !known.has(hash));
  await noteAsRevoking(deps, found, now.toISOString());
  for (const { username, hash } of found) deps.log.info('revocation.found', { username, hash });
  return found.length;
}

/**
 * Of revocations that were proven within a day; resolves with the number of keys that were removed.
 */
export async function removeLeftKeys({ certificateStore, clientKeys, now }: RevocationDeps): Promise<number> {
  const proven = await certificateStore.provenSince(new Date(now().getTime() - DAY_MS).toISOString());
  const left = proven.length === 0 ? [] : await clientKeys.kept(proven);
  for (const hash of left) await clientKeys.remove(hash);
  return left.length;
}
