// Finishes what a process had begun with a person when it died: does all of its steps again, from what the audit log says
// was to be done, and writes the outcome that is missing.

import { z } from 'zod';
import { AppError, messageOf } from '@holdfast/kit/app-error';
import { nameKey } from '@holdfast/kit/names';
import { DAY_MS } from '@holdfast/kit/time';
import { mayBeDone } from '../shared/audit/audited.ts';
import type { AuditResult, Conclusion, OpenIntent } from '../shared/audit/port.ts';
import { channelsOf, type PeopleDeps } from '../shared/devices/accounts.ts';
import { CERTIFICATE_FINISHES, finishIssue } from '../shared/devices/certificates/finish.ts';
import { finishEnrollment } from '../shared/devices/enrollment/withdraw.ts';
import type { Account } from '../shared/identity/port.ts';
import { channelsThatExist, replaceChannels } from '../shared/people/channel-membership.ts';
import { finishServiceAccount } from '../shared/people/service-accounts/finish.ts';
import { oneAtATime, type ServiceAccountDeps } from '../shared/people/service-accounts/service-accounts.ts';
import {
  amongAdministrators,
  concernsAdministrators,
  makeChange,
  mustKeepAdministrators,
  type UserChange,
} from '../shared/people/user-change.ts';
import { finishRetention, type FinishRetentionDeps } from '../shared/retention/finish.ts';
import { ROLES } from '../shared/sign-in/principal.ts';

const FINISHER = 'finish-intents';
/** After a day without success it is for people to look. */
const GIVEN_UP_MS = DAY_MS;
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

type FinishDeps = ServiceAccountDeps & FinishRetentionDeps;
type Finish = (deps: FinishDeps, intent: OpenIntent, detail: unknown) => Promise<Conclusion>;

const FINISHES: Record<string, Finish> = {
  'user.create': finishCreate,
  'user.groups': finishGroups,
  'user.update': finishChange,
  'user.deactivate': finishChange,
  'user.expire': finishChange,
  ...CERTIFICATE_FINISHES,
  'enrollment.issue': finishEnrollment,
  'service_account.create': finishServiceAccount,
  'service_account.delete': finishServiceAccount,
  'service_account.certificate': finishServiceCertificate,
  'retention.change': finishRetention,
};
/** What ends the sign-ins of a person always; a change may do so too. */
const ENDS = new Set(['user.create', 'user.deactivate', 'user.expire', 'user.password']);

/**
 * Resolves with the result of the outcome that was written. Rejects when the provider does not answer: the intent stays
 * open, and may be tried again.
 */
export async function finishIntent(deps: FinishDeps, intent: OpenIntent): Promise<AuditResult> {
  const { action, target, request_id: requestId, seq } = intent;
  const detail = readDetail(intent);
  const conclusion = await conclude(deps, intent, detail);
  const ends = ENDS.has(action) || takesRights(detail) ? { endsSignInsOf: target } : {};
  const actor = { username: FINISHER, address: '', requestId };
  await deps.audit.conclude(
    seq,
    { actor, action, target },
    {
      ...conclusion,
      detail: { finished_later: true, ...conclusion.detail },
      ...ends,
    },
  );
  if (action.startsWith('user.')) await deps.doors.forget(target);
  return conclusion.result;
}

async function conclude(deps: FinishDeps, intent: OpenIntent, detail: unknown): Promise<Conclusion> {
  const finish = FINISHES[intent.action];
  if (finish === undefined) return { result: 'unknown', detail: { reason: 'it is not known whether it was done' } };
  const { left, overtaken } = leftOf(intent, detail);
  if (overtaken.includes('is_active')) await finishDeactivation(deps, detail);
  if (left === undefined) return { result: 'unknown', detail: { reason: OVERTAKEN } };
  const concluded = await concludeLeft(deps, intent, () => finish(deps, intent, left));
  return overtaken.length === 0 ? concluded : { ...concluded, detail: { ...concluded.detail, overtaken } };
}

const OVERTAKEN = 'a later change of the same was made before this could be finished';
const SET_CHANNELS = new Set(['user.create', 'user.groups']);

/**
 * What later intents have left of this one, and which members of a change they have named again: nobody undoes what somebody
 * did later, but what nobody has touched since is still to be done.
 */
function leftOf({ action, later }: OpenIntent, detail: unknown): { left: unknown; overtaken: string[] } {
  if (SET_CHANNELS.has(action)) {
    const isOvertaken = later.some((each) => SET_CHANNELS.has(each.action));
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

async function concludeLeft(
  deps: PeopleDeps,
  intent: OpenIntent,
  finish: () => Promise<Conclusion>,
): Promise<Conclusion> {
  try {
    return await finish();
  } catch (error) {
    if (error instanceof z.ZodError) return { result: 'unknown', detail: { reason: 'the intent cannot be read' } };
    if (mayBeDone(error) && !isOld(deps, intent)) throw error;
    if (mayBeDone(error)) return { result: 'unknown', detail: { error: messageOf(error) } };
    return { result: 'failed', detail: { error: messageOf(error) } };
  }
}

function isOld({ now }: PeopleDeps, { at }: OpenIntent): boolean {
  return now().getTime() - Date.parse(at) > GIVEN_UP_MS;
}

function readDetail({ detail }: { detail: string }): unknown {
  try {
    return JSON.parse(detail) as unknown;
  } catch {
    return undefined;
  }
}

function changeOf(detail: unknown): UserChange | undefined {
  const read = changeSchema.safeParse(detail);
  return read.success ? read.data.change : undefined;
}

/** Afterwards nobody can tell whether a role was lost: the person signs in again. */
function takesRights(detail: unknown): boolean {
  const change = changeOf(detail);
  return change?.is_active === false || change?.role !== undefined;
}

async function finishCreate(deps: PeopleDeps, { target }: OpenIntent, detail: unknown): Promise<Conclusion> {
  const { groups } = createSchema.parse(detail);
  const account = await deps.identity.accounts.named(target);
  if (account === undefined) return { result: 'failed', detail: { error: 'not done: there is no such account' } };
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

function withMissing(missing: readonly string[]): Conclusion {
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

/** When nobody makes one: what is signed and not kept yet would look lost. */
async function finishServiceCertificate(
  deps: ServiceAccountDeps,
  intent: OpenIntent,
  detail: unknown,
): Promise<Conclusion> {
  return oneAtATime(deps, intent.target, () => finishIssue(deps, intent, detail));
}

/** Whoever was deactivated and is not active again must keep no way in, whatever came later. */
async function finishDeactivation(deps: PeopleDeps, detail: unknown): Promise<void> {
  const read = changeSchema.safeParse(detail);
  if (!read.success || read.data.change.is_active !== false) return;
  const account = await deps.identity.accounts.get(read.data.id);
  if (account?.isActive === false) await makeChange(deps, account, { is_active: false }, AGAIN);
}

async function accountOf(deps: PeopleDeps, { target }: OpenIntent, id: number): Promise<Account> {
  const account = await deps.identity.accounts.get(id);
  if (account !== undefined && nameKey(account.username) === nameKey(target)) return account;
  throw new AppError('not_found', `There is no account ${target} with the id ${id} any more`);
}
