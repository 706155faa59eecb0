// Finishes a change to a person after its process died: repeats all of its steps from the audit
// log.

import { z } from 'zod';
import { AppError } from '@holdfast/kit/app-error';
import { nameKey } from '@holdfast/kit/names';
import { concluding, type Finish, type InterruptedWork, readDetail, UNREGISTERED } from '../audit/interrupted-work.ts';
import type { Conclusion, OpenIntent } from '../audit/port.ts';
import { channelsOf, type PeopleDeps } from '../devices/accounts.ts';
import type { Account } from '../identity/port.ts';
import { ROLES } from '../sign-in/rules.ts';
import { channelsThatExist, replaceChannels } from './channel-membership.ts';
import {
  amongAdministrators,
  concernsAdministrators,
  makeChange,
  mustKeepAdministrators,
  type UserChange,
} from './user-change.ts';

const AGAIN = { begun: () => undefined };

const changeSchema = z.object({
  id: z.int(),
  change: z.object({
    name: z.string().optional(),
    email: z.string().optional(),
    is_active: z.boolean().optional(),
    app_expires: z.number().nullable().optional(),
    role: z.enum(ROLES).optional(),
  }),
});
const groupsSchema = z.object({ id: z.int(), groups: z.array(z.string()) });
const createSchema = z.object({ groups: z.array(z.string()) });

const FINISHES: Record<string, Finish<PeopleDeps>> = {
  'user.create': concluding(finishCreate),
  'user.groups': concluding(finishGroups),
  'user.update': concluding(finishChange),
  'user.deactivate': concluding(finishChange),
  'user.expire': concluding(finishChange),
};
/** What ends the sign-ins of a person always; a change may do so too. */
const ENDS_SIGN_INS = new Set(['user.create', 'user.deactivate', 'user.expire', 'user.password']);
const SETS_CHANNELS = new Set(['user.create', 'user.groups']);

export const INTERRUPTED_PEOPLE: InterruptedWork<PeopleDeps> = {
  actions: ['user.'],
  finish: async (deps, intent, detail) => {
    const conclusion = await finishUser(deps, intent, detail);
    const endsSignIns = ENDS_SIGN_INS.has(intent.action) || takesRights(detail);
    return endsSignIns && conclusion !== 'open' ? { ...conclusion, endsSignInsOf: intent.target } : conclusion;
  },
  finished: async (deps, { target }) => deps.authenticator.forget(target),
};

async function finishUser(deps: PeopleDeps, intent: OpenIntent, detail: unknown): Promise<Conclusion | 'open'> {
  const finish = FINISHES[intent.action];
  if (finish === undefined) return UNREGISTERED;
  const { left, overtaken } = leftOf(intent, detail);
  if (overtaken.includes('is_active')) await finishDeactivation(deps, detail);
  if (left === undefined)
    return {
      result: 'unknown',
      detail: { reason: 'a later change replaced it before it could be finished' },
    };
  const conclusion = await finish(deps, intent, left);
  if (overtaken.length === 0 || conclusion === 'open') return conclusion;
  return { ...conclusion, detail: { ...conclusion.detail, overtaken } };
}

/**
 * What later intents have left of this one, and which members of a change they have named again:
 * nobody undoes what somebody did later, but what nobody has touched since is still to be done.
 */
function leftOf({ action, later }: OpenIntent, detail: unknown): { left: unknown; overtaken: string[] } {
  if (SETS_CHANNELS.has(action)) {
    const isOvertaken = later.some((each) => SETS_CHANNELS.has(each.action));
    return { left: isOvertaken ? undefined : detail, overtaken: [] };
  }
  const read = changeSchema.safeParse(detail);
  if (!read.success) return { left: detail, overtaken: [] };
  const named = new Set(later.flatMap((each) => Object.keys(changeOf(readDetail(each)) ?? {})));
  const members = Object.entries(read.data.change);
  const open = members.filter(([member]) => !named.has(member));
  const overtaken = members.map(([member]) => member).filter((member) => named.has(member));
  if (open.length === 0 && overtaken.length > 0) return { left: undefined, overtaken };
  return { left: { ...read.data, change: Object.fromEntries(open) }, overtaken };
}

function changeOf(detail: unknown): UserChange | undefined {
  return changeSchema.safeParse(detail).data?.change;
}

/** Afterwards nobody can tell whether a role was lost: the person signs in again. */
function takesRights(detail: unknown): boolean {
  const change = changeOf(detail);
  return change?.is_active === false || change?.role !== undefined;
}

async function finishCreate(deps: PeopleDeps, { target }: OpenIntent, detail: unknown): Promise<Conclusion> {
  const { groups } = createSchema.parse(detail);
  const account = await deps.identity.accounts.named(target);
  if (account === undefined) return { result: 'failed', detail: { error: 'not done: the account does not exist' } };
  const { found, missing } = await channelsThatExist(deps, groups);
  // What somebody has given the person meanwhile stays.
  await replaceChannels(deps, account, [...channelsOf(account, deps), ...found], AGAIN);
  return withMissing(missing);
}

async function finishGroups(deps: PeopleDeps, intent: OpenIntent, detail: unknown): Promise<Conclusion> {
  const { id, groups } = groupsSchema.parse(detail);
  return deps.peopleLock(`channels:${id}`, async () => {
    const account = await accountOf(deps, intent, id);
    const { found, missing } = await channelsThatExist(deps, groups);
    await replaceChannels(deps, account, found, AGAIN);
    return withMissing(missing);
  });
}

export function withMissing(missing: readonly string[]): Conclusion {
  return { result: 'ok', ...(missing.length === 0 ? {} : { detail: { groups_that_are_gone: [...missing] } }) };
}

async function finishChange(deps: PeopleDeps, intent: OpenIntent, detail: unknown): Promise<Conclusion> {
  const { id, change } = changeSchema.parse(detail);
  const account = await accountOf(deps, intent, id);
  if (concernsAdministrators(account, change, deps)) {
    await amongAdministrators(deps, async () => {
      const now = await accountOf(deps, intent, id);
      await mustKeepAdministrators(deps, now, change);
      await makeChange(deps, now, change, AGAIN);
    });
  } else await makeChange(deps, account, change, AGAIN);
  return { result: 'ok' };
}

/** Whoever was deactivated and is not active again must keep no way in, whatever came later. */
async function finishDeactivation(deps: PeopleDeps, detail: unknown): Promise<void> {
  const read = changeSchema.safeParse(detail);
  if (!read.success || read.data.change.is_active !== false) return;
  const account = await deps.identity.accounts.get(read.data.id);
  if (account?.isActive === false) await makeChange(deps, account, { is_active: false }, AGAIN);
}

export async function accountOf(
  { identity }: Pick<PeopleDeps, 'identity'>,
  { target }: Pick<OpenIntent, 'target'>,
  id: number,
): Promise<Account> {
  const account = await identity.accounts.get(id);
  if (account !== undefined && nameKey(account.username) === nameKey(target)) return account;
  throw new AppError('not_found', `The account ${target} with the id ${id} no longer exists`);
}
