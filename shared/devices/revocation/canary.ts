// Runs the canary: a disposable certificate that is enrolled, accepted, revoked, and must then be
// refused everywhere. It shows that the core signs certificates, and that revocation works.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import { CANARY_ACCOUNT, isSameUser } from '@holdfast/kit/names';
import { DAY_MS } from '@holdfast/kit/time';
import { audited } from '../../audit/audited.ts';
import type { Audit } from '../../audit/port.ts';
import type { ClientKeys, CoreDevices, CoreEnrollment, Met } from '../../core/devices/port.ts';
import type { Account, Identity } from '../../identity/port.ts';
import { enrollAccount } from '../enroll-account.ts';
import type { CanaryRun, RevocationDeps } from '../port.ts';
import { hasEnded } from '../rules.ts';
import { isOfAnotherCore } from './proof.ts';
import { BY_ITSELF, revokeAtCore } from './prove.ts';

export interface CanaryDeps extends RevocationDeps {
  identity: Pick<Identity, 'appPasswords'> & { accounts: Pick<Identity['accounts'], 'named'> };
  coreEnrollment: Pick<CoreEnrollment, 'enroll'>;
  coreDevices: Pick<CoreDevices, 'connect' | 'roles' | 'close' | 'answers'>;
  clientKeys: Pick<ClientKeys, 'kept' | 'remove' | 'keep'>;
  audit: Pick<Audit, 'intend' | 'conclude' | 'list'>;
  /** Of this process. */
  startedAt: Date;
}

/**
 * How long a core may take until a revoked certificate is refused, and how often that is looked at.
 */
export interface CanaryPace {
  withinMs: number;
  pauseMs: number;
}

const PACE: CanaryPace = { withinMs: 10_000, pauseMs: 500 };
const AFTER_FAILURE_MS = 60_000;
const START_MS = 5_000;
const CONNECT_TRIES = 4;
const CONNECT_PAUSES = 10;
/** After one that said nothing. */
const AFTER_TRY_MS = 30_000;

export type CanaryOutcome = 'passed' | 'failed' | 'not tried' | 'not due';

/**
 * True when one is due and the core can be asked: asked every few seconds, so the core itself only
 * once a minute.
 */
export async function isCanaryWanted(deps: CanaryDeps): Promise<boolean> {
  if (hasJustStarted(deps)) return false;
  const last = await deps.certificateStore.lastCanary();
  const beginsMinute = deps.now().getUTCSeconds() < 5;
  if (!isDue(deps, last) && !beginsMinute) return false;
  const began = await coreStart(deps);
  if (began === undefined || !(isDue(deps, last) || (last !== undefined && isOfAnotherCore(last, began)))) return false;
  return !(await wasTriedJustNow(deps));
}

/** Runs one when it is due. Rejects when our own database is away. */
export async function runCanaryIfDue(deps: CanaryDeps, pace: CanaryPace = PACE): Promise<CanaryOutcome> {
  const last = await deps.certificateStore.lastCanary();
  const began = await coreStart(deps);
  if (began === undefined) return isDue(deps, last) ? 'not tried' : 'not due';
  if (last !== undefined && !isDue(deps, last) && !isOfAnotherCore(last, began)) return 'not due';
  if (await wasTriedJustNow(deps)) return 'not tried';
  return runCanary(deps, began, pace);
}

/** People wait for a start, which has enough to do. */
function hasJustStarted({ now, startedAt }: Pick<CanaryDeps, 'now' | 'startedAt'>): boolean {
  const age = now().getTime() - startedAt.getTime();
  return age >= 0 && age < START_MS;
}

/**
 * None since this process began (and with it, since its configuration changed), none for a day, or
 * one that failed.
 */
function isDue({ now, startedAt }: Pick<CanaryDeps, 'now' | 'startedAt'>, last: CanaryRun | undefined): boolean {
  if (last === undefined) return true;
  const at = Date.parse(last.at);
  const age = now().getTime() - at;
  return at < startedAt.getTime() || age >= (last.ok ? DAY_MS : AFTER_FAILURE_MS);
}

/** Undefined while the core cannot be asked. */
async function coreStart({ core }: CanaryDeps): Promise<string | null | undefined> {
  try {
    return (await core.status()).startedAt;
  } catch {
    return undefined;
  }
}

/** What says nothing is not to fill the audit log, though it is tried again and again. */
async function wasTriedJustNow({ audit, now }: CanaryDeps): Promise<boolean> {
  const { results } = await audit.list({ action: 'canary.run' }, 0, 1);
  const [newest] = results;
  return newest?.result === 'unknown' && now().getTime() - Date.parse(newest.at) < AFTER_TRY_MS;
}

/**
 * Whatever was seen is recorded; what could not be tried, because something is away or missing,
 * says nothing and is not.
 */
async function runCanary(deps: CanaryDeps, coreStartedAt: string | null, pace: CanaryPace): Promise<CanaryOutcome> {
  const seen = await seenBy(deps, pace);
  if (seen === undefined) return 'not tried';
  const { problem, signed } = seen;
  const ok = problem === null;
  await deps.certificateStore.recordCanary({ at: deps.now().toISOString(), ok, signed, problem, coreStartedAt });
  await deps.health.forget('certificates');
  if (ok) return 'passed';
  deps.log.error('canary.failed', { problem, signed });
  return 'failed';
}

/** Undefined when nothing was. */
async function seenBy(
  deps: CanaryDeps,
  pace: CanaryPace,
): Promise<{ problem: string | null; signed: boolean } | undefined> {
  try {
    const account = await deps.identity.accounts.named(CANARY_ACCOUNT);
    if (account === undefined) throw new AppError('unavailable', NO_ACCOUNT);
    await audited(deps, { actor: BY_ITSELF, action: 'canary.run', target: CANARY_ACCOUNT }, async () => {
      const problem = await triedCanary(deps, account, pace);
      if (problem !== undefined) throw new CanaryFailed('conflict', problem);
    });
    return { problem: null, signed: true };
  } catch (error) {
    if (error instanceof CanaryFailed) return { problem: error.message, signed: !(error instanceof NotSigned) };
    if (!(error instanceof AppError)) throw error;
    deps.log.warn('canary.not_tried', { reason: error.message });
    return undefined;
  }
}

const NO_ACCOUNT = `The account ${CANARY_ACCOUNT} does not exist. Restart the stack to create it.`;

/** What the canary itself has seen; every other failure says nothing of revocation. */
class CanaryFailed extends AppError {}

/** The core answered and did not sign. */
class NotSigned extends CanaryFailed {}

/**
 * Rejects with `unavailable` when it cannot be said: whatever a call fails with, the outcome is
 * unknown.
 */
async function triedCanary(deps: CanaryDeps, account: Account, pace: CanaryPace): Promise<string | undefined> {
  try {
    return await tryCanary(deps, account, pace);
  } catch (error) {
    if (!(error instanceof AppError) || error instanceof NotSigned) throw error;
    throw new AppError('unavailable', error.message, { cause: error });
  }
}

/** Undefined when all is as it must be. Rejects when it cannot be said. */
async function tryCanary(deps: CanaryDeps, account: Account, pace: CanaryPace): Promise<string | undefined> {
  await clearUnavailable(deps);
  const { hash, serial, keyPem, certificatePem, chainPem } = await enrollAccount(
    { ...deps, coreEnrollment: signingSeen(deps) },
    account,
    CANARY_ACCOUNT,
  );
  try {
    await deps.clientKeys.keep(hash, { keyPem, certificatePem, chainPem });
    const met = await connected(deps, hash, pace);
    if ('refused' in met) return `The stream refused the canary before it was revoked: ${met.refused}`;
    try {
      if ((await deps.coreDevices.roles(hash)) === undefined)
        return 'The API of the core refused the canary before it was revoked.';
      const kept = await notRevoked(deps, hash);
      if (kept !== undefined) return kept;
      return await untilRefused(checksOf(deps, { hash, serial, connection: met.connection }), pace);
    } finally {
      await leave(deps, () => deps.coreDevices.close(met.connection));
    }
  } finally {
    await leave(deps, () => clearUnavailable(deps));
  }
}

/**
 * A core that answers wrongly cannot sign; one that does not answer, or refuses the one-off
 * password, says nothing of it.
 */
function signingSeen({ coreEnrollment }: CanaryDeps): Pick<CoreEnrollment, 'enroll'> {
  return {
    async enroll(order) {
      try {
        return await coreEnrollment.enroll(order);
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'upstream') throw error;
        throw new NotSigned('upstream', error.message, { cause: error });
      }
    },
  };
}

/** A core that has just started may say nothing for a while. */
async function connected({ coreDevices }: CanaryDeps, hash: string, { pauseMs }: CanaryPace): Promise<Met> {
  for (let tried = 1; ; tried += 1) {
    const met = await coreDevices.connect(hash);
    if (!('refused' in met) || tried === CONNECT_TRIES) return met;
    await new Promise((over) => setTimeout(over, pauseMs * CONNECT_PAUSES));
  }
}

/**
 * Why it stays in force at a core that answers; undefined when it is revoked. Rejects when nothing
 * was seen.
 */
async function notRevoked(deps: CanaryDeps, hash: string): Promise<string | undefined> {
  try {
    await revokeAtCore(deps, hash);
    return undefined;
  } catch (error) {
    const isUnavailable = error instanceof AppError && error.code === 'unavailable';
    if (isUnavailable || (await deps.core.certificate(hash))?.revokedAt !== null) throw error;
    return `The core did not revoke the canary: ${messageOf(error)}`;
  }
}

/** What is left of this run or of one that a crash ended: certificates in force, and keys. */
async function clearUnavailable(deps: CanaryDeps): Promise<void> {
  const certificates = await deps.core.certificates(CANARY_ACCOUNT);
  const own = certificates.filter(({ username }) => isSameUser(username, CANARY_ACCOUNT));
  for (const certificate of own)
    if (certificate.revokedAt === null && !hasEnded(certificate, deps.now()))
      await revokeAtCore(deps, certificate.hash);
  for (const hash of await deps.clientKeys.kept(own.map((each) => each.hash))) await deps.clientKeys.remove(hash);
}

/** What was seen counts, not whether it could be tidied up: the next run does that. */
async function leave({ log }: CanaryDeps, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    log.warn('canary.left_behind', { reason: messageOf(error) });
  }
}

interface Check {
  /** What is wrong as long as it does not hold. */
  says: string;
  holds: () => Promise<boolean>;
}

interface Revoked {
  hash: string;
  serial: string;
  connection: string;
}

function checksOf({ coreDevices, coreAuthority }: CanaryDeps, { hash, serial, connection }: Revoked): Check[] {
  return [
    { says: 'its open connection still answers', holds: async () => !(await coreDevices.answers(connection)) },
    {
      says: 'the stream accepts a new connection with it',
      async holds() {
        const met = await coreDevices.connect(hash);
        if ('connection' in met) await coreDevices.close(met.connection);
        return 'refused' in met;
      },
    },
    { says: 'the API of the core accepts it', holds: async () => (await coreDevices.roles(hash)) === undefined },
    {
      says: 'its serial number is not in the revocation list of the CA',
      async holds() {
        const list = await coreAuthority.revocationList().catch(() => undefined);
        return list?.ours === true && list.serials.includes(serial);
      },
    },
  ];
}

/** Each must hold once within the time. */
async function untilRefused(checks: readonly Check[], { withinMs, pauseMs }: CanaryPace): Promise<string | undefined> {
  const until = performance.now() + withinMs;
  for (let open = checks; ;) {
    const looks = await Promise.all(open.map(async (check) => ({ check, ...(await look(check)) })));
    const missing = looks.filter(({ held }) => !held);
    open = missing.map(({ check }) => check);
    if (open.length === 0) return undefined;
    if (performance.now() >= until) return reportOf(missing, withinMs);
    await new Promise((over) => setTimeout(over, pauseMs));
  }
}

type Look = { held: boolean; failure?: unknown };

async function look({ holds }: Check): Promise<Look> {
  try {
    return { held: await holds() };
  } catch (failure) {
    return { held: false, failure };
  }
}

/** What was seen; rejects when nothing was, because a port was away. */
function reportOf(missing: readonly (Look & { check: Check })[], withinMs: number): string {
  const seen = missing.filter(({ failure }) => failure === undefined);
  if (seen.length === 0) throw missing[0]?.failure;
  const what = seen.map(({ check }) => check.says).join(', ');
  return `${withinMs / 1000} s after a disposable certificate was revoked, ${what}.`;
}
