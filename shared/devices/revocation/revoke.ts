// Revokes one certificate while the caller waits: it is recorded, then revoked at the core, then
// proven as far as possible at once. A job continues the rest.

import { AppError, messageOf } from '@holdfast/kit/app-error';
import { isOwnServiceAccount, kindOf } from '@holdfast/kit/names';
import { audited } from '../../audit/audited.ts';
import type { CoreCertificate } from '../../core/port.ts';
import { mustBeAllowed, mustBeAllowedKind, type PeopleContext } from '../accounts.ts';
import type { Judgement, Revocation, RevocationDeps } from '../port.ts';
import { isOwnCertificate } from '../rules.ts';
import { noteAsRevoking, notRevoked, proveRevocations, revocationDetail, revokeAtCore, settleOne } from './prove.ts';

/**
 * Resolves with the revocation as it stands: a core that is away leaves it `revoking`. `conflict`
 * for the certificate that Holdfast itself uses; `unavailable` when it could not even be noted.
 */
export async function revokeCertificate(context: PeopleContext, certificate: CoreCertificate): Promise<Revocation> {
  const { deps, actor } = context;
  const { hash, username } = certificate;
  mustNotBeOwn(certificate);
  await mustBeAllowedFor(context, username);
  const known = await revocationOf(deps, certificate);
  if (known?.state === 'revoked') return known;
  let noted: Revocation | undefined;
  let failure: Judgement | undefined;
  const detail = await revocationDetail(deps, certificate);
  try {
    await audited(deps, { actor, action: 'certificate.revoke', target: username, detail }, async () => {
      await noteAsRevoking(deps, [certificate], deps.now().toISOString());
      noted = await revocationOf(deps, certificate);
      await revokeAtCore(deps, hash);
    });
  } catch (error) {
    if (noted === undefined) throw error;
    failure = failureOf(error);
  }
  if (noted === undefined) throw new AppError('internal', `The revocation of certificate ${hash} was not recorded`);
  return carryOn(deps, noted, failure);
}

async function revocationOf(
  { certificateStore }: RevocationDeps,
  { hash, username }: CoreCertificate,
): Promise<Revocation | undefined> {
  return (await certificateStore.revocations([username])).find((each) => each.hash === hash);
}

function mustNotBeOwn(certificate: CoreCertificate): void {
  if (!isOwnCertificate(certificate)) return;
  throw new AppError(
    'conflict',
    `Holdfast itself uses the certificate of ${certificate.username} and needs it to revoke others. Remedy: replace it at the core, as docs/certificates.md explains.`,
  );
}

/**
 * The provider is asked only where its answer matters: it may be away when a certificate must be
 * revoked.
 */
async function mustBeAllowedFor(context: PeopleContext, username: string): Promise<void> {
  const { by } = context.principal ?? {};
  if (by?.kind !== 'token' || by.scope !== 'users') return;
  const owner = await context.deps.identity.accounts.named(username);
  mustBeAllowed(context, owner);
  if (owner?.kind === 'service') mustBeAllowedKind(context, kindOf(owner));
  if (!isOwnServiceAccount(username)) return;
  throw new AppError(
    'forbidden',
    `${username} is one of Holdfast's own accounts, and this token has the scope users. Use a token of the scope admin.`,
  );
}

/** One that is gone from the core's table is for the proof to judge. */
function failureOf(error: unknown): Judgement | undefined {
  return error instanceof AppError && error.code === 'not_found' ? undefined : notRevoked(error);
}

/** It is noted: from here on nothing is an error for whoever asked. */
async function carryOn(deps: RevocationDeps, noted: Revocation, failure: Judgement | undefined): Promise<Revocation> {
  try {
    if (failure !== undefined) return await settleOne(deps, noted, failure);
    const [proven = noted] = await proveRevocations(deps, [noted]);
    return proven;
  } catch (error) {
    deps.log.warn('revocation.left_to_job', { hash: noted.hash, reason: messageOf(error) });
    return noted;
  }
}
