// Lists, sets, switches and deletes feeds. All changes are audited. A feed that is on has a service
// account with a certificate; one that is off has none.

import { AppError, invalid } from '@holdfast/kit/app-error';
import { FEED_ACCOUNT, nameKey } from '@holdfast/kit/names';
import { audited } from '../audit/audited.ts';
import { ensureGroup } from '../identity/bootstrap.ts';
import { channelsNamed } from '../people/channel-membership.ts';
import { createServiceAccount, keepingKeys } from '../people/service-accounts/create.ts';
import {
  deleteServiceAccount,
  type ServiceAccountContext,
  type ServiceAccountDeps,
} from '../people/service-accounts/service-accounts.ts';
import type { Feed, FeedPorts } from './port.ts';
import { accountOf, type FeedInput, feedOf, type FeedView, MAX_FEEDS, toFeedView, writingGroup } from './rules.ts';

/** One change of feeds at a time: feeds share groups. */
const CHANGE = 'feed changes';

export type FeedContext = Omit<ServiceAccountContext, 'deps'> & {
  deps: ServiceAccountDeps & FeedPorts;
};

/** By name. */
export async function listFeeds({ feeds, now }: Pick<FeedPorts, 'feeds'> & { now: () => Date }): Promise<FeedView[]> {
  const [list, report] = await Promise.all([feeds.list(), feeds.report()]);
  return list.map((feed) => toFeedView(feed, report, now()));
}

async function viewOf(deps: FeedContext['deps'], name: string): Promise<FeedView> {
  const feed = await feedNamed(deps, name);
  return toFeedView(feed, await deps.feeds.report(), deps.now());
}

async function feedNamed({ feeds }: Pick<FeedPorts, 'feeds'>, name: string): Promise<Feed> {
  const found = (await feeds.list()).find((feed) => feed.name === name);
  if (found !== undefined) return found;
  throw new AppError('not_found', `There is no feed ${JSON.stringify(name.slice(0, 60))}. GET /api/feeds lists them.`);
}

/** Creates or replaces it; it stays on or off. One that is on keeps its kind and its group. */
export function setFeed(context: FeedContext, name: string, input: FeedInput): Promise<FeedView> {
  return context.deps.feedLock(CHANGE, () => set(context, name, input));
}

async function set({ deps, actor }: FeedContext, name: string, input: FeedInput): Promise<FeedView> {
  const group = await channelFor(deps, input.group);
  const detail = { kind: input.kind, group, events_per_minute: input.events_per_minute };
  await audited(deps, { actor, action: 'feed.set', target: name, detail }, () =>
    changeList(deps, (feeds) => {
      const former = feeds.find((each) => each.name === name);
      const feed = { ...feedOf(name, input, former), group };
      if (former === undefined && feeds.length >= MAX_FEEDS)
        throw new AppError('conflict', `There are ${MAX_FEEDS} feeds already. Delete one first.`);
      if (former?.active === true && (former.group !== group || former.kind !== feed.kind))
        throw new AppError('conflict', `The feed ${name} is on. Switch it off to change its kind or its group.`);
      return [...feeds.filter((each) => each !== former), feed];
    }),
  );
  return viewOf(deps, name);
}

/** The whole name of an existing channel that can be sent to. */
async function channelFor(deps: FeedContext['deps'], group: string): Promise<string> {
  const [channel] = await channelsNamed(deps, [group]).catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'invalid')
      throw invalid('group', error.message.replace(/^\S+: /, ''));
    throw error;
  });
  if (channel === undefined || /_read$/i.test(channel.name))
    throw invalid('group', 'is only for reading; choose another');
  return channel.name;
}

/** Makes its account and gives it to the flow engine. One that is on stays so. */
export function switchFeedOn(context: FeedContext, name: string): Promise<FeedView> {
  return context.deps.feedLock(CHANGE, () => on(context, name));
}

async function on(context: FeedContext, name: string): Promise<FeedView> {
  const { deps, actor } = context;
  const feed = await feedNamed(deps, name);
  const { active, group } = feed;
  if (active) return viewOf(deps, name);
  await audited(deps, { actor, action: 'feed.on', target: name, detail: { group } }, async () => {
    await channelFor(deps, group);
    // One that was left behind when switching on or off broke off.
    await endAccount(context, feed);
    const { name: writing } = await ensureGroup(deps.identity, writingGroup(group));
    // The flow engine has no other way to the key.
    await createServiceAccount(keepingKeys(context), {
      name: accountOf(name),
      kind: 'data',
      groups: [writing],
      attributes: { [FEED_ACCOUNT]: true },
    });
    await setActive(deps, name, true);
  });
  return viewOf(deps, name);
}

/**
 * Takes it from the flow engine, and ends its account. Again on one that is off: ends what is
 * left.
 */
export function switchFeedOff(context: FeedContext, name: string): Promise<FeedView> {
  return context.deps.feedLock(CHANGE, () => off(context, name));
}

async function off(context: FeedContext, name: string): Promise<FeedView> {
  const { deps, actor } = context;
  const feed = await feedNamed(deps, name);
  await audited(deps, { actor, action: 'feed.off', target: name }, async () => {
    await setActive(deps, name, false);
    const left = await endAccount(context, feed);
    const group = writingGroup(feed.group);
    if (left.some((each) => nameKey(each) === nameKey(group))) await removeIfEmpty(deps, group, feed.group);
  });
  return viewOf(deps, name);
}

export function deleteFeed(context: FeedContext, name: string): Promise<void> {
  const { deps, actor } = context;
  return deps.feedLock(CHANGE, async () => {
    await off(context, name);
    await audited(deps, { actor, action: 'feed.delete', target: name }, () =>
      changeList(deps, (feeds) => feeds.filter((each) => each.name !== name)),
    );
  });
}

/** Names the groups that it was in. An account of that name that no feed made stays as it is. */
async function endAccount(context: FeedContext, { name, active }: Feed): Promise<string[]> {
  const { identity } = context.deps;
  const account = await identity.accounts.named(accountOf(name));
  if (account?.kind !== 'service' || !(active || account.attributes[FEED_ACCOUNT] === true)) return [];
  if (account.isActive) await deleteServiceAccount(context, { id: account.id });
  for (const { id } of account.groups) await identity.groups.removeMember(id, account.id);
  return account.groups.map((group) => group.name);
}

/** The group that was made for feeds, when no other member needs it. */
async function removeIfEmpty({ identity }: FeedContext['deps'], name: string, channel: string): Promise<void> {
  const group = await identity.groups.named(name);
  if (group === undefined || group.members.length > 0 || nameKey(name) === nameKey(channel)) return;
  await identity.groups.delete(group.id);
}

async function setActive(deps: FeedContext['deps'], name: string, active: boolean): Promise<void> {
  await changeList(deps, (feeds) => feeds.map((each) => (each.name === name ? { ...each, active } : each)));
}

async function changeList({ feeds }: FeedContext['deps'], change: (feeds: Feed[]) => readonly Feed[]): Promise<void> {
  await feeds.write(change(await feeds.list()));
}
