// Makes a service account with its channels and its one certificate, or nothing at all. One that
// was deleted is brought back under its name, with a new certificate.

import { AppError, invalid } from '@holdfast/kit/app-error';
import type { Attributes } from '@holdfast/kit/json';
import {
  FEED_ACCOUNT,
  FEED_ACCOUNT_PREFIX,
  KIND,
  kindOf,
  nameKey,
  readServiceName,
  type ServiceKind,
} from '@holdfast/kit/names';
import { audited, type DeferrableProgress, mayBeDone, type Progress } from '../../audit/audited.ts';
import type { KeptKey } from '../../core/devices/port.ts';
import { mustBeAllowed, mustBeAllowedKind } from '../../devices/accounts.ts';
import { makeCertificate, recordedCertificate } from '../../devices/certificates/make.ts';
import { certificatesOf, showAll } from '../../devices/certificates/of-user.ts';
import type { MadeCertificate } from '../../devices/port.ts';
import type { Account, GroupName } from '../../identity/port.ts';
import { EXPIRES } from '../../identity/rules.ts';
import { channelsNamed, replaceChannels } from '../channel-membership.ts';
import { makeChange } from '../user-change.ts';
import { AdminRightPending, giveAdminRight } from './admin-right.ts';
import {
  mustNotBeOwn,
  oneAtATime,
  type ServiceAccountContext,
  type ServiceAccountDeps,
  type ServiceAccountView,
  toServiceAccountView,
} from './service-accounts.ts';

export interface NewServiceAccount {
  /** With or without the prefix. */
  name: string;
  kind: ServiceKind;
  /** With or without the prefix. */
  groups?: readonly string[] | undefined;
  /** What else the account says of itself. */
  attributes?: Attributes;
}

/**
 * `p12`: the only copy of the key, where keys are not kept; Base64. `admin_right`, of the kind
 * admin: `pending` while the core was asked for it and was not seen to give it; a job finishes
 * that.
 */
export type CreatedServiceAccount = ServiceAccountView & { p12?: string; admin_right?: 'given' | 'pending' };

/** Without a key nobody could look later: then the answer waits for longer. */
const RIGHT_WITHIN_MS = { keyKept: 8_000, keyForgotten: 25_000 } as const;

const AGAIN = { begun: () => undefined };
const TAKEN_BACK =
  'The account may still have been created. It is removed within minutes once every service answers; the audit log shows the result.';
const STANDS = 'The account and its certificate exist; the audit log shows the result.';
const RIGHT_WAITS =
  'The account and its certificate exist, but the admin right is still missing. Holdfast requests it every minute for a day; the audit log shows the result.';

interface Wanted {
  username: string;
  kind: ServiceKind;
  channels: readonly GroupName[];
  attributes: Attributes;
  former: Account | undefined;
  /** The key stays here for later downloads. */
  keep: boolean;
}

/** The key of what is made there stays, whatever the setting says. */
export function keepingKeys({ deps, actor }: ServiceAccountContext): ServiceAccountContext {
  return { deps: { ...deps, settings: { ...deps.settings, KEEP_CLIENT_KEYS: true } }, actor };
}

/** As `createServiceAccount`, for people: `invalid` also for the name of an account of a feed. */
export async function addServiceAccount(
  context: ServiceAccountContext,
  wanted: NewServiceAccount,
): Promise<CreatedServiceAccount> {
  const read = readServiceName(wanted.name);
  if ('username' in read && nameKey(read.username).startsWith(FEED_ACCOUNT_PREFIX))
    throw invalid(
      'name',
      `${read.username} begins with ${FEED_ACCOUNT_PREFIX}, which is kept for feeds; choose another name, or add a feed (PUT /api/feeds/{name})`,
    );
  return createServiceAccount(context, wanted);
}

/**
 * `invalid` for a forbidden name and an unknown group, `conflict` for a name that is taken,
 * `forbidden` as of the token.
 */
export async function createServiceAccount(
  context: ServiceAccountContext,
  { name, kind, groups = [], attributes = {} }: NewServiceAccount,
): Promise<CreatedServiceAccount> {
  const { deps, actor } = context;
  mustBeAllowedKind(context, kind);
  const read = readServiceName(name);
  if ('fault' in read) throw invalid('name', read.fault);
  mustNotBeOwn(read.username);
  const channels = await channelsNamed(deps, groups);
  return oneAtATime(deps, read.username, async () => {
    await context.mustStillBeIn?.();
    const former = await formerAccount(deps, read.username);
    if (former !== undefined) mustBeAllowedFormer(context, former);
    const username = former?.username ?? read.username;
    const keep = deps.settings.KEEP_CLIENT_KEYS;
    const detail = { kind, groups: channels.map((group) => group.name), keep, former: former?.id ?? null };
    return audited(deps, { actor, action: 'service_account.create', target: username, detail }, (progress) =>
      create(deps, { username, kind, channels, attributes, former, keep }, progress),
    );
  });
}

/**
 * A deactivated service account of that name; `conflict` when anybody else has it, or a certificate
 * of it still stands.
 */
async function formerAccount(deps: ServiceAccountDeps, username: string): Promise<Account | undefined> {
  const found = await deps.identity.accounts.named(username);
  if (found !== undefined && (found.isActive || found.kind !== 'service'))
    throw new AppError('conflict', `Username ${username} is already taken. Names ignore case. Choose another.`);
  const certificates = [...(await certificatesOf(deps, [found ?? { username, attributes: {} }])).values()].flat();
  const status = certificates.find(({ state }) => state === 'active');
  if (status === undefined) return found;
  throw new AppError(
    'conflict',
    `A certificate of a former ${username} is still valid (${status.file}). If the account was just deleted, try again in a minute. Otherwise revoke it: POST /api/ops/certs/${status.file}/revoke.`,
  );
}

/** Its roles come back with it, and whoever could not delete it must not have it. */
function mustBeAllowedFormer(context: ServiceAccountContext, former: Account): void {
  mustBeAllowed(context, former);
  mustBeAllowedKind(context, kindOf(former));
}

async function create(
  deps: ServiceAccountDeps,
  wanted: Wanted,
  progress: DeferrableProgress,
): Promise<CreatedServiceAccount> {
  const begun = wanted.former ?? (await newAccount(deps, wanted, progress));
  let certified: Certified | undefined;
  try {
    const account = await prepared(deps, begun, wanted);
    certified = await certify(deps, account, wanted);
    const right = wanted.kind === 'admin' ? { admin_right: await rightOf(deps, account, wanted, certified) } : {};
    const made = await answer(deps, account, wanted, certified);
    if (right.admin_right === 'pending') progress.leaveRest();
    return { ...made, ...right };
  } catch (error) {
    if (certified !== undefined && wanted.keep) {
      progress.begun(wanted.kind === 'admin' ? RIGHT_WAITS : STANDS);
      throw error;
    }
    return undone(deps, begun, wanted, { error, progress });
  }
}

async function newAccount(
  deps: ServiceAccountDeps,
  { username, kind, attributes }: Wanted,
  progress: Progress,
): Promise<Account> {
  try {
    return await deps.identity.accounts.create({
      username,
      name: username,
      kind: 'service',
      attributes: { ...attributes, [KIND]: kind },
    });
  } catch (error) {
    if (mayBeDone(error)) progress.begun(TAKEN_BACK);
    throw error;
  }
}

/** Of the right kind, in exactly these channels, active. */
async function prepared(
  deps: ServiceAccountDeps,
  account: Account,
  { kind, channels, attributes, former }: Wanted,
): Promise<Account> {
  const { accounts } = deps.identity;
  // Unless it is brought back for a feed, it is no feed's any more.
  const own = { [FEED_ACCOUNT]: null, ...attributes, [KIND]: kind, [EXPIRES]: null };
  if (former !== undefined) await accounts.changeAttributes(account.id, own);
  await replaceChannels(deps, account, channels, AGAIN);
  if (former !== undefined) await accounts.change(account.id, { isActive: true });
  return (await accounts.get(account.id)) ?? account;
}

interface Certified {
  made: MadeCertificate;
  key: KeptKey;
}

/**
 * To see that the right is given needs a key that is kept: where keys are not, it goes again
 * afterwards.
 */
async function certify(deps: ServiceAccountDeps, account: Account, { kind, keep }: Wanted): Promise<Certified> {
  const { username } = account;
  return makeCertificate(deps, account, { name: '', clientUid: username, keep: keep || kind === 'admin' });
}

async function rightOf(
  deps: ServiceAccountDeps,
  { username }: Account,
  { keep }: Wanted,
  { made: { hash }, key: { certificatePem } }: Certified,
): Promise<'given' | 'pending'> {
  const withinMs = keep ? RIGHT_WITHIN_MS.keyKept : RIGHT_WITHIN_MS.keyForgotten;
  try {
    await giveAdminRight(deps, { username, hash, certificatePem }, withinMs);
    return 'given';
  } catch (error) {
    if (keep && error instanceof AdminRightPending) return 'pending';
    throw error;
  }
}

async function answer(
  deps: ServiceAccountDeps,
  account: Account,
  { keep }: Wanted,
  { made, key }: Certified,
): Promise<CreatedServiceAccount> {
  const { username } = account;
  const { hash } = made;
  const p12 = keep ? undefined : await deps.bundles.withKey(key, { friendlyName: username });
  if (!keep) await deps.clientKeys.remove(hash);
  const known = { made: [made], revocations: [], expiries: new Map([[nameKey(username), null]]) };
  const certificates = await showAll(deps, [await recordedCertificate(deps, made)], known);
  return { ...toServiceAccountView(deps, account, certificates), ...(p12 === undefined ? {} : { p12 }) };
}

/** Nobody has got the key: what there is of it goes. When that fails too, a job does it. */
async function undone(
  deps: ServiceAccountDeps,
  account: Account,
  { former, kind, keep }: Wanted,
  { error, progress }: { error: unknown; progress: Progress },
): Promise<never> {
  try {
    await takeBack(deps, account, { kind, keep, isNew: former === undefined });
  } catch {
    progress.begun(TAKEN_BACK);
    throw error;
  }
  if (!(error instanceof AppError)) throw error;
  if (error.code === 'not_found') throw invalid('groups', 'one of them was just deleted; nothing was created');
  throw new AppError(error.code, `${error.message.replace(/\.$/, '')}. Nothing was created.`, { cause: error });
}

/**
 * Deactivates the account, so that everything that was enrolled under its name is revoked; a new
 * one is deleted.
 */
export async function takeBack(
  deps: ServiceAccountDeps,
  account: Account,
  { kind, keep, isNew }: { kind: ServiceKind; keep: boolean; isNew: boolean },
): Promise<void> {
  const { username, id } = account;
  await makeChange(deps, account, { is_active: false }, AGAIN);
  if (kind === 'admin') await deps.adminGrants.take(username);
  if (!keep) for (const { hash } of await deps.certificateStore.made([username])) await deps.clientKeys.remove(hash);
  if (isNew) await deps.identity.accounts.delete(id);
}
