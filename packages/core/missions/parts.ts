// What the API of the missions is made from.

import type { GroupParts } from '../groups/own-groups.ts';
import type { Subscriptions } from '../model/parts.ts';
import type { MissionEvents } from '../store/mission-events.ts';
import type { MissionSubscriptions } from '../store/mission-subscriptions.ts';
import type { MissionWrites } from '../store/mission-writes.ts';
import type { MissionReads } from '../store/missions.ts';
import type { Announce } from './announce.ts';
import type { MissionPasswords } from './passwords.ts';
import type { MissionTokens } from './tokens.ts';

export interface MissionParts {
  reads: MissionReads;
  writes: MissionWrites;
  subscriptions: MissionSubscriptions;
  events: MissionEvents;
  tokens: MissionTokens;
  passwords: MissionPasswords;
  announce: Announce;
}

/** What the routes of missions are made from. */
export interface MissionApiOptions extends GroupParts {
  /** In every wrapped answer: `readNodeId`. */
  nodeId: string;
  missions: MissionParts;
  /** Who is on the stream. */
  subscriptions: Subscriptions;
  now: () => Date;
}
