// Which devices hear of a mission: those that are subscribed, by the person who subscribed them, as long as that person
// receives from one of its groups.

import { nameKey } from '@holdfast/kit/names';
import type { MissionWithGroups } from '../model/mission.ts';
import type { Subscription, Subscriptions } from '../model/parts.ts';
import type { MissionSubscriptions } from '../store/mission-subscriptions.ts';

/** Those that are on the stream right now. */
export type Audience = (mission: Pick<MissionWithGroups, 'id' | 'groups'>) => Promise<Subscription[]>;

/** Whoever gives the uid of another device is not taken for it. */
export function audience(
  subscriptions: Pick<MissionSubscriptions, 'of'>,
  connected: Pick<Subscriptions, 'list'>,
): Audience {
  return async function hearersOf({ id, groups }) {
    const names = new Set(groups.map(({ name }) => name));
    const subscribed = new Set((await subscriptions.of(id)).map((each) => keyOf(each)));
    return connected
      .list()
      .filter((each) => subscribed.has(keyOf(each)))
      .filter((each) => each.groups.some(({ name, direction }) => direction === 'OUT' && names.has(name)));
  };
}

function keyOf({ clientUid, username }: { clientUid: string; username: string }): string {
  return `${nameKey(username)}\n${clientUid}`;
}
