// The missions put together: their tables, their tokens, what the API and the stream need of them.

import type { Log } from '../../../../shared/ports/log.ts';
import type { Subscriptions } from '../parts.ts';
import type { RunSql } from '../store/certificates.ts';
import { groupVectors } from '../store/group-vectors.ts';
import { missionEvents } from '../store/mission-events.ts';
import { missionReads } from '../store/missions.ts';
import { missionSubscriptions } from '../store/mission-subscriptions.ts';
import { missionWrites } from '../store/mission-writes.ts';
import type { MissionPosts, StreamNotices } from '../stream/parts.ts';
import { announce } from './announce.ts';
import { audience } from './audience.ts';
import type { MissionParts } from './parts.ts';
import { missionPasswords } from './passwords.ts';
import { type KeptMissionPosts, missionPosts } from './posts.ts';
import { missionTokens } from './tokens.ts';

export interface MissionsOptions {
  /** The database `cot`, migrated. */
  run: RunSql;
  /** Of `eventTable`. */
  runEvents?: RunSql;
  /** Of `readMissionTokenKey`. */
  tokenKey: Uint8Array;
  /** SERVER_ADDRESS. */
  hostname: string;
  /** Asked each time: the stream is made after the missions. Undefined while there is none. */
  notices: () => StreamNotices | undefined;
  /** Who is on the stream. */
  connected: Pick<Subscriptions, 'list'>;
  log: Log;
  now: () => Date;
}

export interface Missions {
  /** For the API. */
  parts: MissionParts;
  /** For the stream. */
  posts: MissionPosts;
}

export function createMissions(options: MissionsOptions): Missions {
  const { run, runEvents = run, tokenKey, hostname, notices, connected, log, now } = options;
  let posts: KeptMissionPosts | undefined;
  const changed = (): void => posts?.forget();
  const subscriptions = missionSubscriptions(run, changed);
  const parts: MissionParts = {
    reads: missionReads(run, runEvents),
    writes: missionWrites(run, groupVectors(run), changed, runEvents),
    subscriptions,
    events: missionEvents(runEvents),
    tokens: missionTokens({ key: tokenKey, issuer: hostname }),
    passwords: missionPasswords(),
    announce: announce(notices),
  };
  posts = missionPosts({ ...parts, audience: audience(subscriptions, connected), log, now });
  return { parts, posts };
}
