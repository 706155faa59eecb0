// Finishes certificate work after its process died. Recorded work continues; a certificate without
// a stored key is revoked.

import { z } from 'zod';
import { isSameUser } from '@holdfast/kit/names';
import { concluding, type Finish, type InterruptedWork } from '../../audit/interrupted-work.ts';
import type { Conclusion, OpenIntent } from '../../audit/port.ts';
import type { CoreCertificate } from '../../core/port.ts';
import type { RevocationDeps } from '../port.ts';
import { noteAsRevoking } from '../revocation/prove.ts';
import { isOwnCertificate } from '../rules.ts';

const revokeSchema = z.object({ hash: z.string() });
const issueSchema = z.object({ username: z.string(), client_uid: z.string() });

/** At most so much the clocks of Holdfast and of the core may differ. */
const CLOCKS_DIFFER_MS = 60_000;

const FINISHES: Record<string, Finish<RevocationDeps>> = {
  'certificate.revoke': finishRevoke,
  'certificate.issue': finishIssue,
  'canary.run': async () => failed('not finished; the next canary revokes its certificate'),
};

export const INTERRUPTED_CERTIFICATES: InterruptedWork<RevocationDeps> = {
  actions: Object.keys(FINISHES),
  finish: concluding(async (deps, intent, detail) => FINISHES[intent.action]?.(deps, intent, detail) ?? 'open'),
};

function failed(error: string): Conclusion {
  return { result: 'failed', detail: { error } };
}

async function finishRevoke(deps: RevocationDeps, { target }: OpenIntent, detail: unknown): Promise<Conclusion> {
  const { hash } = revokeSchema.parse(detail);
  const noted = (await deps.certificateStore.revocations([target])).find((each) => each.hash === hash);
  if (noted !== undefined) return { result: 'ok', detail: { state: noted.state } };
  const made = (await deps.certificateStore.made([target])).find((each) => each.hash === hash);
  const certificate = made ?? (await deps.core.certificate(hash));
  if (certificate === undefined) return failed('not done: the core has no such certificate');
  if (!isSameUser(certificate.username, target) || isOwnCertificate(certificate))
    return failed(`not done: it isn't a certificate of ${target} that can be revoked`);
  await noteAsRevoking(deps, [certificate], deps.now().toISOString());
  return { result: 'ok', detail: { state: 'revoking' } };
}

/** Of whatever names `username` and `client_uid` in its detail. */
export async function finishIssue(deps: RevocationDeps, intent: OpenIntent, detail: unknown): Promise<Conclusion> {
  const { username, client_uid: clientUid } = issueSchema.parse(detail);
  const since = Date.parse(intent.at) - CLOCKS_DIFFER_MS;
  const isOfIntent = (each: Pick<CoreCertificate, 'username' | 'clientUid' | 'issuedAt'>): boolean =>
    isSameUser(each.username, username) && each.clientUid === clientUid && Date.parse(each.issuedAt) >= since;
  const issued = (await deps.core.certificates()).filter(isOfIntent);
  const made = await deps.certificateStore.made([username]);
  const known = new Set(made.map(({ hash }) => hash));
  const lost = issued.filter((each) => !known.has(each.hash) && !isOwnCertificate(each));
  await noteAsRevoking(deps, lost, deps.now().toISOString());
  if (lost.length > 0) return failed('not finished; the certificate is being revoked');
  return made.some(isOfIntent) ? { result: 'ok' } : failed('not done: no certificate was issued');
}
