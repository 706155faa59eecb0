// Finishes what a process had begun with a service account when it died: one that has its
// certificate is completed, one whose key nobody has is taken away again, and one that was being
// deleted is.

import { z } from 'zod';
import { nameKey, SERVICE_KINDS } from '@holdfast/kit/names';
import { concluding, type InterruptedWork } from '../../audit/interrupted-work.ts';
import type { Conclusion, OpenIntent } from '../../audit/port.ts';
import { channelsOf } from '../../devices/accounts.ts';
import { finishIssue } from '../../devices/certificates/finish.ts';
import { certificatesOf } from '../../devices/certificates/of-user.ts';
import type { Account } from '../../identity/port.ts';
import { channelsThatExist, replaceChannels } from '../channel-membership.ts';
import { withMissing } from '../finish.ts';
import { giveAdminRight } from './admin-right.ts';
import { takeBack } from './create.ts';
import { endServiceAccount, oneAtATime, type ServiceAccountDeps, theOne } from './service-accounts.ts';

const AGAIN = { begun: () => undefined };
const CREATE = 'service_account.create';
const DELETE = 'service_account.delete';
const CERTIFICATE = 'service_account.certificate';

const createSchema = z.object({
  kind: z.enum(SERVICE_KINDS),
  groups: z.array(z.string()),
  keep: z.boolean(),
  former: z.int().nullable(),
});
const deleteSchema = z.object({ id: z.int() });

export const INTERRUPTED_SERVICE_ACCOUNTS: InterruptedWork<ServiceAccountDeps> = {
  actions: [CREATE, DELETE, CERTIFICATE],
  finish: concluding((deps, intent, detail) =>
    intent.action === CERTIFICATE
      ? // When nobody makes one: what is signed and not kept yet would look lost.
        oneAtATime(deps, intent.target, () => finishIssue(deps, intent, detail))
      : finishServiceAccount(deps, intent, detail),
  ),
};

async function finishServiceAccount(
  deps: ServiceAccountDeps,
  intent: OpenIntent,
  detail: unknown,
): Promise<Conclusion> {
  return oneAtATime(deps, intent.target, async () => {
    // What came later did the same to the end, or was let through because nothing of the former
    // account stood any more.
    if (intent.later.some(({ action }) => action === CREATE || action === DELETE))
      return { result: 'unknown', detail: { reason: 'it was created or deleted again before this could be finished' } };
    return intent.action === CREATE ? finishCreate(deps, intent, detail) : finishDelete(deps, intent, detail);
  });
}

async function finishCreate(deps: ServiceAccountDeps, { target }: OpenIntent, detail: unknown): Promise<Conclusion> {
  const { kind, groups, keep, former } = createSchema.parse(detail);
  const account = await deps.identity.accounts.named(target);
  if (account === undefined) return failed('not done: the account does not exist');
  if (!account.isActive) {
    await takeBack(deps, account, { kind, keep, isNew: former === null });
    return failed('the account was not active; nothing of it remains');
  }
  const hash = await keptCertificate(deps, account);
  // Where keys are not kept, the answer that never came had the only one.
  if (hash === undefined || !keep) {
    await takeBack(deps, account, { kind, keep, isNew: former === null });
    return failed('its key was never handed out, so the account was removed');
  }
  return complete(deps, account, { kind, groups, hash });
}

async function keptCertificate(deps: ServiceAccountDeps, account: Account): Promise<string | undefined> {
  const certificates = await certificatesOf(deps, [account]);
  const one = theOne(account.username, certificates.get(account.username) ?? []);
  return one?.downloadable === true ? one.fingerprint : undefined;
}

async function complete(
  deps: ServiceAccountDeps,
  account: Account,
  { kind, groups, hash }: { kind: string; groups: readonly string[]; hash: string },
): Promise<Conclusion> {
  const { found, missing } = await channelsThatExist(deps, groups);
  await replaceChannels(deps, account, [...channelsOf(account, deps), ...found], AGAIN);
  const key = kind === 'admin' ? await deps.clientKeys.read(hash) : undefined;
  if (key !== undefined)
    await giveAdminRight(deps, { username: account.username, hash, certificatePem: key.certificatePem });
  return withMissing(missing);
}

async function finishDelete(deps: ServiceAccountDeps, { target }: OpenIntent, detail: unknown): Promise<Conclusion> {
  const { id } = deleteSchema.parse(detail);
  const account = await deps.identity.accounts.get(id);
  if (account === undefined || nameKey(account.username) !== nameKey(target))
    return failed(`the account ${target} with the id ${id} no longer exists`);
  await endServiceAccount(deps, account, AGAIN);
  return { result: 'ok' };
}

function failed(error: string): Conclusion {
  return { result: 'failed', detail: { error } };
}
