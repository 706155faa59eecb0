// Builds the missions: tables, tokens, and what API and stream need of them.

import { messageOf } from '@holdfast/kit/app-error';
import type { Log } from '@holdfast/kit/log';
import { nameKey } from '@holdfast/kit/names';
import { CoreFault } from '../http/answers.ts';
import { KeptAnswers } from '../http/kept-answers.ts';
import { may, MISSION_LIMITS, type MissionRole, type MissionWithGroups } from '../model/mission.ts';
import type { Subscriptions } from '../model/parts.ts';
import type {
  MissionDestination,
  MissionPost,
  MissionPosts,
  MissionSender,
  StreamDevice,
  StreamNotices,
} from '../model/stream.ts';
import type { RunSql } from '../store/certificates.ts';
import { type CotWriter, cotWriter } from '../store/cot-events.ts';
import { GroupVectors } from '../store/groups.ts';
import type { Addition, ContentChange } from '../store/mission-contents.ts';
import { missionEvents } from '../store/mission-events.ts';
import { missionInvitations } from '../store/mission-invitations.ts';
import { missionLayers } from '../store/mission-layers.ts';
import { missionLinks } from '../store/mission-links.ts';
import { missionLogs } from '../store/mission-logs.ts';
import { type MissionSubscriptions, StoredMissionSubscriptions } from '../store/mission-subscriptions.ts';
import { type MissionWrites, StoredMissionWrites } from '../store/mission-writes.ts';
import { type MissionReads, missionReads } from '../store/missions.ts';
import type { MissionParts } from './access.ts';
import { type Announce, announce, type Audience, audience } from './announce.ts';
import { MissionPasswords, MissionTokens } from './credentials.ts';
import { isContentUid, readGuid } from './request.ts';

export interface MissionPostsOptions {
  reads: Pick<MissionReads, 'find' | 'named' | 'uids'>;
  writes: Pick<MissionWrites, 'addContent'>;
  subscriptions: Pick<MissionSubscriptions, 'of'>;
  announce: Pick<Announce, 'contents'>;
  audience: Audience;
  log: Log;
  now: () => Date;
}

/** What is known of a mission while it is posted to. */
interface Posted {
  mission: MissionWithGroups;
  /** By person: the strongest role. */
  roles: ReadonlyMap<string, MissionRole>;
  devices: readonly StreamDevice[];
  uids: Set<string>;
  /** Additions on their way: the same uid is added once. */
  adding: Map<string, Promise<void>>;
  /** It takes no more contents: what is sent still goes to who is subscribed. */
  isFull: boolean;
}

/** What somebody changes in the tables by hand, or a restored database, counts after this time. */
const KEPT_MS = 10_000;
const MAX_NAMES = 500;
const MAX_OPEN = 40;
/**
 * Additions at once: beyond that an event goes to who is subscribed, and its uid is added with a
 * later one.
 */
const MAX_RUNNING = 50;
/** After a failure nothing is tried for so long. */
const REST_MS = 1_000;
const FULL_REPORTED_EVERY_MS = 60_000;
const NOBODY: readonly StreamDevice[] = [];

/**
 * Events that are sent to a mission on the stream: their uid becomes content of it, once; to whom
 * they go is kept in memory, so that a stream of positions costs no query each.
 */
export class CachedMissionPosts implements MissionPosts {
  readonly #options: MissionPostsOptions;
  readonly #missions;
  readonly #open;
  #failedAtMs: number | undefined;
  #running = 0;
  #fullReportedAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: MissionPostsOptions) {
    this.#options = options;
    this.#missions = new KeptAnswers<MissionWithGroups[]>({ keptMs: KEPT_MS, most: MAX_NAMES, now: options.now });
    this.#open = new KeptAnswers<Posted>({ keptMs: KEPT_MS, most: MAX_OPEN, now: options.now });
  }

  /**
   * Rule `postsNeverFail`: an event is lost to the mission, not to the stream. The log says so once
   * a failure.
   */
  async post(to: MissionDestination, event: MissionPost, from: MissionSender): Promise<readonly StreamDevice[]> {
    const atMs = this.#options.now().getTime();
    if (this.#failedAtMs !== undefined && atMs >= this.#failedAtMs && atMs - this.#failedAtMs < REST_MS) return NOBODY;
    try {
      const devices = await this.#post(to, event, from);
      this.#failedAtMs = undefined;
      return devices;
    } catch (error) {
      if (this.#failedAtMs === undefined) this.#options.log.warn('mission.post_failed', { error: messageOf(error) });
      this.#failedAtMs = atMs;
      return NOBODY;
    }
  }

  /** Something about missions has changed: what is asked next is asked of the database. */
  forget(): void {
    this.#missions.clear();
    this.#open.clear();
  }

  async #opened(mission: MissionWithGroups): Promise<Posted> {
    const all = await this.#options.subscriptions.of(mission.id, 'left too');
    const uids = new Set(await this.#options.reads.uids(mission.id));
    const roles = new Map<string, MissionRole>();
    for (const { username, role } of all) {
      const known = roles.get(nameKey(username));
      if (known === undefined || strength(role) > strength(known)) roles.set(nameKey(username), role);
    }
    const devices = all
      .filter(({ token }) => token !== null)
      .map(({ clientUid, username }) => ({ clientUid, username }));
    return { mission, roles, devices, uids, adding: new Map(), isFull: false };
  }

  async #destined({ name, guid }: MissionDestination): Promise<MissionWithGroups[]> {
    if (guid !== undefined) {
      const wanted = readGuid(guid);
      if (wanted === undefined) return [];
      return this.#missions.ask(`guid ${wanted}`, async () => {
        const mission = await this.#options.reads.find({ guid: wanted }, 'all');
        return mission === undefined ? [] : [mission];
      });
    }
    const wanted = name?.trim() ?? '';
    if (wanted === '' || wanted.length > MISSION_LIMITS.name || wanted.includes('\0')) return [];
    return this.#missions.ask(`name ${wanted}`, () => this.#options.reads.named(wanted));
  }

  /**
   * Rule `fullMissionsGoOn`: what is beyond the limit is not added, and goes to who is subscribed
   * all the same.
   */
  async #addedUnlessFull(posted: Posted, addition: Addition): Promise<ContentChange> {
    try {
      return await this.#options.writes.addContent(posted.mission.id, addition);
    } catch (error) {
      if (!(error instanceof CoreFault) || error.kind !== 'conflict') throw error;
      posted.isFull = true;
      const atMs = this.#options.now().getTime();
      if (Math.abs(atMs - this.#fullReportedAtMs) >= FULL_REPORTED_EVERY_MS) {
        this.#options.log.warn('mission.full', { mission: posted.mission.guid, error: error.message });
        this.#fullReportedAtMs = atMs;
      }
      return { uids: [], hashes: [] };
    }
  }

  async #add(posted: Posted, event: MissionPost, from: MissionSender): Promise<void> {
    const { mission, uids } = posted;
    const at = this.#options.now();
    const change = { uids: [event.uid], hashes: [], creatorUid: from.clientUid, sees: [], now: at };
    const added = await this.#addedUnlessFull(posted, change);
    if (posted.isFull) return;
    uids.add(event.uid);
    if (added.uids.length === 0) return;
    const reported = {
      type: 'ADD_CONTENT' as const,
      missionName: mission.name,
      missionGuid: mission.guid,
      timestamp: at,
      serverTime: at,
      creatorUid: from.clientUid,
      contentUid: event.uid,
      contentHash: null,
      resource: null,
      details: {
        type: event.type,
        callsign: event.callsign ?? null,
        iconsetPath: event.iconsetPath ?? null,
        color: event.color ?? null,
        lat: event.point.lat,
        lon: event.point.lon,
      },
    };
    this.#options.announce.contents(mission, await this.#options.audience(mission), [reported], from.clientUid);
  }

  async #post(to: MissionDestination, event: MissionPost, from: MissionSender): Promise<readonly StreamDevice[]> {
    const sends = new Set(from.places);
    const mission = (await this.#destined(to)).find(({ groups }) => groups.some(({ place }) => sends.has(place)));
    if (mission === undefined) return NOBODY;
    const posted = await this.#open.ask(String(mission.id), () => this.#opened(mission));
    if (!may(posted.roles.get(nameKey(from.username)), 'MISSION_WRITE')) return NOBODY;
    const isNew = !posted.isFull && !posted.uids.has(event.uid) && isContentUid(event.uid);
    if (isNew && (posted.adding.has(event.uid) || this.#running < MAX_RUNNING))
      await this.#addedOnce(posted, event, from);
    return posted.devices.filter((device) => !isSender(device, from));
  }

  async #addedOnce(posted: Posted, event: MissionPost, from: MissionSender): Promise<void> {
    const { adding } = posted;
    const begun = adding.get(event.uid);
    if (begun !== undefined) return begun;
    this.#running += 1;
    const added = this.#add(posted, event, from).finally(() => {
      this.#running -= 1;
      adding.delete(event.uid);
    });
    adding.set(event.uid, added);
    return added;
  }
}

function strength(role: MissionRole): number {
  return { MISSION_OWNER: 3, MISSION_SUBSCRIBER: 2, MISSION_READONLY_SUBSCRIBER: 1 }[role];
}

function isSender({ clientUid, username }: StreamDevice, from: MissionSender): boolean {
  return clientUid === from.clientUid && nameKey(username) === nameKey(from.username);
}

function submission(writer: CotWriter): MissionParts['submit'] {
  return async function submit(events) {
    if (events.length === 0) return;
    const ids = await writer.ids(events.reduce((sum, { rows }) => sum + rows, 0));
    let at = 0;
    await writer.write(
      events.map((event) => ({ ...event, ids: ids.slice(at, (at += event.rows)) })),
      false,
    );
  };
}

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
  let posts: CachedMissionPosts | undefined;
  const changed = (): void => posts?.forget();
  const subscriptions = new StoredMissionSubscriptions(run, changed);
  const parts: MissionParts = {
    reads: missionReads(run, runEvents),
    writes: new StoredMissionWrites(run, new GroupVectors(run), changed, runEvents),
    subscriptions,
    invitations: missionInvitations(run),
    logs: missionLogs(run),
    layers: missionLayers(run),
    links: missionLinks(run),
    events: missionEvents(runEvents),
    tokens: new MissionTokens({ key: tokenKey, issuer: hostname }),
    passwords: new MissionPasswords(),
    announce: announce(notices),
    submit: submission(cotWriter(run, new GroupVectors(run))),
  };
  posts = new CachedMissionPosts({ ...parts, audience: audience(subscriptions, connected), log, now });
  return { parts, posts };
}
