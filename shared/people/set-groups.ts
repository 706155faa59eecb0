// Puts a user into exactly these channels. Groups that are no channels, among them those that give a role, stay.

import { messageOf } from '@holdfast/kit/app-error';
import { withTimeout } from '@holdfast/kit/timeout';
import { audited } from '../audit/audited.ts';
import { mustBeAllowed, type PeopleContext, userOf } from '../devices/accounts.ts';
import type { Account } from '../identity/port.ts';
import { channelsNamed, differenceOf, replaceChannels } from './channel-membership.ts';

export interface WantedGroups {
  id: number;
  /** With or without the prefix; one that is named twice counts once. */
  groups: readonly string[];
}

export async function setUserGroups(context: PeopleContext, { id, groups }: WantedGroups): Promise<Account> {
  const { deps, actor } = context;
  // Two at once would leave the person in the channels of both.
  return deps.peopleLock(`channels:${id}`, async () => {
    const account = await userOf(deps, id);
    mustBeAllowed(context, account);
    const wanted = await channelsNamed(deps, groups);
    const { gone, missing } = await differenceOf(deps, account, wanted);
    if (gone.length + missing.length === 0) return account;
    const { username } = account;
    const detail = { id, groups: wanted.map(({ name }) => name) };
    await audited(deps, { actor, action: 'user.groups', target: username, detail }, (progress) =>
      replaceChannels(deps, account, wanted, progress),
    );
    await deps.doors.forget(username);
    await takenAtOnce(context, username);
    return userOf(deps, id);
  });
}

/** Nobody waits longer for what comes by itself. */
const TAKEN_WITHIN_MS = 1_000;

/** By the devices that are connected. A core that cannot do it now does it by itself within 75 s: the change is made. */
async function takenAtOnce({ deps }: PeopleContext, username: string): Promise<void> {
  try {
    await withTimeout(TAKEN_WITHIN_MS, 'The core', () => deps.core.regroup(username));
  } catch (error) {
    deps.log.warn('core.regroup.failed', { username, error: messageOf(error) });
  }
}
