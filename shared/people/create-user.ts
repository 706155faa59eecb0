// Creates a user with its expiry and channels, or nothing at all. It has no password until one is
// set.

import { AppError, invalid } from '@holdfast/kit/app-error';
import { audited, mayBeDone, type Progress } from '../audit/audited.ts';
import { mustBeAllowed, type PeopleContext, type PeopleDeps, userOf } from '../devices/accounts.ts';
import type { Account, GroupName } from '../identity/port.ts';
import { EXPIRES, passwordFault, readExpiry, usernameFault } from '../identity/rules.ts';
import { channelsNamed, joinedGroups } from './channel-membership.ts';

export interface NewUser {
  username: string;
  name: string;
  email?: string | undefined;
  /** With or without the prefix. */
  groups?: readonly string[] | undefined;
  /** ISO 8601 in the future. */
  expires_at?: string | null | undefined;
}

/** `invalid` for a forbidden name and an unknown group, `conflict` for a name that is taken. */
export async function createUser(context: PeopleContext, wanted: NewUser): Promise<Account> {
  const { deps, actor } = context;
  const { username, name, email = '' } = wanted;
  const { expires, channels } = await mustBeCreatable(context, wanted);
  const detail = { name, email, app_expires: expires, groups: channels.map((group) => group.name) };
  const attributes = expires === null ? {} : { [EXPIRES]: expires };
  const joined = await joinedGroups(deps, { kind: 'person', username, attributes }, channels);
  // What was signed for somebody of that name in former times is void.
  const auditedAction = { actor, action: 'user.create', target: username, detail, endsSignInsOf: username };
  return audited(deps, auditedAction, async (progress) => {
    const account = await made(deps, { username, name, email, attributes }, progress);
    await joinAll(deps, account, joined, progress);
    return (await deps.identity.accounts.get(account.id)) ?? account;
  });
}

/**
 * Throws what `createUser` would refuse, and changes nothing: for whoever has something else to
 * make before it.
 */
export async function mustBeCreatable(
  context: PeopleContext,
  { username, groups = [], expires_at: ends = null }: NewUser,
): Promise<{ expires: number | null; channels: GroupName[] }> {
  const { deps } = context;
  mustBeAllowed(context, undefined);
  const fault = usernameFault(username, deps.settings.USERS_HIDDEN_PREFIXES);
  if (fault !== undefined) throw invalid('username', fault);
  const expires = expiryOf(deps, ends);
  const channels = await channelsNamed(deps, groups);
  if ((await deps.identity.accounts.named(username)) !== undefined) throw taken(username);
  return { expires, channels };
}

function expiryOf({ now }: PeopleDeps, text: string | null): number | null {
  if (text === null) return null;
  const read = readExpiry(text, now());
  if ('fault' in read) throw invalid('expires_at', read.fault);
  return read.seconds;
}

function taken(username: string): AppError {
  return new AppError(
    'conflict',
    `Username ${username} is already taken. Names ignore case; the account may be deactivated or hidden. Choose another.`,
  );
}

/** A job looks, and makes the account whole, but makes none. */
const MAYBE_THERE =
  'The account may still have been created. Check before you try again. If it exists, it gets all of its groups within minutes once the provider answers; the audit log shows the result.';

type Wanted = Parameters<PeopleDeps['identity']['accounts']['create']>[0];

async function made({ identity }: PeopleDeps, wanted: Wanted, progress: Progress): Promise<Account> {
  try {
    return await identity.accounts.create(wanted);
  } catch (error) {
    if (mayBeDone(error)) progress.begun(MAYBE_THERE);
    throw error;
  }
}

/**
 * When one channel cannot be joined, the account goes again; when that fails too, a job finishes
 * what was begun.
 */
async function joinAll(
  { identity }: PeopleDeps,
  { id }: Account,
  channels: readonly GroupName[],
  progress: Progress,
): Promise<void> {
  try {
    for (const channel of channels) await identity.groups.addMember(channel.id, id);
  } catch (error) {
    try {
      await identity.accounts.delete(id);
    } catch {
      progress.begun(MAYBE_THERE);
      throw error;
    }
    if (!(error instanceof AppError)) throw error;
    if (error.code === 'not_found') throw invalid('groups', 'one of them was just deleted; nothing was created');
    throw new AppError(error.code, `${error.message.replace(/\.$/, '')}. Nothing was created.`, { cause: error });
  }
}

/** 2^5 of them, so that each is as likely as any other. */
const CHARACTERS = 'abcdefghijkmnpqrstuvwxyz23456789';
const GROUPS = 4;
const PER_GROUP = 5;

/**
 * To be read aloud or typed from a screen: no characters that look alike, in groups of five. A
 * hundred random bits.
 */
export function makePassword(): string {
  const random = crypto.getRandomValues(new Uint8Array(GROUPS * PER_GROUP));
  const text = Array.from(random, (byte) => CHARACTERS[byte % CHARACTERS.length] ?? '').join('');
  return (text.match(/.{5}/g) ?? []).join('-');
}

/** Sets the password of a user; whatever was signed for the person before ends with it. */
export interface NewPassword {
  id: number;
  password: string;
  /** Also of a hidden account: for somebody's own. */
  withHidden?: boolean;
}

/**
 * `invalid` for a password that breaks a rule, of ours or of the provider; it is quoted nowhere.
 */
export async function setUserPassword(
  context: PeopleContext,
  { id, password, withHidden }: NewPassword,
): Promise<void> {
  const { deps, actor } = context;
  const account = await userOf(deps, id, { withHidden: withHidden === true });
  mustBeAllowed(context, account);
  mustFit(account, password);
  const { username } = account;
  const auditedAction = { actor, action: 'user.password', target: username, detail: { id }, endsSignInsOf: username };
  await deps.peopleLock(`password:${id}`, async () => {
    await context.mustStillBeIn?.();
    await audited(deps, auditedAction, () => deps.identity.accounts.setPassword(id, password));
  });
}

function mustFit({ username }: Account, password: string): void {
  const fault = passwordFault(password, username);
  if (fault !== undefined) throw invalid('password', fault);
}
